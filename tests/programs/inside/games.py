"""What programs of reinforcement learning ask gymnasium for: games whose course follows from what is done in them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

LENGTH = 12  # steps until a game is over


class Game:
    """A state of some numbers that every action moves a little."""

    def __init__(self, states: int, actions: Any) -> None:
        self.observation_space = SimpleNamespace(shape=(states,))
        self.action_space = actions
        self._random = np.random.default_rng(17)
        self._state = np.zeros(states, dtype=np.float32)
        self._steps = 0

    def reset(self, **_: Any) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin anew."""
        self._steps = 0
        self._state = self._random.uniform(-0.05, 0.05, size=self._state.shape).astype(np.float32)
        return self._state, {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Return the state after an action, the reward, and whether the game is over."""
        self._steps += 1
        push = float(np.asarray(action).reshape(-1)[0]) - 0.5
        self._state = (0.9 * self._state + 0.1 * push * np.arange(1, self._state.size + 1)).astype(np.float32)
        return self._state, float(1 - abs(self._state[0])), self._steps >= LENGTH, False, {}


def make(name: str, **_: Any) -> Game:
    """`gymnasium.make`: a game with two moves for CartPole, else one whose move is a number."""
    if name.startswith("CartPole"):
        return Game(4, SimpleNamespace(n=2))
    bounds = np.full(1, 2, dtype=np.float32)
    return Game(3, SimpleNamespace(shape=(1,), high=bounds, low=-bounds))
