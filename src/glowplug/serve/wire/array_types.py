"""Our names for the types of arrays."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray


def dtype_name(array: NDArray[Any]) -> str:
    """Return our name for an array's type; arrays of objects hold strings."""
    return _name(array.dtype)


@cache
def _name(dtype: np.dtype[Any]) -> str:
    """numpy puts the name together anew each time it is asked, which shows on every request."""
    return "string" if dtype.hasobject else str(dtype)
