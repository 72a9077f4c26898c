"""A start-up budget in pytest: `pytest --glowplug-budget`, and the fixture `glowplug_budget`.

pytest imports this module wherever Glowplug is installed, so it imports nothing heavy until it is used.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from glowplug.core.profile import Profile

    from .limits import Limits

_OPTION = "--glowplug-budget"
_TABLE = "[tool.glowplug.budget] of pyproject.toml"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.getgroup("glowplug").addoption(
        _OPTION,
        action="store_true",
        help=f"also profile the program of {_TABLE}, and fail where its start is over the limits there",
    )


def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add a test for the project's budget, where that was asked for."""
    if not config.getoption(_OPTION):
        return
    program, limits, repeat = _project(config)
    items.append(_budget_item(session, program, limits, repeat, config.rootpath))


@pytest.fixture
def glowplug_budget(pytestconfig: pytest.Config) -> Callable[..., Profile]:
    """Profile a program and fail where its start is over limits: those given, or else the project's.

    `glowplug_budget(["serve.py", "--check"], max_start="4s", max_phase={"import": "2s"}, repeat=3)`
    """

    def hold(words: Sequence[str], *, repeat: int = 1, **limits: Any) -> Profile:
        from .budget_settings import limits_from

        try:
            given = limits_from({name.replace("_", "-"): limit for name, limit in _known(limits).items()})
        except argparse.ArgumentTypeError as error:
            raise pytest.UsageError(f"glowplug_budget: {error}") from None
        return _profile_and_hold(words, given or _project(pytestconfig, program=False)[1], repeat)

    return hold


def _known(limits: Mapping[str, Any]) -> Mapping[str, Any]:
    known = ("max", "max_start", "max_first_step", "max_phase")
    for name in limits:
        if name not in known:
            raise pytest.UsageError(f"glowplug_budget: there is no limit {name!r}; limits are {', '.join(known)}")
    return limits


def _project(config: pytest.Config, *, program: bool = True) -> tuple[tuple[str, ...], Limits, int]:
    from glowplug.core.errors import UsageError

    from .budget_settings import Settings, read_settings, settings_file

    path = settings_file(config.rootpath)
    try:
        settings = Settings() if path is None else read_settings(path)
    except UsageError as error:
        raise pytest.UsageError(str(error)) from None
    if not settings.limits:
        raise pytest.UsageError(f'there is no limit in {_TABLE}: write max-start = "10s"')
    if program and not settings.program:
        raise pytest.UsageError(f'{_OPTION} has nothing to profile: write program = "train.py" into {_TABLE}')
    return settings.program, settings.limits, settings.repeat


def _profile_and_hold(words: Sequence[str], limits: Limits, repeat: int) -> Profile:
    from glowplug.launch.profiling import profile
    from glowplug.report.closing import closing_text

    from .limits import check_lines, hold_against

    found = profile(list(words), repeat=repeat)
    if found.exit_code != 0:
        pytest.fail(f"{' '.join(words)} ended with exit code {found.exit_code}", pytrace=False)
    checks = hold_against(limits, found)
    if not all(check.good for check in checks):
        lines = [f"the start of {' '.join(words)} is over its budget", *check_lines(checks), closing_text(found)]
        pytest.fail("\n".join(lines), pytrace=False)
    return found


def _budget_item(
    session: pytest.Session, program: Sequence[str], limits: Limits, repeat: int, folder: Path
) -> pytest.Item:
    class BudgetItem(pytest.Item):
        """The start of the project's program."""

        def runtest(self) -> None:
            from contextlib import chdir

            from glowplug.core.errors import GlowplugError

            try:
                with chdir(folder):
                    _profile_and_hold(program, limits, repeat)
            except GlowplugError as error:
                pytest.fail(str(error), pytrace=False)

        def reportinfo(self) -> tuple[Path, int | None, str]:
            return folder / "pyproject.toml", None, self.name

    item: pytest.Item = BudgetItem.from_parent(session, name=f"start-up budget: {' '.join(program)}")
    return item
