"""What a process of its own runs in the documentation's snippets. It imports nothing."""

from __future__ import annotations


def run_trial(parameters: dict[str, int]) -> int:
    return parameters["width"]


def task(item: int) -> int:
    return item + 1
