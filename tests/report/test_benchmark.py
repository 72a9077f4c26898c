"""A benchmark on the terminal and as a page."""

from __future__ import annotations

import json
import re

import pytest

from glowplug.core.benchmark import Benchmark, Row, Steady
from glowplug.report.benchmark import benchmark_lines, render_benchmark
from glowplug.report.lines import line_text

HOSTILE = "<img src=x onerror=alert(1)>\x1b[31m"


def measured(name: str, title: str, first_ms: int) -> Row:
    steady = tuple(Steady(threads, (threads * 1_000_000,), (1000.0 / threads,)) for threads in (1, 2))
    return Row(
        name,
        title,
        "measured",
        first_ns=(first_ms * 1_000_000,) * 3,
        cold_first_ns=(first_ms * 2_000_000,),
        steady=steady,
        peak_rss_bytes=100_000_000,
        second_pss_bytes=50_000_000,
        second_private_bytes=40_000_000,
        disk_bytes=10_000_000,
        install_bytes=900_000_000,
        difference=1e-7,
        versions={name: "1.0"},
    )


@pytest.fixture
def benchmark_document() -> Benchmark:
    rows = (
        measured("tensorflow", "TensorFlow", 4000),
        Row("litert", "LiteRT", "failed", f"the converter: {HOSTILE}"),
        Row("openvino", "OpenVINO", "absent", "openvino is not installed"),
        measured("glowplug-native", "Glowplug native", 400),
    )
    machine = {"processor": HOSTILE, "cpus": 2, "python": "3.12"}
    return Benchmark(f"model {HOSTILE}", rows, 3, machine, "glowplug-native", "serving_default", {"x": "float32[1]"})


@pytest.mark.parametrize("width", [80, 110, 200])
def test_the_table_fits_and_says_who_is_missing(benchmark_document: Benchmark, width: int) -> None:
    lines = [line_text(line) for line in benchmark_lines(benchmark_document, width)]
    text = "\n".join(lines)
    assert "10.0x sooner" in text
    assert "Glowplug native*" in text
    assert "OpenVINO: openvino is not installed" in text
    assert "\x1b" not in text
    for table in (lines[2:7], lines[8:13]):
        assert max(map(len, table)) <= width
        assert [line.split()[-1] for line in table[1:]] == ["equal", "failed", "absent", "equal"]


def test_the_page_is_one_file_and_escapes_everything(benchmark_document: Benchmark) -> None:
    page = render_benchmark(benchmark_document).decode()
    assert "<script" not in page
    assert not re.search(r"<(a|img|link|iframe|object|embed)\b", page)
    assert "default-src 'none'" in page
    assert "style=" not in page


def test_the_page_has_a_chart_for_each_figure_with_bars_to_scale(benchmark_document: Benchmark) -> None:
    page = render_benchmark(benchmark_document).decode()
    assert page.count('<table class="bars"') == 10
    first = page.split('<table class="bars"')[1]
    assert re.findall(r'<rect width="(\d+)"', first) == ["1000", "100"]
    assert first.count("<tr") == 1 + 4
    assert "4.00 s" in first
    assert "failed" in first


def test_nothing_measured_still_gives_a_page() -> None:
    row = Row("tensorflow", "TensorFlow", "failed", "crashed with SIGILL")
    benchmark = Benchmark("m", (row,), 1, {})
    assert "SIGILL" in render_benchmark(benchmark).decode()
    assert "SIGILL" in "\n".join(line_text(line) for line in benchmark_lines(benchmark, 80))


def test_the_document_is_json(benchmark_document: Benchmark) -> None:
    document = json.loads(json.dumps(benchmark_document.to_json()))
    assert document["schema"] == 1
    assert document["rows"][0]["steady"][1]["latencies_ns"] == [2_000_000]


@pytest.mark.browser
def test_a_narrow_screen_needs_no_scrolling_sideways(benchmark_document: Benchmark, chromium, tmp_path) -> None:
    file = tmp_path / "bench.html"
    file.write_bytes(render_benchmark(benchmark_document))
    page = chromium.new_page(viewport={"width": 420, "height": 800})
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.goto(file.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 420
    assert complaints == []
    assert page.get_by_role("table").count() == 10
    page.close()
