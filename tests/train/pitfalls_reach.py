"""Pitfalls of what code reaches without naming it: hooks of classes, answers that were remembered, names put together,
sources that are read again, registries of the interpreter.
"""

from __future__ import annotations

import abc
import codecs
import collections
import copy
import copyreg
import linecache
import operator
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from keras import ops

from tests.train.pitfalls import FOLDER, different, layer_of, unstable, with_layer
from tests.train.pitfalls_python import attribute, scaled

FACTORS = {"value": 2.0}
PIECES = ["__", "subclasses", "doc", "hash", "code", "module", "__"]
PLUGINS: list[Any] = []
CONVERTED = """
import tensorflow as tf

@tf.function
def helper(x):
    if tf.reduce_sum(x) > -1e9:
        x = x * 2.0
    return x
"""


class Abstract(abc.ABC):  # noqa: B024
    """Whether something is one of these follows from a value that changes."""

    answer = False

    @classmethod
    def __subclasshook__(cls, other: type) -> bool:
        return cls.answer


class Plugin:
    """What inherits from it is found by asking it."""


class Remembered:
    """Nothing of its own."""


class Counted(type):
    """Makes every object with a number from outside."""

    def __call__(cls, *args: Any) -> Any:
        made = super().__call__(*args)
        made.factor = FACTORS["value"]
        return made


class MadeInTheStep(metaclass=Counted):
    """Its objects are made while the step is traced."""


class Hooked:
    """Subclasses get a number from outside."""

    factor = 0.0

    def __init_subclass__(cls) -> None:
        cls.factor = FACTORS["value"]


class Named:
    """A descriptor that takes a number from outside when its class is made."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.value = FACTORS["value"]

    def __get__(self, instance: Any, owner: Any = None) -> float:
        return self.value


class Wrapped:
    """Multiplies whatever stands left of it."""

    __array_priority__ = 1000.0

    def __rmul__(self, other: Any) -> Any:
        return other * FACTORS["value"]


class AsArray:
    """Becomes an array when it is asked to."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray(FACTORS["value"], dtype)


class AsTensor:
    """Becomes a tensor when it is asked to."""

    def __tf_tensor__(self, dtype: Any = None, name: Any = None) -> Any:
        return tf.constant(FACTORS["value"], dtype or tf.float32)


