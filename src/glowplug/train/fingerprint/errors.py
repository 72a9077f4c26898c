"""Why something has no key. Never leaves `train`: whoever asks for a key traces as usual and shows the
reason.
"""

from __future__ import annotations


class NoKeyError(Exception):
    """What was reached cannot be hashed by value. `reason` names it and says what it is."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)
