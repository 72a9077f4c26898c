"""Keys, signatures, and who is believed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from glowplug.core.errors import OutputExistsError, SignatureError, UsageError
from glowplug.store import signature
from glowplug.store.signature import PrivateKey, Trust

DIGEST, OTHER = "ab" * 32, "cd" * 32


@pytest.fixture
def key(tmp_path: Path) -> PrivateKey:
    signature.make_key_pair(tmp_path / "key")
    return signature.read_private(tmp_path / "key")


def test_a_pair_is_made_for_its_owner_alone_and_not_made_twice(tmp_path: Path) -> None:
    path = tmp_path / "team.key"
    public = signature.make_key_pair(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert signature.read_public(tmp_path / "team.key.pub") == public == signature.read_private(path).public
    with pytest.raises(OutputExistsError):
        signature.make_key_pair(path)
    path.unlink()
    with pytest.raises(OutputExistsError):  # the public key of another private one must not be replaced either
        signature.make_key_pair(path)


def test_a_signature_fits_what_was_signed_and_nothing_else(key: PrivateKey) -> None:
    data = key.sign("bundle", DIGEST)
    assert len(data) == signature.MAX_BYTES
    signature.verify(key.public, "bundle", DIGEST, data)
    with pytest.raises(SignatureError, match="altered"):
        signature.verify(key.public, "bundle", OTHER, data)
    with pytest.raises(SignatureError, match="trace"):
        signature.verify(key.public, "trace", DIGEST, data)


@pytest.mark.parametrize(
    "data", [b"", b"glowplug-signature-1 ", b"glowplug-signature-1 zz\n", b"\xff" * 150, b"x" * 10_000]
)
def test_what_is_no_signature_is_refused(key: PrivateKey, data: bytes) -> None:
    with pytest.raises(SignatureError):
        signature.verify(key.public, "bundle", DIGEST, data)


@pytest.mark.parametrize("place", [21, 60, 148])
def test_one_changed_sign_is_refused(key: PrivateKey, place: int) -> None:
    data = bytearray(key.sign("bundle", DIGEST))
    data[place] = ord("0") if data[place] != ord("0") else ord("1")
    with pytest.raises(SignatureError):
        signature.verify(key.public, "bundle", DIGEST, bytes(data))


def test_who_signed(key: PrivateKey, tmp_path: Path) -> None:
    stranger = signature.make_key_pair(tmp_path / "stranger")
    stored = {signature.object_name(DIGEST, key.public): key.sign("bundle", DIGEST)}
    assert Trust((stranger, key.public)).signer("bundle", DIGEST, stored.get) == key.public
    assert Trust((stranger,)).signer("bundle", DIGEST, stored.get) is None
    assert Trust().signer("bundle", DIGEST, stored.get) is None
    with pytest.raises(SignatureError, match=f"{stranger.id}.*--sign"):
        Trust((stranger,), required=True).signer("bundle", DIGEST, stored.get)
    with pytest.raises(SignatureError, match="no key is trusted"):
        Trust(required=True).signer("bundle", DIGEST, stored.get)
    stored[signature.object_name(DIGEST, stranger)] = stored[signature.object_name(DIGEST, key.public)]
    with pytest.raises(SignatureError, match="does not fit"):  # passed off as another key's
        Trust((stranger,)).signer("bundle", DIGEST, stored.get)


def test_keys_that_are_named_count_alone(key: PrivateKey, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = signature.make_key_pair(tmp_path / "other")
    monkeypatch.setenv(signature.TRUSTED_VARIABLE, os.pathsep.join([f"{tmp_path}/key.pub", f"{tmp_path}/other.pub"]))
    assert signature.trust() == Trust((key.public, other))
    assert signature.trust(required=True) == Trust((key.public, other), required=True)
    assert signature.trust([tmp_path / "other.pub"]) == Trust((other,), required=True)
    monkeypatch.setenv(signature.REQUIRED_VARIABLE, "1")
    assert signature.trust().required


def test_keys_that_cannot_be_used_say_why(key: PrivateKey, tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.chmod(0o644)
    with pytest.raises(SignatureError, match="chmod 600"):
        signature.read_private(path)
    with pytest.raises(UsageError, match=r"trust its key\.pub"):
        signature.read_public(path)
    with pytest.raises(SignatureError, match="cannot be read"):
        signature.read_public(tmp_path / "none")
    (tmp_path / "noise").write_bytes(b"noise")
    (tmp_path / "noise").chmod(0o600)
    for read in (signature.read_private, signature.read_public):
        with pytest.raises(SignatureError, match="PEM"):
            read(tmp_path / "noise")


def test_another_kind_of_key_and_one_with_a_passphrase(tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519

    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8)
    curve, locked = tmp_path / "curve", tmp_path / "locked"
    curve.write_bytes(ec.generate_private_key(ec.SECP256R1()).private_bytes(*form, serialization.NoEncryption()))
    encryption = serialization.BestAvailableEncryption(b"passphrase")
    locked.write_bytes(ed25519.Ed25519PrivateKey.generate().private_bytes(*form, encryption))
    for path, reason in ((curve, "no ed25519 key"), (locked, "passphrase")):
        path.chmod(0o600)
        with pytest.raises(SignatureError, match=reason):
            signature.read_private(path)


def test_a_private_key_does_not_show_itself(key: PrivateKey) -> None:
    assert "Ed25519PrivateKey" not in repr(key)


def test_without_the_package_the_extra_is_named(tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['cryptography'] = None\n"
        "from glowplug.cli.main import main\n"
        f"sys.exit(main(['keygen', {str(tmp_path / 'key')!r}]))"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert told.returncode == 4
    assert "pip install 'glowplug[sign]'" in told.stderr


def test_keys_of_openssl_do_as_well(tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl")
    private, public = tmp_path / "key", tmp_path / "key.pub"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", private], check=True)
    subprocess.run(["openssl", "pkey", "-in", private, "-pubout", "-out", public], check=True)
    private.chmod(0o600)
    key = signature.read_private(private)
    assert signature.read_public(public) == key.public
    signature.verify(key.public, "bundle", DIGEST, key.sign("bundle", DIGEST))


@pytest.mark.parametrize("value", ["1", "true", "YES", "on", "always", "2", " 1 "])
def test_any_word_but_no_asks_for_a_signature(value, monkeypatch):
    monkeypatch.delenv("GLOWPLUG_TRUSTED_KEYS", raising=False)
    monkeypatch.setenv("GLOWPLUG_REQUIRE_SIGNATURE", value)
    assert signature.trust().required


@pytest.mark.parametrize("value", ["", "0", "false", "No", "off"])
def test_a_no_does_not(value, monkeypatch):
    monkeypatch.delenv("GLOWPLUG_TRUSTED_KEYS", raising=False)
    monkeypatch.setenv("GLOWPLUG_REQUIRE_SIGNATURE", value)
    assert not signature.trust().required


def test_a_key_that_is_a_named_pipe_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "key", 0o600)
    for read in (signature.read_private, signature.read_public):
        with pytest.raises(SignatureError, match="a named pipe, not a file"):
            read(tmp_path / "key")


def test_a_key_that_a_shell_hands_over_is_read(tmp_path: Path) -> None:
    pair = signature.make_key_pair(tmp_path / "one.key")
    reading, writing = os.pipe()
    os.write(writing, (tmp_path / "one.key").read_bytes())
    os.close(writing)
    assert signature.read_private(Path(f"/dev/fd/{reading}")).public == pair
    os.close(reading)