class Telling(type):
    """Says itself what is an instance."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return FACTORS["value"] > 2.5


class Judged(metaclass=Telling):
    """What is one of these is for its class to say."""


def made_up(*pieces: int) -> str:
    return "".join(PIECES[piece] for piece in pieces)


@different
def an_answer_that_was_remembered(v: int) -> Any:
    thing = Remembered()
    Abstract.answer = bool(v)
    isinstance(thing, Abstract)
    Abstract.answer = False
    return attribute(thing, lambda value: 2.0 if isinstance(value, Abstract) else 3.0)


@different
def an_answer_of_a_stock_class_that_was_remembered(v: int) -> Any:
    class Sized:
        pass

    if v:
        Sized.__len__ = lambda self: 1  # type: ignore[attr-defined]
    thing = Sized()
    isinstance(thing, collections.abc.Sized)
    if v:
        del Sized.__len__  # type: ignore[attr-defined]
    return attribute(thing, lambda value: 2.0 if isinstance(value, collections.abc.Sized) else 3.0)


@different
def classes_that_inherit(v: int) -> Any:
    PLUGINS[:] = [type(f"Plugin{number}", (Plugin,), {}) for number in range(1 + v)]
    return attribute(Plugin, lambda value: 1.0 + len(value.__subclasses__()))


@different
def classes_that_inherit_under_a_name_put_together(v: int) -> Any:
    PLUGINS[:] = [type(f"Plugin{number}", (Plugin,), {}) for number in range(1 + v)]
    return attribute(Plugin, lambda value: 1.0 + len(getattr(value, made_up(0, 1, 6))()))


@different
def a_documentation_under_a_name_put_together(v: int) -> Any:
    def helper() -> None:
        pass

    helper.__doc__ = "a" * (2 + v)
    return attribute(helper, lambda value: float(len(getattr(value, made_up(0, 2, 6)))))


@different
def a_documentation_under_a_name_on_the_layer(v: int) -> Any:
    def helper() -> None:
        pass

    helper.__doc__ = "a" * (2 + v)
    wanted = "__doc__"
    return attribute((helper, wanted), lambda value: float(len(getattr(*value))))


@different
def a_documentation_through_a_getter(v: int) -> Any:
    def helper() -> None:
        pass

    helper.__doc__ = "a" * (2 + v)
    getter = operator.attrgetter("__doc__")
    return attribute((helper, getter), lambda value: float(len(value[1](value[0]))))


@unstable
def a_hash_under_a_name_put_together() -> Any:
    return attribute(Plugin(), lambda value: 1.0 + float(getattr(value, made_up(0, 3, 6))() % 97))


@different
def the_place_of_a_function_in_its_file(v: int) -> Any:
    space: dict[str, Any] = {}
    exec(compile("\n" * v + "def helper():\n    return 1.0\n", "/elsewhere/helper.py", "exec"), space)
    return attribute(space["helper"], lambda value: 1.0 + getattr(value, made_up(0, 4, 6)).co_firstlineno)


@different
def a_module_of_a_class_under_a_name_put_together(v: int) -> Any:
    kind = type("Mine", (), {"__module__": "a" * (2 + v)})
    return attribute(kind, lambda value: float(len(getattr(value, made_up(0, 5, 6)))))


@different
def the_call_of_a_metaclass(v: int) -> Any:
    FACTORS["value"] = 2.0 + v
    return scaled(lambda: MadeInTheStep().factor)


@different
def a_hook_for_subclasses(v: int) -> Any:
    FACTORS["value"] = 2.0 + v
    return scaled(lambda: type("Sub", (Hooked,), {}).factor)


@different
def a_hook_for_names(v: int) -> Any:
    FACTORS["value"] = 2.0 + v
    return scaled(lambda: type("Holder", (), {"factor": Named()})().factor)


@different
def an_operator_of_the_right_side(v: int) -> Any:
    FACTORS["value"] = 2.0 + v
    return with_layer(lambda: layer_of(lambda self, x: 1.0 * self.other.__rmul__(x), other=Wrapped()))


@different
def an_object_that_becomes_an_array(v: int) -> Any:
    FACTORS["value"] = 2.0 + v
    return attribute(AsArray(), lambda value: ops.convert_to_tensor(np.asarray(value, "float32")))


@different
def an_object_that_becomes_a_tensor(v: int) -> Any:
    FACTORS["value"] = 2.0 + v
    return attribute(AsTensor(), tf.convert_to_tensor)


@different
def an_instance_that_its_class_decides_about(v: int) -> Any:
    FACTORS["value"] = 2.0 + v
    return attribute(Judged, lambda value: 2.0 if isinstance(1, value) else 3.0)


@different
def a_codec_of_ones_own(v: int) -> Any:
    def find(name: str) -> Any:
        if name != "pitfall":
            return None
        return codecs.CodecInfo(lambda text, errors="strict": (b"a" * (2 + v), len(text)), None)  # type: ignore[arg-type]

    codecs.register(find)
    return scaled(lambda: float(len("text".encode("pitfall"))))


@different
def a_codec_that_is_stock_under_another_name(v: int) -> Any:
    codecs.register(lambda name: codecs.lookup("utf-16" if v else "utf-8") if name == "pitfall" else None)
    "text".encode("pitfall")  # the interpreter remembers what was found
    return scaled(lambda: float(len("text".encode("pitfall"))))


@different
def a_handler_of_errors_in_texts(v: int) -> Any:
    codecs.register_error("pitfall", lambda error: ("a" * (2 + v), error.end))
    return scaled(lambda: float(len("é".encode("ascii", errors="pitfall"))))


@different
def a_stock_handler_of_errors_under_another_name(v: int) -> Any:
    codecs.register_error("pitfall", codecs.lookup_error("backslashreplace" if v else "replace"))
    return scaled(lambda: float(len("é".encode("ascii", errors="pitfall"))))


@different
def a_reducer_for_copies(v: int) -> Any:
    class Copied:
        factor = 2.0

    class Other:
        factor = 3.0

    copyreg.pickle(Copied, lambda each: (Other if v else Copied, ()))
    thing = Copied()
    return attribute(thing, lambda value: copy.copy(value).factor)


@different
def a_source_that_was_exchanged(v: int) -> Any:
    name = f"{FOLDER[0]}/converted.py"
    source = CONVERTED
    space: dict[str, Any] = {}
    exec(compile(source, name, "exec"), space)
    seen = source.replace("2.0", "3.0") if v else source
    linecache.cache[name] = (len(seen), None, seen.splitlines(keepends=True), name)
    return with_layer(lambda: layer_of(lambda self, x: self.helper(x), helper=space["helper"]))


@different
def a_source_that_was_edited_after_it_was_loaded(v: int) -> Any:
    path = Path(FOLDER[0]) / "edited.py"
    source = CONVERTED
    space: dict[str, Any] = {"__name__": "edited"}
    exec(compile(source, str(path), "exec"), space)
    path.write_text(source.replace("2.0", "3.0") if v else source)
    return with_layer(lambda: layer_of(lambda self, x: self.helper(x), helper=space["helper"]))


@different
def a_check_of_numerics(v: int) -> Any:
    if v:
        tf.debugging.enable_check_numerics()

    def training(x: Any) -> Any:
        return x / 0.0

    try:
        return with_layer(lambda: layer_of(lambda self, x: training(x)))
    except tf.errors.InvalidArgumentError as error:
        return [type(error).__name__]
