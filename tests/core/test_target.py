"""Words of a command line become a target, or one line says why not."""

from __future__ import annotations

import pytest

from glowplug.core.errors import UsageError
from glowplug.core.target import Target, target_from_words


def test_words_become_targets():
    assert target_from_words(["-m", "a.b", "-x"]) == Target("module", "a.b", ("-x",))
    assert target_from_words(["-c", "pass", "y"]) == Target("code", "pass", ("y",))
    assert target_from_words(["-", "z"]) == Target("stdin", "-", ("z",))
    for words in ([], ["-m"], ["-c"], ["--nothing"], ["no/such/script.py"]):
        with pytest.raises(UsageError):
            target_from_words(words)


def test_a_target_is_written_and_started_as_it_was_read():
    for words in (["-m", "a.b", "-x"], ["-c", "pass", "y"], ["-", "z"], [__file__, "-m"], ["--", "ls", "-l"]):
        target = target_from_words(words, commands=True)
        assert list(target.words()) == words
        assert list(target.command("python")) == (words[1:] if words[0] == "--" else ["python", *words])
