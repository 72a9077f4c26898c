"""What a tuner calls for each trial: a model of `Reused`, and the caller's own part of the trial.

Optuna and Keras Tuner are never imported: both take any callable.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from glowplug.core.errors import UsageError

from .reused import Reused

Build = Callable[..., Any]
Suggest = Callable[[Any], Mapping[str, Any]]


class OptunaObjective:
    """An objective for `study.optimize` whose trials share the models of their shapes. `models` has them."""

    def __init__(self, build: Build, suggest: Suggest, evaluate: Callable[[Any, Any], Any]) -> None:
        self.models = Reused(build)
        self._suggest = suggest
        self._evaluate = evaluate
        self._busy = threading.Lock()

    def __call__(self, trial: Any) -> Any:
        """Run one trial and return what `evaluate` says of it."""
        if not self._busy.acquire(blocking=False):
            raise UsageError(
                "two trials at once would train one model",
                seen=f"trial {trial.number} began before another one had ended",
                remedy="use n_jobs=1, and start several processes on one study for parallel trials",
            )
        try:
            model = self.models(seed=trial.number, **self._suggest(trial))
            optimizer = getattr(model, "optimizer", None)
            answer = self._evaluate(model, trial)
            if getattr(model, "optimizer", None) is not optimizer:
                warnings.warn(
                    "the trial compiled its model again, so the next one of its shape traces again:"
                    " set model.optimizer.learning_rate instead",
                    stacklevel=2,
                )
            return answer
        finally:
            self._busy.release()


class KerasTunerBuild:
    """What Keras Tuner takes for a hypermodel: gives each trial the model of its shape, with fresh weights.

    It is the same object for trials of one shape, so `get_best_models` can give one at a time.
    """

    def __init__(self, build: Build, suggest: Suggest, adjust: Callable[[Any, Any], None] | None) -> None:
        self.models = Reused(build)
        self._suggest = suggest
        self._adjust = adjust
        self._started = 0

    def __call__(self, hp: Any) -> Any:
        """Return the compiled model for a trial's hyper-parameters."""
        model = self.models(seed=self._started, **self._suggest(hp))
        self._started += 1
        if self._adjust is not None:
            self._adjust(model, hp)
        return model


def optuna_objective(build: Build, suggest: Suggest, evaluate: Callable[[Any, Any], Any]) -> OptunaObjective:
    """Return an objective for Optuna's `study.optimize` whose cost stays flat.

    `suggest(trial)` returns the arguments of `build` that need another graph; `build` makes and compiles a model.
    `evaluate(model, trial)` sets what needs none, such as the learning rate, trains, and returns the trial's value.
    """
    return OptunaObjective(build, suggest, evaluate)


def keras_tuner_build(
    build: Build, suggest: Suggest, adjust: Callable[[Any, Any], None] | None = None
) -> KerasTunerBuild:
    """Return a hypermodel for Keras Tuner whose trials stay as cheap as the second.

    `suggest(hp)` returns the arguments of `build` that need another graph; `build` makes and compiles a model.
    `adjust(model, hp)` sets what needs none, such as the learning rate.
    """
    return KerasTunerBuild(build, suggest, adjust)
