"""Pitfalls of what code reaches without naming it: hooks of classes, answers that were remembered, names put together,
sources that are read again, registries of the interpreter.
"""

from __future__ import annotations

import abc
import builtins
import codecs
import collections
import contextlib
import copy
import copyreg
import dataclasses
import enum
import functools
import io
import itertools
import linecache
import operator
import struct
import sys
import types
import weakref
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

from tests.train.pitfalls import FOLDER, different, layer_of, replaced, same, trained, unstable, with_layer
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


@different
def functions_that_run_eagerly(v: int) -> Any:
    class Counting:
        def __init__(self) -> None:
            self.calls = 0

    counting = Counting()

    def call(self: Any, x: Any) -> Any:
        counting.calls += 1
        return x * 2.0

    model = with_eager(call, v)
    return [trained(model), counting.calls]


def with_eager(call: Any, v: int) -> Any:
    keras.utils.set_random_seed(3)
    model = keras.Sequential([keras.Input((6,)), layers.Dense(5), layer_of(call), layers.Dense(3)])
    model.compile(keras.optimizers.SGD(0.5), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.run_eagerly = bool(v)
    return model


@different
def globals_that_answer_for_what_is_missing(v: int) -> Any:
    space = collections.defaultdict(functools.partial(float, 2.0 + v))
    space["__builtins__"] = builtins  # type: ignore[assignment]
    exec("def helper():\n    return missing", space)

    def forget(layer: Any) -> None:
        space.pop("missing", None)

    helper = space["helper"]
    return with_layer(lambda: layer_of(lambda self, x: x * self.helper(), helper=helper), forget)


@different
def a_cell_as_a_value(v: int) -> Any:
    return attribute(types.CellType(2.0 + v), lambda value: value.cell_contents)


@different
def a_view_of_memory(v: int) -> Any:
    return attribute(memoryview(bytearray([2 + v])), lambda value: float(value[0]))


@different
def bytes_changed_in_place(v: int) -> Any:
    holder = bytearray([2])
    holder[0] = 2 + v
    return attribute(holder, lambda value: float(value[0]))


@different
def a_packer(v: int) -> Any:
    return attribute(struct.Struct("<d" if v else "<h"), lambda value: float(value.size))


@different
def a_weak_method(v: int) -> Any:
    class Target:
        def factor(self) -> float:
            return 2.0 + v

    target = Target()
    PLUGINS[:] = [target]
    return attribute(weakref.WeakMethod(target.factor), lambda value: value()())


@different
def a_weak_set(v: int) -> Any:
    targets = [Remembered() for _ in range(2 + v)]
    PLUGINS[:] = [targets]
    return attribute(weakref.WeakSet(targets), lambda value: float(len(value)))


@different
def a_super_object(v: int) -> Any:
    class Base:
        def factor(self) -> float:
            return self.value  # type: ignore[attr-defined]

    class Derived(Base):
        pass

    thing = Derived()
    thing.value = 2.0 + v  # type: ignore[attr-defined]
    return attribute(super(Derived, thing), lambda value: value.factor())


@different
def iterators_that_were_advanced(v: int) -> Any:
    several = [
        enumerate([2.0, 3.0, 4.0]),
        zip([2.0, 3.0], [1, 1], strict=True),
        map(float, [2, 3]),
        reversed([3.0, 2.0]),
    ]
    if v:
        for each in several:
            next(each)  # type: ignore[call-overload]
    return attribute(itertools.tee(several[2])[0], next)


@different
def a_text_in_memory(v: int) -> Any:
    return attribute(io.StringIO("a" * (2 + v)), lambda value: float(len(value.getvalue())))


@different
def a_missing_member_of_an_enum(v: int) -> Any:
    class Kind(enum.Enum):
        ONE = 2.0
        TWO = 3.0

        @classmethod
        def _missing_(cls, value: object) -> Any:
            return cls.TWO if FACTORS["value"] > 2.5 else cls.ONE

    FACTORS["value"] = 2.0 + v
    return attribute(Kind, lambda value: value("no such").value)


@different
def a_member_of_an_enum_changed(v: int) -> Any:
    class Kind(enum.Enum):
        ONE = 2.0

    Kind.ONE._value_ = 2.0 + v
    return attribute(Kind, lambda value: value["ONE"].value)


@different
def a_member_of_an_enum_under_another_value(v: int) -> Any:
    class Kind(enum.Enum):
        ONE = 2.0
        TWO = 3.0

    if v:
        Kind._value2member_map_[2.0] = Kind.TWO
    return attribute(Kind, lambda value: value(2.0).value)


@different
def what_a_dataclass_does_after_it_is_made(v: int) -> Any:
    @dataclasses.dataclass
    class Settings:
        factor: float = 2.0

        def __post_init__(self) -> None:
            self.factor += FACTORS["value"]

    FACTORS["value"] = 2.0 + v
    return attribute(Settings, lambda value: value().factor)


@different
def the_default_of_a_dataclass_changed(v: int) -> Any:
    @dataclasses.dataclass
    class Settings:
        factor: float = 2.0

    Settings.__init__.__defaults__ = (2.0 + v,)
    return attribute(Settings, lambda value: value().factor)


@different
def a_dispatch_of_a_method(v: int) -> Any:
    class Mine:
        @functools.singledispatchmethod
        def factor(self, value: Any) -> float:
            return 2.0

    if v:
        Mine.factor.register(int, lambda self, value: 3.0)
    return attribute(Mine(), lambda value: value.factor(1))


@different
def the_arguments_of_a_lambda_layer(v: int) -> Any:
    def change(layer: Any) -> None:
        layer.arguments["factor"] = 2.0 + v

    return with_layer(lambda: layers.Lambda(lambda x, factor: x * factor, arguments={"factor": 2.0}), change)


@different
def an_import_that_was_replaced(v: int) -> Any:
    stock = builtins.__import__

    def other(name: str, *args: Any) -> Any:
        found = stock(name, *args)
        return (
            types.SimpleNamespace(pi=2.0)
            if v and name == "math" and sys._getframe(1).f_code.co_name == "call"
            else found
        )

    def call(self: Any, x: Any) -> Any:
        import math

        return x * math.pi

    with replaced(builtins, "__import__", other):
        return with_layer(lambda: layer_of(call))


@different
def a_loss_added_by_a_layer(v: int) -> Any:
    def call(self: Any, x: Any) -> Any:
        self.add_loss(FACTORS["value"] * ops.mean(x))
        return x

    FACTORS["value"] = 2.0 + v
    return with_layer(lambda: layer_of(call))


@different
def an_automatic_cast_switched_off(v: int) -> Any:
    def change(layer: Any) -> None:
        layer.autocast = not v

    def call(self: Any, x: Any) -> Any:
        return x * (2.0 if x.dtype == "float16" else 3.0)

    def make() -> Any:
        layer = layer_of(call)
        layer.dtype_policy = keras.DTypePolicy("float16")
        return layer

    return with_layer(make, change)


@different
def arguments_of_a_metric_changed(v: int) -> Any:
    metric = keras.metrics.MeanMetricWrapper(lambda y, p, factor=2.0: factor * ops.mean(p), name="mine")
    metric._fn_kwargs["factor"] = 2.0 + v
    keras.utils.set_random_seed(3)
    model = keras.Sequential([keras.Input((6,)), layers.Dense(3)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=[metric])
    return trained(model)


@different
def a_context_manager_made_of_a_generator(v: int) -> Any:
    @contextlib.contextmanager
    def factor() -> Any:
        yield FACTORS["value"]

    def read() -> float:
        with factor() as found:
            return found

    FACTORS["value"] = 2.0 + v
    return scaled(read)


@different
def a_generator_function_over_a_closure(v: int) -> Any:
    values = [1.0, 2.0 + v]

    def each() -> Any:
        yield from values

    return scaled(lambda: sum(each()))


@different
def a_class_behind_a_class(v: int) -> Any:
    class Pretender:
        @property
        def __class__(self) -> Any:
            return float if FACTORS["value"] > 2.5 else int

    FACTORS["value"] = 2.0 + v
    return attribute(Pretender(), lambda value: 2.0 if isinstance(value, float) else 3.0)


@different
def a_truth_value(v: int) -> Any:
    class Truth:
        def __bool__(self) -> bool:
            return FACTORS["value"] > 2.5

    FACTORS["value"] = 2.0 + v
    return attribute(Truth(), lambda value: 2.0 if value else 3.0)


@different
def what_a_program_was_called_with(v: int) -> Any:
    with replaced(sys, "argv", ["program", *["-v"] * v]):
        return scaled(lambda: 1.0 + len(sys.argv))


@different
def the_folder_a_program_runs_in(v: int) -> Any:
    place = FOLDER[0] / ("a" * (1 + v))
    place.mkdir(exist_ok=True)
    with contextlib.chdir(place):
        return scaled(lambda: float(len(Path.cwd().name)))


@different
def a_table_of_globals(v: int) -> Any:
    FACTORS["value"] = 2.0 + v
    return scaled(lambda: globals()["FACTORS"]["value"])


@different
def a_flag_of_keras_under_its_own_roof(v: int) -> Any:
    from keras.src.backend import config

    with replaced(config, "_EPSILON", 1e-7 + v):
        return scaled(lambda: 2.0 + keras.config.epsilon())


@same
def a_layer_found_by_a_name_put_together() -> Any:
    """Honest: programs number their layers so."""

    class Mine(layers.Layer):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            for number in range(2):
                setattr(self, f"dense_{number}", layers.Dense(5))

        def call(self, x: Any) -> Any:
            for number in range(2):
                x = getattr(self, f"dense_{number}")(x)
            return x

    return with_layer(Mine)


@same
def a_layer_that_encodes_and_decodes() -> Any:
    """Honest: these are methods of its own, and the text is in a codec of Python's."""

    class Mine(layers.Layer):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.inner = layers.Dense(5)

        def encode(self, x: Any, factor: float) -> Any:
            return self.inner(x) * factor

        def call(self, x: Any) -> Any:
            return self.encode(x, self.factor())

        def factor(self) -> float:
            return float(len("text".encode("utf-8")))  # noqa: UP012

    return with_layer(Mine)
