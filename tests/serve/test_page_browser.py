"""The page in a real Chromium, with a real server behind it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.accessibility import hidden_columns, violations
from tests.report.conftest import chromium  # noqa: F401 - a fixture
from tests.serve.server import Server
from tests.serve.test_access import line, write

pytestmark = [pytest.mark.browser, pytest.mark.tensorflow]

HOSTILE = "<iframe><img\"'&lt;>"  # as the name of a model: no spaces, no slashes
HOSTILE_TEXT = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
PATIENCE_MS = 60_000


@dataclass
class Opened:
    """The page, what it complained about and whom it asked for what."""

    page: Any
    complaints: list[str] = field(default_factory=list)
    requests: list[Any] = field(default_factory=list)

    def wait(self, selector: str, text: str = "") -> Any:
        found = self.page.locator(selector).filter(has_text=text).first if text else self.page.locator(selector).first
        found.wait_for(timeout=PATIENCE_MS)
        return found

    def text(self, selector: str) -> str:
        return str(self.page.locator(selector).first.inner_text())


@pytest.fixture
def open_page(chromium: Any) -> Iterator[Callable[..., Opened]]:  # noqa: F811
    contexts = []

    def open_it(server: Server, *, width: int = 1200, scheme: str = "light", live: Any = None) -> Opened:
        context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        opened = Opened(page)
        page.on("console", lambda message: opened.complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: opened.complaints.append(str(error)))
        page.on("dialog", lambda dialog: opened.complaints.append(dialog.message))
        page.on("request", lambda request: opened.requests.append(request))  # noqa: PLW0108 - it must be a function
        if live is not None:  # what a server says at one moment of its life
            page.route("**/v1/glowplug/live", lambda route: route.fulfill(json=live))
        page.goto(f"http://127.0.0.1:{server.rest_port}/")
        page.wait_for_selector("html[data-ready]", timeout=PATIENCE_MS)
        return opened

    yield open_it
    for context in contexts:
        context.close()


@pytest.fixture(scope="module")
def hostile_server(half_plus_two) -> Iterator[Server]:
    with Server(f"{HOSTILE}={half_plus_two}", "--instances", 2) as started:
        yield started


def moment(server: Server, **changes: Any) -> dict[str, Any]:
    """Return the document of a server, changed: states that are over in an instant can be looked at."""
    found = server.get("/v1/glowplug/live")[1]
    samples = found["series"]["samples"]
    steps = range(samples)
    found["series"] |= {
        "requests": [400 + 90 * ((k * 7) % 11) / 11 for k in steps],
        "errors": [(k % 40) / 4 for k in steps],
        "p50_ms": [None if k < 10 else 3 + (k % 13) / 9 for k in steps],
        "p99_ms": [None if k < 10 else 9 + (k % 17) for k in steps],
        "workers_bytes": [90_000_000 + 400_000 * k for k in steps],
        "front_end_bytes": [42_000_000 for k in steps],
    }
    return {**found, **changes}


def version(number: int, state: str, **more: Any) -> dict[str, Any]:
    shown = {"number": number, "labels": [], "state": state, "engine": "", "rate": 0.0, "bytes": 0, "waiting": 0}
    return {**shown, **more}


def busy(server: Server) -> dict[str, Any]:
    """Return a document with a bit of everything."""
    loaded = {"workers": 4, "ready_after_s": 0.81, "engine": "native", "labels": ["stable"], "restarts": 1}
    versions = [
        version(7, "LOADING", workers_ready=3, workers_wanted=4, elapsed_s=1.5, eta_s=0.5),
        version(6, "AVAILABLE", rate=412.5, bytes=196_000_000, waiting=3, **loaded),
        version(8, "START", waiting_for="variables/variables.data-00000-of-00001"),
        version(5, "END", error="the model cannot be loaded: graph.pb is no graph"),
        version(4, "UNLOADING", engine="native"),
    ]
    more = [{"name": "encoder", "expected": False, "versions": [version(1, "AVAILABLE", **loaded)], "more_versions": 2}]
    trouble = [
        {"at": 0, "what": "load_failed", "model": "half", "version": "5", "code": "", "text": "no graph", "count": 3},
        {
            "at": 0,
            "what": "REST predict",
            "model": "half",
            "version": "",
            "code": "NOT_FOUND",
            "text": "x" * 300,
            "count": 1,
        },
    ]
    models = [{"name": "half", "expected": False, "versions": versions, "more_versions": 0}, *more]
    found = moment(server, models=models, trouble=trouble)
    for place, entry in enumerate(trouble):
        entry["at"] = found["now"] - 7 - 400 * place
    return found


def test_values_are_text_and_never_markup(hostile_server, open_page):
    body = {"instances": [1.0], "signature_name": HOSTILE_TEXT}
    assert hostile_server.post("/v1/models/%3Ciframe%3E%3Cimg%22'&lt;%3E:predict", body)[0] == 400
    hostile_server.post("/v1/models/" + "%3Cb%3E" + ":predict", body)
    opened = open_page(hostile_server)
    opened.wait("#trouble li", "onerror")
    assert opened.text("#models h3") == HOSTILE
    assert HOSTILE_TEXT in opened.text("#trouble")
    assert HOSTILE in opened.text("#trial-model option")
    opened.wait("#trial[data-signature=serving_default]")
    opened.page.fill("#trial-body", json.dumps(body))
    opened.page.click("#trial-send")
    opened.wait("#trial-answer")
    assert "onerror" in opened.text("#trial-answer")
    assert opened.page.locator("main img, main iframe, main script, main b").count() == 0
    assert opened.page.title() == "Glowplug serve"
    assert [one for one in opened.complaints if "400" not in one] == []  # Chromium notes each answer of 400


def test_hostile_values_in_every_field(server, open_page):
    live = busy(server)

    def spoil(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: spoil(one, name) for name, one in value.items()}
        if isinstance(value, list):
            return [spoil(one, key) for one in value]
        return HOSTILE_TEXT if isinstance(value, str) and key not in ("state",) else value

    opened = open_page(server, live=spoil(live))
    opened.wait("#models h3", "onerror")
    assert opened.page.locator("main img, main script").count() == 0
    assert opened.page.title() == "Glowplug serve"
    assert [one for one in opened.complaints if "404" not in one] == []  # there is no model of that name


def test_the_browser_refuses_what_is_not_the_pages_own(server, open_page):
    opened = open_page(server)
    refused = opened.page.evaluate(
        "() => { try { document.body.innerHTML = '<b>x</b>'; return ''; } catch (error) { return error.name; } }"
    )
    assert refused == "TypeError"  # trusted types
    opened.page.evaluate(
        "() => { const s = document.createElementNS('http://www.w3.org/2000/svg', 'image');"
        "s.setAttribute('href', 'http://127.0.0.1:9/x.png'); document.querySelector('svg').append(s);"
        "return fetch('http://127.0.0.1:9/').catch(() => null); }"
    )
    assert any("Content Security Policy" in one for one in opened.complaints)


def test_it_asks_this_server_alone_and_complains_of_nothing(server, open_page):
    opened = open_page(server)
    opened.wait("#models .version")
    with opened.page.expect_response("**/v1/glowplug/live", timeout=PATIENCE_MS):
        pass  # it goes on asking
    origin = f"http://127.0.0.1:{server.rest_port}/"
    asked = {request.url for request in opened.requests if not request.url.startswith("data:")}
    assert asked == {origin, f"{origin}v1/glowplug/live", f"{origin}v1/models/half/metadata"}
    assert opened.complaints == []


def test_models_versions_and_states(server, open_page):
    opened = open_page(server, live=busy(server))
    rows = opened.page.locator("#models .version")
    assert rows.count() == 6
    texts = [rows.nth(place).inner_text().replace("\n", " ") for place in range(6)]
    assert "version 7" in texts[0]
    assert "3 of 4 workers warm, 1.5 s, about 500 ms left" in texts[0]
    bar = rows.nth(0).locator("progress")
    assert (bar.get_attribute("value"), bar.get_attribute("max")) == ("3", "4")
    for part in ("version 6", "label stable", "AVAILABLE", "engine native", "workers 4", "413", "196 MB", "waiting 3"):
        assert part in texts[1], part
    assert "waits for: variables/variables.data-00000-of-00001" in texts[2]
    assert "graph.pb is no graph" in texts[3]
    assert rows.nth(3).locator(".pill.bad").inner_text() == "END"
    entries = opened.page.locator("#trouble li")
    assert entries.count() == 2
    assert "3 times" in entries.nth(0).inner_text()
    assert "7 s ago" in entries.nth(0).inner_text()
    charts = opened.page.locator("#charts svg")
    labels = [charts.nth(place).get_attribute("aria-label") for place in range(charts.count())]
    assert [label.partition(",")[0] for label in labels] == ["Requests a second", "Latency", "Memory"]
    assert all(
        opened.page.locator("#charts figure").nth(k).locator("path.first").first.get_attribute("d") for k in range(3)
    )
    assert opened.complaints == []


def test_charts_tell_the_values_under_the_pointer(server, open_page):
    opened = open_page(server, live=busy(server))
    figure = opened.page.locator("#charts figure").first
    box = figure.locator("svg").bounding_box()
    opened.page.mouse.move(box["x"] + 1, box["y"] + box["height"] / 2)
    assert "4 min ago" in figure.locator(".title").inner_text()
    opened.page.mouse.move(0, 0)
    assert figure.locator(".title").inner_text() == "Requests a second"


def test_a_prediction(server, open_page):
    opened = open_page(server)
    opened.wait("#trial[data-signature=serving_default]")
    body = json.loads(opened.page.input_value("#trial-body"))
    assert body == {"signature_name": "serving_default", "inputs": {"x": [[0]]}}
    assert opened.text("#trial-path") == "POST /v1/models/half:predict"
    opened.page.fill("#trial-body", '{"inputs": {"x": "ones [3, 1]"}}')
    opened.page.click("#trial-send")
    opened.wait("#trial-outcome", "200 OK")
    assert json.loads(opened.text("#trial-answer")) == {"outputs": [[2.5], [2.5], [2.5]]}
    opened.page.select_option("#trial-signature", "regress_x_to_y")
    assert opened.text("#trial-path") == "POST /v1/models/half:regress"
    opened.page.click("#trial-send")
    opened.wait("#trial-answer", "results")
    assert json.loads(opened.text("#trial-answer")) == {"results": [2.0]}
    opened.page.fill("#trial-body", '{"inputs": "zeros [9000, 9000]"}')
    opened.page.click("#trial-send")
    opened.wait("#trial-outcome", "too many numbers")
    opened.page.select_option("#trial-signature", "serving_default")  # what was typed is still there
    assert opened.page.input_value("#trial-body") == '{"inputs": {"x": "ones [3, 1]"}}'


def test_a_token_stays_in_the_page(half_plus_two, tmp_path, open_page):
    text = line("app", "one", "predict") + line("ops", "two", "status") + line("all", "three", "status,predict")
    with Server(f"half={half_plus_two}", "--auth-tokens", write(tmp_path / "tokens", text)) as server:
        opened = open_page(server)
        opened.wait("#access")
        assert not opened.page.locator("#content").is_visible()
        for token, part in (("wrong", "this token is not known"), ("one", "does not have the scope 'status'")):
            opened.page.fill("#token", token)
            opened.page.click("#access-form button")
            opened.wait("#access-why", part)
        opened.page.fill("#token", "two")
        opened.page.click("#access-form button")
        opened.wait("#models .version", "AVAILABLE")
        opened.wait("#trial[data-signature=serving_default]")
        opened.page.click("#trial-send")
        opened.wait("#trial-outcome", "403")
        assert "scope 'predict'" in opened.text("#trial-answer")
        opened.page.reload()  # nothing was kept
        opened.wait("#access")
        opened.page.fill("#token", "three")
        opened.page.click("#access-form button")
        opened.wait("#models .version", "AVAILABLE")
        opened.wait("#trial[data-signature=serving_default]")
        opened.page.click("#trial-send")
        opened.wait("#trial-outcome", "200 OK")
        kept = "[localStorage.length, sessionStorage.length, document.cookie, document.getElementById('token').value]"
        assert opened.page.evaluate(f"() => {kept}") == [0, 0, "", ""]
        assert opened.page.url == f"http://127.0.0.1:{server.rest_port}/"
        shells = [one for one in opened.requests if one.url == opened.page.url]
        assert [one.headers.get("authorization") for one in shells] == [None, None]


def test_a_server_that_goes_away(half_plus_two, open_page):
    with Server(f"half={half_plus_two}") as server:
        opened = open_page(server)
        opened.wait("#state", "ready")
    opened.wait("#state", "no answer")
    assert opened.page.locator("#models .version").count() == 1  # what was seen last stays


CONTRAST = """() => {
  const channels = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, k) => sum + c * [0.2126, 0.7152, 0.0722][k], 0);
  const behind = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const found = channels(getComputedStyle(one).backgroundColor);
      if (found.length === 3 || found[3] === 1) return found;
    }
    return [255, 255, 255];
  };
  const poor = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.nodeValue.trim());
    if (!own || !element.checkVisibility() || ["SCRIPT", "STYLE", "OPTION"].includes(element.tagName)) continue;
    const [a, b] = [light(channels(getComputedStyle(element).color)), light(behind(element))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) poor.push([element.tagName, element.className, element.textContent.slice(0, 30), ratio]);
  }
  return poor;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [420, 1200])
