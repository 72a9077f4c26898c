"""What a judge says."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Verdict:
    """`good` is None where the judge could not be asked; `text` says why, or what it found."""

    judge: str
    good: bool | None
    text: str

    def line(self) -> str:
        """Return it as one line."""
        mark = {True: "good", False: "BAD", None: "absent"}[self.good]
        return f"{self.judge:<20} {mark:<7} {self.text}"
