"""Which optimizers a step builds while it is traced, and with which variables: seen in one run, done ahead in the next.

A `train_step` of one's own says nowhere but in its code which optimizer belongs to which weights. Its first trace
does. What was seen is kept under the key of everything the step reached before it, as a trace is.
"""

from __future__ import annotations

from typing import Any

from glowplug.train.fingerprint.errors import NoKeyError
from glowplug.train.fingerprint.walker import Walker

Builds = list[list[Any]]  # [number of the optimizer among the parts of a walk, [numbers of variables]]


def unbuilt_optimizers(walker: Walker) -> list[int]:
    """Return the numbers of the optimizers among what was walked that have no variables yet."""
    from keras.src.optimizers.base_optimizer import BaseOptimizer

    return [number for number, part in enumerate(walker.parts) if isinstance(part, BaseOptimizer) and not part.built]


def builds_since(walker: Walker, unbuilt: list[int]) -> Builds:
    """Return which of these optimizers were built since the walk, and with which of its variables."""
    numbers = {id(variable): number for number, variable in enumerate(walker.variables)}
    found: Builds = []
    for number in unbuilt:
        optimizer = walker.parts[number]
        if not optimizer.built:
            continue
        variables = [numbers.get(id(variable)) for variable in optimizer._trainable_variables]
        if None in variables:
            raise NoKeyError(f"it builds {optimizer.name} with variables that were not there before its first step")
        found.append([number, variables])
    return found


def build_ahead(walker: Walker, builds: Builds) -> None:
    """Build optimizers as a step of an earlier run did."""
    for number, variables in builds:
        if not walker.parts[number].built:  # one optimizer may build another
            walker.parts[number].build([walker.variables[each] for each in variables])
