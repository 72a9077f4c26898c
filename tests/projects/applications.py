"""All of `keras.applications`, with random weights, at the smallest size that keeps every operation."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import keras

SIZES = {"NASNetLarge": 331, "NASNetMobile": 224, "InceptionV3": 96, "InceptionResNetV2": 96, "Xception": 96}

LARGE = ("ConvNeXt", "EfficientNetB5", "EfficientNetB6", "EfficientNetB7", "EfficientNetV2L", "NASNetLarge")


def _build(name: str, directory: Path) -> Any:
    from tests.zoo import unsettle

    keras.utils.set_random_seed(5)
    size = SIZES.get(name, 64)
    make = getattr(keras.applications, name)
    options: dict[str, Any] = {"weights": None, "input_shape": (size, size, 3), "classes": 10}
    if name.startswith("NASNet"):
        options.pop("classes")
    model = make(**options)
    unsettle(model)
    model.export(str(directory), verbose=False)


MODELS: dict[str, Callable[[Path], Any]] = {
    f"keras.applications:{name}": partial(_build, name)
    for name in sorted(vars(keras.applications), key=lambda name: (name.startswith(LARGE), name))  # small ones first
    if name[0].isupper() and callable(getattr(keras.applications, name))
}
