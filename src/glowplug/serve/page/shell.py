"""The page as one file: its style and its scripts in place, and a policy that allows these and nothing else."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files

_SCRIPTS = ("elements.js", "charts.js", "models.js", "trial.js", "page.js")

HEADERS = {
    "Cache-Control": "no-cache",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def make_shell() -> tuple[bytes, str]:
    """Return the page, and its content security policy."""
    style = _asset("page.css")
    script = '"use strict";\n(() => {\n' + "\n".join(_asset(name) for name in _SCRIPTS) + "})();\n"
    page = _asset("page.html").replace("/* style */", style).replace("/* script */", script)
    policy = {
        "default-src": "'none'",
        "script-src": _digest(script),
        "style-src": _digest(style),
        "connect-src": "'self'",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
        "require-trusted-types-for": "'script'",  # no text can become markup
        "trusted-types": "'none'",
    }
    return page.encode(), "; ".join(f"{name} {value}" for name, value in policy.items())


def _asset(name: str) -> str:
    return files("glowplug.serve.page").joinpath("assets").joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