def test_it_can_be_read_at_any_width_in_dark_and_light(server, open_page, width, scheme):
    opened = open_page(server, width=width, scheme=scheme, live=busy(server))
    opened.wait("#trial[data-signature=serving_default]")
    opened.page.fill("#trial-body", '{"inputs": {"x": "ones [300, 1]"}}')
    opened.page.click("#trial-send")
    opened.wait("#trial-outcome", "200 OK")
    assert opened.page.evaluate("() => document.documentElement.scrollWidth") == width
    assert opened.page.evaluate(CONTRAST) == []
    named = """() => [...document.querySelectorAll('input, select, textarea, button, svg[role=img], progress')]
      .filter((one) => !(one.labels && one.labels.length) && !one.getAttribute('aria-label') && !one.textContent.trim())
      .map((one) => one.outerHTML.slice(0, 80))"""
    assert opened.page.evaluate(named) == []


def test_it_can_be_used_without_a_mouse(server, open_page):
    opened = open_page(server)
    opened.wait("#trial[data-signature=serving_default]")
    seen = []
    for _ in range(4):
        opened.page.keyboard.press("Tab")
        seen.append(opened.page.evaluate("() => document.activeElement.id"))
    assert seen == ["trial-model", "trial-signature", "trial-body", "trial-send"]
    opened.page.keyboard.press("Enter")
    opened.wait("#trial-outcome", "200 OK")


@pytest.mark.parametrize(("scheme", "width"), [("light", 1200), ("dark", 1200), ("light", 420)])
def test_axe_finds_nothing(hostile_server, open_page, scheme, width):
    opened = open_page(hostile_server, width=width, scheme=scheme)
    assert violations(opened.page) == []
    assert hidden_columns(opened.page) == 0
