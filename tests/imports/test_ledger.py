"""What was applied to a start is told at exit, and telling it never fails a program."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from glowplug.imports.ledger import Ledger


def test_a_document_that_cannot_be_written_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Ledger().tell(str(tmp_path / "gone" / "run.json"))
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "the document cannot be written" in err


def test_with_stderr_closed_nothing_is_printed_on_stdout(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    ledger = Ledger()
    ledger.refuse("imports", "this is not done")
    ledger.tell(None)
    assert capsys.readouterr().out == ""
