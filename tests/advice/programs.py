"""Twelve programs as people have them, and what a report must say of each; `bench/advice_savings.py` follows it."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

SCRIPTS = Path(__file__).with_name("scripts")
OVERWRITTEN = SCRIPTS / "weights_overwritten.py"
IMPORT = "import_dominates_start"  # true of any short program beside what else is wrong with it


@dataclass(frozen=True)
class Case:
    """A program, the rules that must speak of it, those that may, and how it ends."""

    script: str
    must: set[str]
    may: set[str] = field(default_factory=set)
    exit_code: int = 0
    arguments: tuple[str, ...] = ()
    module: str = ""

    @property
    def path(self) -> Path:
        return SCRIPTS / f"{self.script}.py"

    def words(self, folder: Path) -> list[str]:
        """Return what comes after `python`, with the files of a folder that `prepare` has filled."""
        given = [each.format(model=folder / "model.keras", folder=folder) for each in self.arguments]
        return [*(["-m", self.module] if self.module else []), str(self.path), *given]

    @property
    def line(self) -> str | None:
        """The line that the advice must name: `script.py:7`."""
        lines = self.path.read_text().splitlines()
        numbers = [number for number, text in enumerate(lines, 1) if text.endswith("# the line")]
        return f"{self.path.name}:{numbers[0]}" if numbers else None


CASES = [
    Case("import_only", {"imported_never_used"}),
    Case("cnn", {IMPORT}),
    Case("two_traces", {"two_traces_on_first_step"}, {IMPORT, "graph_optimization_on_first_step"}),
    Case("retraces", {"retrace_by_shape"}, {IMPORT}),
    Case(
        "rebuild_loop",
        {"retrace_for_each_model", "memory_grows_each_build"},
        {IMPORT, "graph_optimization_on_first_step", "two_traces_on_first_step"},
    ),
    Case("session_loop", {"graph_grows_each_round"}, {IMPORT, "initializer_built_each_round"}),
    Case("uvicorn_service", {"predicts_with_stock_tensorflow"}, {IMPORT}, arguments=("{model}",)),
    Case("spawn_pool", {"import_in_each_worker"}),
    Case(
        "weights_overwritten", {"initialized_then_overwritten"}, {IMPORT, "slow_initializer"}, arguments=("{folder}",)
    ),
    Case("crash", set(), exit_code=1),
    Case("check_model", {IMPORT}, module="pytest"),
    Case("nothing_wrong", set()),
]


def prepare(folder: Path) -> None:
    """Make the files that some of the programs read."""
    code = (
        "import keras, sys;"
        "m = keras.Sequential([keras.Input([8]), keras.layers.Dense(16), keras.layers.Dense(1)]);"
        "m.save(sys.argv[1])"
    )
    for command in ([sys.executable, "-c", code, folder / "model.keras"], [sys.executable, OVERWRITTEN, folder]):
        subprocess.run(command, check=True, capture_output=True)
