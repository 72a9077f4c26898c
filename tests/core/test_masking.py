"""What looks like a secret is not kept, and what does not is."""

from __future__ import annotations

import pytest

from glowplug.core.masking import MASK, masked, masked_values, masked_words

SECRET = "hunter2hunter2"


@pytest.mark.parametrize(
    "words",
    [
        ["--password", SECRET],
        ["--token=" + SECRET],
        ["--db-password=" + SECRET],
        ["--dbPassword", SECRET],
        ["-api_key", SECRET],
        ["--api-key", SECRET, "--epochs", "3"],
        ["AWS_SECRET_ACCESS_KEY=" + SECRET],
        [f"TF_VAR_db_password={SECRET}"],
        [f"postgres://user:{SECRET}@host/db"],
        [f"s3://{SECRET}@bucket/x"],
        [f"--url=https://host/x?a=1&token={SECRET}&b=2"],
        ["-H", f"Authorization: Bearer {SECRET}"],
        ["-c", f"connect(password='{SECRET}')"],
        ["-c", f"os.environ['API_TOKEN'] = '{SECRET}'"],
        [f'{{"client_secret": "{SECRET}"}}'],
        ["--account-key", SECRET],
    ],
)
def test_a_secret_is_masked(words):
    shown = masked_words(words)
    assert SECRET not in " ".join(shown)
    assert MASK in " ".join(shown)
    assert len(shown) == len(words)
    assert masked_words(shown) == shown


@pytest.mark.parametrize(
    "text", ["AKIAABCDEFGHIJKLMNOP", "ghp_" + "a1" * 18, "hf_" + "aB" * 17, "eyJhbGciOiJ9.eyJzdWIi.c2ln"]
)
def test_keys_of_well_known_services_are_masked_wherever_they_are(text):
    assert masked(f"see {text} there") == f"see {MASK} there"


@pytest.mark.parametrize(
    "words",
    [
        ["train.py", "--epochs", "3", "--tokenizer", "bert", "--max-tokens=5", "--key", "id"],
        ["-m", "my.service", "--port", "8000", "--author", "me", "--host", "user@host"],
        ["https://host:8443/path?x=1", "s3://bucket/key", "a=b", "key: value", "C:/x", "--password"],
        ["-c", "import tensorflow as tf; tokens = tf.strings.split(x, sep=':')"],
    ],
)
def test_the_rest_stays(words):
    assert masked_words(words) == tuple(words)


def test_texts_within_values():
    assert masked_values({"url": f"https://u:{SECRET}@h/", "n": 3, "many": [f"token={SECRET}"], "in": {"x": "y"}}) == {
        "url": f"https://{MASK}@h/",
        "n": 3,
        "many": [f"token={MASK}"],
        "in": {"x": "y"},
    }
