"""The HTML report in a real Chromium."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from glowplug.report.html import render_html

from . import profiles
from .conftest import Opened

pytestmark = pytest.mark.browser
Open = Callable[..., Opened]

LARGEST_BYTES = 3_000_000
SLOWEST_READY_MS = 2_000


def test_renders_without_a_complaint_or_a_request(open_report: Open) -> None:
    opened = open_report(profiles.training())
    page = opened.page
    assert page.locator("h1").inner_text() == "python train.py resnet50"
    for section in ("phases", "findings", "timeline", "imports", "functions", "variables", "files", "memory", "loops"):
        assert page.locator(f"#{section}").is_visible(), section
    assert opened.painted() > 50
    assert opened.complaints == []
    assert len(opened.requests) == 1
    assert opened.requests[0].startswith("file:")


def test_canvas_shows_the_colour_of_the_trace_phase(open_report: Open) -> None:
    page = open_report(profiles.training()).page
    # The overview is one strip of the main thread; a third into this run it was tracing.
    pixel = page.evaluate(
        "() => { const c = document.getElementById('overview');"
        "return [...c.getContext('2d').getImageData(Math.round(c.width / 3), Math.round(c.height / 2), 1, 1).data]; }"
    )
    assert pixel == [0xB7, 0x9A, 0xF0, 255]


def test_zoom_buttons_keys_and_wheel(open_report: Open) -> None:
    opened = open_report(profiles.training())
    page, wall_ns = opened.page, profiles.training().wall_ns
    assert opened.view() == (0, wall_ns)
    page.click("#zoom-in")
    start, end = opened.view()
    assert end - start == pytest.approx(wall_ns / 2, rel=0.01)
    page.focus("#chart")
    page.keyboard.press("ArrowRight")
    assert opened.view()[0] > start
    page.keyboard.press("0")
    assert opened.view() == (0, wall_ns)
    box = opened.box("#chart")
    page.mouse.move(box["x"] + box["width"] * 0.25, box["y"] + 60)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -200)
    page.keyboard.up("Control")
    start, end = opened.view()
    assert end - start < wall_ns * 0.9
    assert start + (end - start) * 0.25 == pytest.approx(wall_ns * 0.25, rel=0.02)  # zooms about the pointer


def test_drag_pans_and_overview_chooses_a_range(open_report: Open) -> None:
    opened = open_report(profiles.training())
    page, wall_ns = opened.page, profiles.training().wall_ns
    overview = opened.box("#overview")
    y = overview["y"] + 20
    page.mouse.move(overview["x"] + overview["width"] * 0.2, y)
    page.mouse.down()
    page.mouse.move(overview["x"] + overview["width"] * 0.4, y, steps=4)
    page.mouse.up()
    start, end = opened.view()
    assert start == pytest.approx(wall_ns * 0.2, rel=0.02)
    assert end == pytest.approx(wall_ns * 0.4, rel=0.02)
    chart = opened.box("#chart")
    page.mouse.move(chart["x"] + 600, chart["y"] + 80)
    page.mouse.down()
    page.mouse.move(chart["x"] + 300, chart["y"] + 80, steps=4)
    page.mouse.up()
    assert opened.view()[0] > start
    assert opened.view()[1] - opened.view()[0] == pytest.approx(end - start, rel=0.01)


def test_click_shows_details_and_double_click_fits(open_report: Open) -> None:
    opened = open_report(profiles.training())
    page = opened.page
    chart = opened.box("#chart")
    trace = next(span for span in profiles.training().spans if span.kind == "trace")
    x = chart["x"] + chart["width"] * (trace.start_ns + trace.duration_ns / 3) / profiles.training().wall_ns
    y = chart["y"] + 24 + 18 * 3 + 8  # main thread: __main__, fit, step, then the traces
    page.mouse.click(x, y)
    details = page.locator("#details")
    assert details.is_visible()
    assert "one_step_on_data" in details.inner_text()
    assert "11,925" in details.inner_text()
    page.mouse.dblclick(x, y)
    start, end = opened.view()
    assert start <= trace.start_ns
    assert end >= trace.end_ns
    assert end - start < trace.duration_ns * 1.2


def test_search_marks_counts_and_steps(open_report: Open) -> None:
    opened = open_report(profiles.training())
    page = opened.page
    page.fill("#search", "KERNEL")
    assert page.locator("#matches").inner_text() == "40 matches"
    before = opened.view()
    page.press("#search", "Enter")
    assert page.locator("#matches").inner_text() == "1 of 40"
    assert opened.view() != before
    assert "conv0/kernel" in page.locator("#details h3").inner_text()
    page.click("#previous")
    assert page.locator("#matches").inner_text() == "40 of 40"
    page.fill("#search", "no such span")
    assert page.locator("#matches").inner_text() == "0 matches"
    assert page.locator("#next").is_disabled()


def test_filters_by_phase_and_by_length(open_report: Open) -> None:
    opened = open_report(profiles.training())
    page = opened.page
    everything = opened.painted()
    page.select_option("#shortest", "1000000000")
    assert 0 < opened.painted() < everything
    page.select_option("#shortest", "0")
    page.fill("#search", "kernel")
    page.click("#chips [data-phase=initializers]")
    assert page.locator("#chips [data-phase=initializers]").get_attribute("aria-pressed") == "false"
    assert page.locator("#matches").inner_text() == "0 matches"
    page.click("#chips [data-phase=initializers]")
    assert page.locator("#matches").inner_text() == "40 matches"


def column(page: object, section: str, number: int) -> list[str]:
    cells = page.locator(f"#{section} tbody tr td:nth-child({number})")  # type: ignore[attr-defined]
    return list(cells.all_inner_texts())


def test_tables_sort_both_ways_and_filter(open_report: Open) -> None:
    page = open_report(profiles.training()).page
    times = [float(text.split()[0]) for text in column(page, "variables", 2)]
    assert times == sorted(times, reverse=True)
    assert len(times) == 40
    page.click("#variables th button >> text=Time >> nth=0")
    assert page.locator("#variables th").nth(1).get_attribute("aria-sort") == "ascending"
    times = [float(text.split()[0]) for text in column(page, "variables", 2)]
    assert times == sorted(times)
    page.click("#variables th button >> text=Variable")
    names = column(page, "variables", 1)
    assert names == sorted(names)
    page.fill("#variables input", "orthogonal")
    assert len(column(page, "variables", 1)) == 10
    assert "10 of 40 variables" in page.locator("#variables .toolbar").inner_text()


def test_import_tree_opens_closes_and_flattens(open_report: Open) -> None:
    page = open_report(profiles.training()).page
    rows = page.locator("#imports tbody tr")
    page.click("#imports >> text=Close all")
    assert rows.count() == 1
    page.click("#imports [data-toggle]")
    assert rows.count() == 3
    page.click("#imports >> text=Open all")
    assert rows.count() == 9
    page.click("#imports >> text=By own time")
    assert rows.first.inner_text().startswith("tensorflow.python.ops.math_ops")
    page.fill("#imports input", "h5py")
    assert rows.count() == 1


def test_finding_leads_to_its_spans(open_report: Open) -> None:
    opened = open_report(profiles.training())
    opened.page.click("[data-finding='0'] [data-show]")
    start, end = opened.view()
    second = next(span for span in profiles.training().spans if span.attrs.get("trace_index") == 2)
    assert start <= second.start_ns
    assert end >= second.end_ns
    assert end - start < second.duration_ns * 1.2


def test_copies_the_remedy(open_report: Open) -> None:
    page = open_report(profiles.training()).page
    page.click("[data-finding='0'] .command [data-copy]")
    page.wait_for_selector("[data-finding='0'] .command [data-done]")
    page.fill("#search", "")
    page.focus("#search")
    page.keyboard.press("Control+v")
    assert page.input_value("#search") == "glowplug run train.py resnet50"


def background(opened: Opened) -> str:
    return str(opened.page.evaluate("() => getComputedStyle(document.body).backgroundColor"))


def test_dark_and_light_follow_the_system_and_the_button(open_report: Open) -> None:
    light, dark = open_report(profiles.training()), open_report(profiles.training(), color_scheme="dark")
    assert background(light) != background(dark)
    was = background(dark)
    dark.page.click("#theme")
    assert background(dark) == background(light)
    dark.page.click("#theme")
    assert background(dark) == was
    assert dark.complaints == []


def test_hostile_names_stay_text(open_report: Open) -> None:
    opened = open_report(profiles.hostile())
    page = opened.page
    page.click("[data-finding] [data-copy] >> nth=0")
    page.focus("#search")
    page.keyboard.press("Enter")
    page.fill("#search", "pwned")
    page.press("#search", "Enter")
    assert page.locator("#details").is_visible()
    chart = opened.box("#chart")
    page.mouse.move(chart["x"] + 300, chart["y"] + 50)
    assert page.locator("#tip").is_visible()
    assert page.evaluate("() => window.pwned") is None
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2
    assert "javascript:" not in " ".join(page.locator("a").evaluate_all("links => links.map((a) => a.href)"))
    assert "49" not in page.locator("h1").inner_text()
    assert "</script>" in page.locator("h1").inner_text()
    assert opened.complaints == []
    assert len(opened.requests) == 1


def test_policy_stops_scripts_that_were_not_ours(open_report: Open) -> None:
    opened = open_report(profiles.training())
    opened.page.evaluate(
        "() => { const s = document.createElement('script'); s.textContent = 'window.pwned = 1';"
        "document.body.append(s, Object.assign(new Image(), {src: 'http://127.0.0.1:9/x.png'})); }"
    )
    assert opened.page.evaluate("() => window.pwned") is None
    assert any("Content Security Policy" in complaint for complaint in opened.complaints)


def test_prints_to_pdf_in_light_colours(open_report: Open, tmp_path: Path) -> None:
    opened = open_report(profiles.training(), color_scheme="dark")
    path = tmp_path / "report.pdf"
    opened.page.pdf(path=str(path), format="A4", print_background=True)
    data = path.read_bytes()
    assert data.startswith(b"%PDF-")
    assert len(re.findall(rb"/Type\s*/Page\b", data)) >= 2
    opened.page.emulate_media(media="print")
    assert background(opened) == "rgb(255, 255, 255)"
    assert not opened.page.locator("nav.bar").is_visible()
    assert not opened.page.locator(".toolbar").first.is_visible()
    assert opened.complaints == []


def lane_head(opened: Opened) -> list[int]:
    opened.view()
    return list(
        opened.page.evaluate(
            "() => { const c = document.getElementById('chart');"
            "return [...c.getContext('2d').getImageData(c.width - 20, 10, 1, 1).data].slice(0, 3); }"
        )
    )


def test_the_canvas_is_light_and_whole_on_paper_and_as_it_was_afterwards(open_report: Open) -> None:
    opened = open_report(profiles.training(), color_scheme="dark")
    opened.page.click("#zoom-in")
    view, dark = opened.view(), lane_head(opened)
    assert max(dark) < 60
    opened.page.evaluate("() => window.dispatchEvent(new Event('beforeprint'))")
    assert opened.view() == (0, profiles.training().wall_ns)
    assert min(lane_head(opened)) > 200
    opened.page.evaluate("() => window.dispatchEvent(new Event('afterprint'))")
    assert opened.view() == view
    assert lane_head(opened) == dark


@pytest.mark.parametrize("width", [360, 1920])
def test_nothing_sticks_out_sideways(open_report: Open, width: int) -> None:
    page = open_report(profiles.training()).page
    page.set_viewport_size({"width": width, "height": 900})
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width


def test_large_profile_is_small_enough_and_ready_soon(open_report: Open) -> None:
    profile = profiles.large()
    assert sum(1 for _ in profile.of_kind("module")) >= 3_000
    assert len(profile.spans) >= 14_990
    assert len(render_html(profile)) < LARGEST_BYTES
    opened = open_report(profile)
    ready_ms = opened.page.evaluate("() => performance.getEntriesByName('glowplug-ready')[0].startTime")
    assert ready_ms < SLOWEST_READY_MS
    # Ready means that it answers: a zoom repaints and a search over all spans finishes.
    opened.page.click("#zoom-in")
    assert opened.view()[0] > 0
    opened.page.fill("#search", "kernel")
    assert "matches" in opened.page.locator("#matches").inner_text()
    frame_ms = opened.page.evaluate(
        "() => { const t = performance.now(); for (let k = 0; k < 10; k += 1) document.getElementById('fit').click();"
        "return new Promise((done) => requestAnimationFrame(() =>"
        "requestAnimationFrame(() => done(performance.now() - t)))); }"
    )
    assert frame_ms < 500
    assert opened.complaints == []
