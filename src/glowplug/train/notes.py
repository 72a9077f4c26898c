"""What `train` tells its user: one line each, on standard error, once."""

from __future__ import annotations

import logging

logger = logging.getLogger("glowplug.train")


class Notes:
    """Says each thing once. Where nothing else is configured, Python's logging prints warnings on standard
    error.
    """

    def __init__(self) -> None:
        self._said: set[str] = set()

    def warn(self, text: str) -> None:
        """Something runs as stock TensorFlow would run it, or a stored trace could not be used."""
        if text not in self._said:
            self._said.add(text)
            logger.warning("glowplug: %s", text)

    def tell(self, text: str) -> None:
        """Something went as it should."""
        logger.info("glowplug: %s", text)
