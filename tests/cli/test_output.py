"""Progress: a live line on a terminal, finished lines elsewhere."""

from __future__ import annotations

import io
import sys

from glowplug.cli.output import Percentage, Stages, table


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_stages_print_a_line_each_when_they_end(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    with Stages() as stages:
        stages("one")
        assert stream.getvalue() == ""
        stages("two")
    first, second = stream.getvalue().splitlines()
    assert first.split()[0] == "one"
    assert second.split()[0] == "two"
    assert "\x1b" not in stream.getvalue()


def test_stages_show_themselves_at_once_on_a_terminal(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with Stages() as stages:
        stages("one")
        assert stream.getvalue().endswith("  one ...")
    assert stream.getvalue().endswith("\n")


def test_a_failed_stage_leaves_a_clean_line(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    stages = Stages()
    stages("one")
    stages.__exit__(ZeroDivisionError, ZeroDivisionError(), None)
    assert stream.getvalue().endswith("\r\x1b[K")


def test_percentage_is_for_terminals_and_written_when_it_changes(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    silent = Percentage("verified")
    silent(1, 2)
    silent.clear()
    assert stream.getvalue() == ""
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    live = Percentage("verified")
    live(1, 1000)
    live(2, 1000)
    live(0, 0)
    assert stream.getvalue().count("verified") == 2
    assert stream.getvalue().endswith("100 %")


def test_table():
    assert table([("a", "long", ""), ("bb", "c", "d")]) == "  a   long\n  bb  c     d"
    assert table([]) == ""


def test_one_long_cell_does_not_make_every_row_long() -> None:
    rows = [("x" * 4096, "a", "y" * 4096), *((str(row), "b", "c") for row in range(1000))]
    text = table(rows)
    assert len(text) < 100_000
    assert "x" * 4096 + "  a  " + "y" * 4096 in text


def test_a_transfer_shows_rate_and_time_left_on_a_terminal(monkeypatch, capsys):
    from glowplug.cli.output import TransferLine
    from glowplug.store.progress import Transfer

    with TransferLine("fetched") as line:
        line(Transfer(1, 2, 3.0, None))
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with TransferLine("fetched") as line:
        line(Transfer(50_000_000, 200_000_000, 25e6, 6.0))
    assert "fetched 25 % of 200 MB, 25.0 MB/s, 6.00 s left" in capsys.readouterr().err
