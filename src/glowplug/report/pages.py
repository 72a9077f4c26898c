"""What all HTML pages have in common: their templates, and a policy that allows their own style and script alone."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from typing import TYPE_CHECKING

from glowplug.core.errors import UsageError

if TYPE_CHECKING:
    from jinja2 import Environment


def make_environment() -> Environment:
    """Return the environment of the templates in `assets`, which escapes everything."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        raise UsageError("the HTML report needs jinja2", seen=error, remedy="pip install 'glowplug[report]'") from error
    environment = Environment(
        loader=PackageLoader("glowplug.report", "assets"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    return environment


def read_asset(name: str) -> str:
    """Return the text of a file in `assets`."""
    return files("glowplug.report").joinpath("assets").joinpath(name).read_text(encoding="utf-8")


def policy_digest(text: str) -> str:
    """Return what a content security policy names a style or a script by."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
