"""A benchmark on the terminal and as one HTML page with bar charts. Never measures, never decides."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from glowplug.core.benchmark import Benchmark, Row
from glowplug.core.clock import human_bytes, human_duration
from glowplug.core.version import VERSION

from .lines import BLANK, BOLD, Column, Line, plain, table, wrap
from .pages import make_environment, policy_digest, read_asset
from .wording import visible

STOCK = "tensorflow"
_OUTCOMES = {"measured": "equal", "differs": "differs", "absent": "absent", "failed": "failed"}


@dataclass(frozen=True, slots=True)
class Figure:
    """One kind of figure: how to take it from a row, write it, and whether less of it is better."""

    title: str
    explanation: str
    value: Callable[[Row], float | None]
    write: Callable[[float], str]
    less_is_better: bool = True


def _duration(value: float) -> str:
    return human_duration(round(value))


def _size(value: float) -> str:
    return human_bytes(round(value))


def _rate(value: float) -> str:
    return f"{value:,.0f} /s" if value >= 100 else f"{value:.1f} /s"


def _latency(threads: int) -> Callable[[Row], float | None]:
    return lambda row: next((one.latency_ns for one in row.steady if one.threads == threads), None)


def _calls(threads: int) -> Callable[[Row], float | None]:
    return lambda row: next((one.rate_per_second for one in row.steady if one.threads == threads), None)


FIGURES: tuple[Figure, ...] = (
    Figure(
        "Process start to first prediction",
        "Median, warm page cache.",
        lambda row: row.first_median_ns,
        _duration,
    ),
    Figure(
        "The same with a dropped page cache",
        "Median; nothing of the program or the model in memory.",
        lambda row: row.cold_first_median_ns,
        _duration,
    ),
    Figure("Steady call, 2 threads", "Median call of one caller, computed by two threads.", _latency(2), _duration),
    Figure("Steady call, 1 thread", "The same with one thread.", _latency(1), _duration),
    Figure("Calls a second, 2 threads", "Two callers at once.", _calls(2), _rate, less_is_better=False),
    Figure("Calls a second, 1 thread", "One caller.", _calls(1), _rate, less_is_better=False),
    Figure(
        "Memory of one more instance",
        "Proportional set size of a second process with the same model.",
        lambda row: row.second_pss_bytes,
        _size,
    ),
    Figure("Largest memory", "Of a process, up to its first prediction.", lambda row: row.peak_rss_bytes, _size),
    Figure("The model on disk", "In the form that the program takes.", lambda row: row.disk_bytes, _size),
    Figure("What one installs", "The program and all it asks for.", lambda row: row.install_bytes, _size),
)  # fmt: skip


_TIMES = ((0, "first"), (1, "cold"), (2, "2 threads"), (3, "1 thread"), (4, "2 callers"))
_SIZES = ((6, "another"), (7, "peak"), (8, "disk"), (9, "install"))


def benchmark_lines(benchmark: Benchmark, width: int) -> list[Line]:
    """Return the tables of times and of sizes, and below them what is wrong with whom."""
    lines = [plain(_headline(benchmark), BOLD), BLANK, *_table(benchmark, _TIMES)]
    if any(row.disk_bytes is not None for row in benchmark.rows):
        lines += [BLANK, *_table(benchmark, _SIZES)]
    if benchmark.chosen:
        lines.append(plain("* the engine that `glowplug pack` chooses"))
    reasons = [f"{row.title}: {row.reason}" for row in benchmark.rows if row.reason]
    for text in (*reasons, *benchmark.notes):
        lines += wrap(text, width)
    return [*lines, *wrap(_method(benchmark), width)]


def _table(benchmark: Benchmark, shown: tuple[tuple[int, str], ...]) -> list[Line]:
    """Return a table of some figures, without those that nobody has."""
    kept = [(FIGURES[index], heading) for index, heading in shown]
    kept = [one for one in kept if any(one[0].value(row) is not None for row in benchmark.rows)]
    named = max(len(row.title) for row in benchmark.rows) + 1
    columns = (Column("", named), *(Column(heading, 9, right=True) for _, heading in kept), Column("answers", 8))
    rows = []
    for row in benchmark.rows:
        cells = [(figure.value(row), figure.write) for figure, _ in kept]
        figures = ["" if value is None else write(value) for value, write in cells]
        mark = "*" if row.name == benchmark.chosen else ""
        rows.append((row.title + mark, *figures, _OUTCOMES[row.outcome]))
    return table(columns, rows)


def _headline(benchmark: Benchmark) -> str:
    """Say what the first figure shows, where there is something to compare."""
    stock, ours = benchmark.row(STOCK), benchmark.row(benchmark.chosen)
    if stock is None or ours is None or not stock.first_median_ns or not ours.first_median_ns:
        return visible(benchmark.model)
    factor = stock.first_median_ns / ours.first_median_ns
    return f"{visible(benchmark.model)}: first prediction {factor:.1f}x sooner than stock TensorFlow"


def _method(benchmark: Benchmark) -> str:
    machine = benchmark.machine
    inputs = ", ".join(f"{name} {kind}" for name, kind in benchmark.inputs.items())
    return visible(
        f"Fresh processes in turn, medians of {benchmark.repeats}, from process start; input {inputs}; "
        f"{machine.get('processor', '')}, {machine.get('cpus', '?')} CPUs, Python {machine.get('python', '?')}."
    )


def render_benchmark(benchmark: Benchmark) -> bytes:
    """Return the page: one file, no script, no reference to anything outside it."""
    css = read_asset("report.css") + read_asset("benchmark.css")
    page = make_environment().get_template("benchmark.html.j2").render(
        title=visible(benchmark.model),
        headline=_headline(benchmark),
        method=_method(benchmark),
        charts=list(_charts(benchmark)),
        rows=[_entry(row, benchmark) for row in benchmark.rows],
        notes=[visible(note) for note in benchmark.notes],
        chosen=bool(benchmark.chosen),
        machine=[(visible(key).replace("_", " "), visible(str(value))) for key, value in benchmark.machine.items()],
        version=VERSION,
        css=css,
        css_digest=policy_digest(css),
    )  # fmt: skip
    return page.encode("utf-8", "backslashreplace")


def _entry(row: Row, benchmark: Benchmark) -> dict[str, Any]:
    return {
        "title": visible(row.title),
        "outcome": _OUTCOMES[row.outcome],
        "reason": visible(row.reason),
        "versions": ", ".join(f"{visible(name)} {visible(version)}" for name, version in sorted(row.versions.items())),
        "difference": "" if row.difference is None else f"{row.difference:.1e}" if row.difference else "none",
        "chosen": row.name == benchmark.chosen,
    }


def _charts(benchmark: Benchmark) -> Iterator[dict[str, Any]]:
    """Yield a chart for each figure that somebody has; bars are parts of a thousand of the largest."""
    for number, figure in enumerate(FIGURES):
        values = {row.name: figure.value(row) for row in benchmark.rows}
        known = [value for value in values.values() if value is not None]
        if not known:
            continue
        largest, best = max(known) or 1, (min if figure.less_is_better else max)(known)
        bars = []
        for row in benchmark.rows:
            value = values[row.name]
            if value is None:
                bars.append({**_bar(row, benchmark), "text": _OUTCOMES[row.outcome], "width": 0, "best": False})
            else:
                bars.append(
                    {
                        **_bar(row, benchmark),
                        "text": figure.write(value),
                        "width": max(4, round(1000 * value / largest)),
                        "best": value == best and row.outcome == "measured",
                    }
                )
        better = "less is better" if figure.less_is_better else "more is better"
        yield {
            "id": f"chart-{number}",
            "title": figure.title,
            "explanation": f"{figure.explanation} {better.capitalize()}.",
            "bars": bars,
        }


def _bar(row: Row, benchmark: Benchmark) -> dict[str, Any]:
    ours = row.name.startswith("glowplug-")
    return {
        "title": visible(row.title),
        "kind": "stock" if row.name == STOCK else "ours" if ours else "peer",
        "chosen": row.name == benchmark.chosen,
        "differs": row.outcome == "differs",
    }
