"""Pitfalls of the language: state in places where Python keeps it and a key must look, or refuse to."""

from __future__ import annotations

import builtins
import collections
import contextvars
import copy
import ctypes
import dataclasses
import decimal
import enum
import functools
import itertools
import math
import operator
import os
import random
import re
import sys
import threading
import time
import types
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from keras import layers, ops

from tests.train.pitfalls import FOLDER, different, layer_of, replaced, same, unstable, with_layer

SETTINGS = types.SimpleNamespace(factor=2.0)
CONTEXT: contextvars.ContextVar[float] = contextvars.ContextVar("factor", default=2.0)
REGISTRY: dict[str, Any] = {}


def scaled(factor: Any) -> Any:
    """Train with a layer that multiplies by what a function of no arguments returns while it is traced."""
    return with_layer(lambda: layer_of(lambda self, x: x * factor()))


def attribute(value: Any, read: Any) -> Any:
    """Train with a layer that multiplies by what `read` finds in the value on it."""
    holder = types.SimpleNamespace(value=value)
    return with_layer(lambda: layer_of(lambda self, x: x * read(self.holder.value), holder=holder))


def module_with(name: str, source: str) -> Any:
    made = types.ModuleType(name)
    exec(compile(source, f"/elsewhere/{name}.py", "exec"), made.__dict__)
    sys.modules[name] = made
    return made


@different
def a_default_that_was_changed(v: int) -> Any:
    def factor(value: float = 2.0) -> float:
        return value

    factor.__defaults__ = (2.0 + v,)
    return scaled(factor)


@different
def a_keyword_default_that_was_changed(v: int) -> Any:
    def factor(*, value: float = 2.0) -> float:
        return value

    factor.__kwdefaults__["value"] = 2.0 + v
    return scaled(factor)


@different
def a_mutable_default(v: int) -> Any:
    def factor(seen: list[float] = [2.0]) -> float:  # noqa: B006
        return seen[-1]

    factor.__defaults__[0].append(2.0 + v)
    return scaled(factor)


@different
def an_attribute_of_a_function(v: int) -> Any:
    def factor() -> Any:
        return factor.value  # type: ignore[attr-defined]

    factor.value = 2.0 + v  # type: ignore[attr-defined]
    return scaled(factor)


@different
def the_code_of_a_function_exchanged(v: int) -> Any:
    def factor() -> float:
        return 2.0

    def other() -> float:
        return 3.0

    factor.__code__ = other.__code__ if v else factor.__code__
    return scaled(factor)


@different
def a_constant_in_the_code_exchanged(v: int) -> Any:
    def factor() -> float:
        return 2.0

    constants = tuple(2.0 + v if each == 2.0 else each for each in factor.__code__.co_consts)
    factor.__code__ = factor.__code__.replace(co_consts=constants)
    return scaled(factor)


@different
def a_cell_changed_after_all(v: int) -> Any:
    value = 2.0

    def factor() -> float:
        return value

    value += v
    return scaled(factor)


@different
def a_function_two_closures_away(v: int) -> Any:
    def outer(value: float) -> Any:
        def middle() -> Any:
            def inner() -> float:
                return value

            return inner

        return middle()

    return scaled(outer(2.0 + v))


@different
def a_cached_function_that_remembers(v: int) -> Any:
    SETTINGS.factor = 2.0 + v

    @functools.lru_cache
    def factor() -> Any:
        return SETTINGS.factor

    factor()
    SETTINGS.factor = 2.0
    return scaled(factor)


@different
def a_cached_property_that_was_read(v: int) -> Any:
    class Holder:
        source = 2.0

        @functools.cached_property
        def factor(self) -> float:
            return self.source

    holder = Holder()
    holder.source = 2.0 + v
    _ = holder.factor
    holder.source = 2.0
    return attribute(holder, lambda value: value.factor)


@different
def a_single_dispatch(v: int) -> Any:
    @functools.singledispatch
    def factor(value: Any) -> float:
        return 2.0

    if v:
        factor.register(int, lambda value: 3.0)
    return scaled(lambda: factor(1))


@different
def a_partial_of_a_partial(v: int) -> Any:
    inner = functools.partial(pow, 2.0)
    return scaled(functools.partial(inner, 1 + v))


@different
def a_partial_with_an_attribute(v: int) -> Any:
    factor = functools.partial(lambda: 1.0)
    factor.value = 2.0 + v  # type: ignore[attr-defined]
    return scaled(lambda: factor.value)  # type: ignore[attr-defined]


@different
def a_descriptor(v: int) -> Any:
    class Factor:
        def __init__(self, value: float) -> None:
            self.value = value

        def __get__(self, owner: Any, kind: Any = None) -> float:
            return self.value

    class Holder:
        factor = Factor(2.0 + v)

    return attribute(Holder(), lambda value: value.factor)


@different
def a_property_over_a_closure(v: int) -> Any:
    hidden = [2.0 + v]

    class Holder:
        factor = property(lambda self: hidden[0])

    return attribute(Holder(), lambda value: value.factor)


@different
def a_getattribute(v: int) -> Any:
    class Holder:
        def __getattribute__(self, name: str) -> Any:
            return {"factor": 2.0 + v}.get(name) or object.__getattribute__(self, name)

    return attribute(Holder(), lambda value: value.factor)


@different
def attributes_behind_a_property_named_dict(v: int) -> Any:
    class Holder:
        __dict__ = property(lambda self: {})  # type: ignore[assignment]

    holder = Holder()
    object.__setattr__(holder, "factor", 2.0 + v)
    return attribute(holder, lambda value: value.factor)


@different
def a_metaclass(v: int) -> Any:
    class Meta(type):
        @property
        def factor(cls) -> float:
            return 2.0 + v

    class Holder(metaclass=Meta):
        pass

    return scaled(lambda: Holder.factor)


@different
def a_class_item(v: int) -> Any:
    class Holder:
        def __class_getitem__(cls, item: Any) -> float:
            return 2.0 + v

    return scaled(lambda: Holder[int])  # type: ignore[misc]


@different
def slots(v: int) -> Any:
    class Holder:
        __slots__ = ("factor",)

    holder = Holder()
    holder.factor = 2.0 + v
    return attribute(holder, lambda value: value.factor)


@different
def slots_with_private_names(v: int) -> Any:
    class Holder:
        __slots__ = ("__factor",)

        def __init__(self) -> None:
            self.__factor = 2.0 + v

        def get(self) -> float:
            return self.__factor

    return attribute(Holder(), lambda value: value.get())


class Pair(NamedTuple):
    first: float
    second: float = 1.0


class Loud(Pair):
    volume = 1.0


@different
def a_named_tuple(v: int) -> Any:
    return attribute(Pair(2.0 + v), lambda value: value.first)


@different
def an_attribute_of_a_named_tuple_subclass(v: int) -> Any:
    pair = Loud(2.0, 1.0)
    pair.factor = 2.0 + v  # type: ignore[attr-defined]
    return attribute(pair, lambda value: value.factor)


@different
def a_float_of_ones_own(v: int) -> Any:
    class Mine(float):
        def __mul__(self, other: Any) -> Any:
            return float(self) * other * (1.0 + v)

        __rmul__ = __mul__

    return attribute(Mine(2.0), lambda value: value * 1.0)


@different
def an_integer_with_an_attribute(v: int) -> Any:
    class Mine(int):
        pass

    number = Mine(2)
    number.factor = 2.0 + v  # type: ignore[attr-defined]
    return attribute(number, lambda value: value.factor)


@different
def a_string_with_an_attribute(v: int) -> Any:
    class Mine(str):
        __slots__ = ("factor",)

    class Open(str):
        pass

    text = Open("x")
    text.factor = 2.0 + v  # type: ignore[attr-defined]
    return attribute(text, lambda value: value.factor)


@different
def a_dict_of_ones_own(v: int) -> Any:
    class Mine(dict):  # type: ignore[type-arg]
        def __getitem__(self, name: str) -> Any:
            return 2.0 + v

        def items(self) -> Any:
            return []

    return attribute(Mine(factor=2.0), lambda value: value["factor"])


@different
def a_list_that_hides_its_items(v: int) -> Any:
    class Mine(list):  # type: ignore[type-arg]
        def __iter__(self) -> Any:
            return iter(())

    return attribute(Mine([2.0 + v]), lambda value: value[0])


@different
def an_object_that_says_it_is_a_dict(v: int) -> Any:
    class Liar:
        def __init__(self) -> None:
            self.factor = 2.0 + v

        __class__ = dict  # type: ignore[assignment]

        def items(self) -> Any:
            return []

        def __len__(self) -> int:
            return 0

    return attribute(Liar(), lambda value: value.factor)


@different
def the_missing_of_a_dict(v: int) -> Any:
    class Mine(dict):  # type: ignore[type-arg]
        def __missing__(self, name: str) -> float:
            return 2.0 + v

    return attribute(Mine(), lambda value: value["factor"])


@different
def a_long_pattern(v: int) -> Any:
    pattern = re.compile("a" * 300 + ("b" if v else "c"))
    return attribute(pattern, lambda value: 2.0 if value.match("a" * 300 + "b") else 3.0)


@different
def the_flags_of_a_pattern(v: int) -> Any:
    pattern = re.compile("a", re.IGNORECASE if v else 0)
    return attribute(pattern, lambda value: 2.0 if value.match("A") else 3.0)


@different
def the_sign_of_zero(v: int) -> Any:
    return attribute(-0.0 if v else 0.0, lambda value: 2.0 + math.copysign(1.0, value))


@different
def the_bits_of_a_nan(v: int) -> Any:
    numbers = np.array([0x7FF8000000000000 + v], "uint64").view("float64")
    return attribute(float(numbers[0]), lambda value: 2.0 + int(np.float64(value).view("uint64") & 1))


@different
def a_numpy_scalar_close_to_another(v: int) -> Any:
    value = np.float64(1.0) + v * np.finfo("float64").eps
    return attribute(value, lambda value: 2.0 if value == 1.0 else 3.0)


@different
def an_array_of_objects(v: int) -> Any:
    array = np.empty(2, object)
    array[:] = [types.SimpleNamespace(factor=2.0 + v), None]
    return attribute(array, lambda value: value[0].factor)


@different
def the_strides_of_an_array(v: int) -> Any:
    array = np.asarray([[1.0, 2.0], [3.0, 4.0]], order="F" if v else "C")
    return attribute(array, lambda value: float(value.ravel("K")[1]))


@different
def the_metadata_of_a_dtype(v: int) -> Any:
    kind = np.dtype("float32", metadata={"factor": 2.0 + v})
    return attribute(kind, lambda value: value.metadata["factor"])


@different
def the_class_of_an_array_of_ones_own(v: int) -> Any:
    class Mine(np.ndarray):  # type: ignore[type-arg]
        factor = 1.0

    array = np.ones(2).view(Mine)
    array.factor = 2.0 + v
    return attribute(array, lambda value: value.factor)


@different
def the_order_of_a_dict(v: int) -> Any:
    table = {"b": 3.0, "a": 2.0} if v else {"a": 2.0, "b": 3.0}
    return attribute(table, lambda value: next(iter(value.values())))


@different
def the_length_of_a_deque(v: int) -> Any:
    return attribute(collections.deque([1.0], maxlen=2 + v), lambda value: float(value.maxlen))


@different
def the_ends_of_a_slice(v: int) -> Any:
    return attribute(slice(0, 2 + v), lambda value: float(value.stop))


@different
def an_object_in_a_slice(v: int) -> Any:
    holder = types.SimpleNamespace(factor=2.0 + v)
    return attribute(slice(holder), lambda value: value.stop.factor)


@different
def a_chain_of_maps(v: int) -> Any:
    return attribute(collections.ChainMap({}, {"factor": 2.0 + v}), lambda value: value["factor"])


@different
def a_user_dict(v: int) -> Any:
    return attribute(collections.UserDict({"factor": 2.0 + v}), lambda value: value["factor"])


@different
def a_mapping_proxy(v: int) -> Any:
    return attribute(types.MappingProxyType({"factor": 2.0 + v}), lambda value: value["factor"])


class Counted(enum.Enum):
    ONE = 1


@different
def an_enum_with_state(v: int) -> Any:
    Counted.ONE.factor = 2.0 + v  # type: ignore[attr-defined]
    return attribute(Counted.ONE, lambda value: value.factor)


@dataclasses.dataclass
class Record:
    factor: float = 2.0
    extra: list[float] = dataclasses.field(default_factory=lambda: [2.0])


@different
def the_default_factory_of_a_dataclass(v: int) -> Any:
    def changed() -> list[float]:
        return [2.0 + v]

    @dataclasses.dataclass
    class Mine:
        extra: list[float] = dataclasses.field(default_factory=changed)

    return scaled(lambda: Mine().extra[0])


@different
def a_weak_reference(v: int) -> Any:
    class Holder:
        def __init__(self) -> None:
            self.factor = 2.0 + v

    holder = Holder()
    REGISTRY["kept alive"] = holder
    reference = weakref.ref(holder)
    return scaled(lambda: reference().factor)  # type: ignore[union-attr]


@different
def a_weak_dictionary(v: int) -> Any:
    class Holder:
        def __init__(self) -> None:
            self.factor = 2.0 + v

    holder = Holder()
    table = weakref.WeakValueDictionary({"holder": holder})
    return attribute(table, lambda value: value["holder"].factor)


@different
def a_context_variable(v: int) -> Any:
    CONTEXT.set(2.0 + v)
    return scaled(CONTEXT.get)


@different
def a_local_of_this_thread_of_ones_own(v: int) -> Any:
    class Mine(threading.local):
        factor = 2.0

    local = Mine()
    local.factor = 2.0 + v
    return attribute(local, lambda value: value.factor)


@different
def a_generator_that_was_started(v: int) -> Any:
    def numbers() -> Iterator[float]:
        yield from (2.0, 3.0, 4.0, 5.0, 6.0, 7.0)

    running = numbers()
    for _ in range(v + 1):
        next(running)
    return scaled(lambda: next(running))


@different
def an_iterator_that_was_advanced(v: int) -> Any:
    running = iter([2.0, 3.0, 4.0, 5.0, 6.0])
    for _ in range(v + 1):
        next(running)
    return scaled(lambda: next(running))


@different
def a_repeat(v: int) -> Any:
    running = itertools.repeat(2.0 + v)
    return scaled(lambda: next(running))


@different
def a_getter(v: int) -> Any:
    getter = operator.itemgetter(v)
    return scaled(lambda: getter([2.0, 3.0]))


@different
def a_method_caller(v: int) -> Any:
    class Holder:
        def factor(self, value: float) -> float:
            return value

    caller = operator.methodcaller("factor", 2.0 + v)
    return attribute(Holder(), caller)


@different
def a_bound_method(v: int) -> Any:
    class Holder:
        def __init__(self) -> None:
            self.value = 2.0 + v

        def factor(self) -> float:
            return self.value

    return scaled(Holder().factor)


@different
def a_bound_method_of_a_list(v: int) -> Any:
    pick = [2.0, 2.0 + v].__getitem__
    return scaled(lambda: pick(1))


@different
def a_method_put_on_an_object(v: int) -> Any:
    class Holder:
        def factor(self) -> float:
            return 2.0

    holder = Holder()
    holder.factor = types.MethodType(lambda self: 2.0 + v, holder)  # type: ignore[method-assign]
    return attribute(holder, lambda value: value.factor())


@different
def the_class_of_an_object_exchanged(v: int) -> Any:
    class First:
        factor = 2.0

    class Second:
        factor = 3.0

    holder = First()
    holder.__class__ = Second if v else First
    return attribute(holder, lambda value: value.factor)


@different
def the_bases_of_a_class_exchanged(v: int) -> Any:
    class First:
        factor = 2.0

    class Second:
        factor = 3.0

    class Holder(First):
        pass

    Holder.__bases__ = (Second,) if v else (First,)
    return attribute(Holder(), lambda value: value.factor)


@different
def code_made_by_exec(v: int) -> Any:
    space: dict[str, Any] = {}
    exec(f"def factor(): return {2.0 + v}", space)
    return scaled(space["factor"])


@different
def code_made_by_eval_that_reads_its_own_globals(v: int) -> Any:
    return scaled(eval("lambda: hidden", {"hidden": 2.0 + v}))


@different
def a_function_with_builtins_of_its_own(v: int) -> Any:
    space: dict[str, Any] = {"__builtins__": {**vars(builtins), "float": lambda value: 2.0 + v}}
    exec("def factor(): return float(1)", space)
    return scaled(space["factor"])


@different
def a_builtin_that_was_replaced(v: int) -> Any:
    with replaced(builtins, "round", lambda value: 2.0 + v):
        return scaled(lambda: round(1.2))


@different
def a_builtin_replaced_by_a_stock_function(v: int) -> Any:
    with replaced(builtins, "abs", math.exp if v else builtins.abs):
        return scaled(lambda: abs(2.0))


@different
def a_global_that_hides_a_builtin(v: int) -> Any:
    made = module_with("pitfall_hides", f"def factor(): return sum([1.0, 1.0])\nif {v}:\n    sum = lambda xs: 3.0\n")
    return scaled(made.factor)


@different
def a_value_in_a_module_of_ones_own(v: int) -> Any:
    made = module_with("pitfall_values", f"value = {2.0 + v}")
    return scaled(lambda: made.value)


@different
def the_getattr_of_a_module(v: int) -> Any:
    made = module_with("pitfall_getattr", f"def __getattr__(name): return {2.0 + v}")
    return scaled(lambda: made.anything)


@different
def a_module_imported_while_it_runs(v: int) -> Any:
    module_with("pitfall_imported", f"value = {2.0 + v}")

    def factor() -> Any:
        import pitfall_imported  # type: ignore[import-not-found]

        return pitfall_imported.value

    return scaled(factor)


@different
def a_name_imported_while_it_runs(v: int) -> Any:
    module_with("pitfall_from", f"value = {2.0 + v}")

    def factor() -> Any:
        from pitfall_from import value  # type: ignore[import-not-found]

        return value

    return scaled(factor)


@different
def a_module_with_a_class_of_its_own(v: int) -> Any:
    class Mine(types.ModuleType):
        @property
        def value(self) -> float:
            return 2.0 + v

    made = module_with("pitfall_class", "")
    made.__class__ = Mine
    return scaled(lambda: made.value)


@different
def a_module_found_by_name(v: int) -> Any:
    module_with("pitfall_named", f"value = {2.0 + v}")
    return scaled(lambda: sys.modules["pitfall_named"].value)  # type: ignore[attr-defined]


@different
def a_module_behind_another_name(v: int) -> Any:
    made = module_with("pitfall_other", f"value = {2.0 + v}")

    def factor() -> Any:
        alias = made
        return alias.value

    return scaled(factor)


@different
def the_documentation_of_a_class(v: int) -> Any:
    class Holder:
        pass

    Holder.__doc__ = str(2.0 + v)
    return attribute(Holder(), lambda value: float(value.__doc__))


@different
def an_annotation(v: int) -> Any:
    class Holder:
        pass

    Holder.__annotations__ = {"factor": 2.0 + v}
    return attribute(Holder(), lambda value: value.__annotations__["factor"])


@different
def a_finalizer_of_ctypes(v: int) -> Any:
    return attribute(ctypes.c_double(2.0 + v), lambda value: value.value)


@different
def a_callback_of_ctypes(v: int) -> Any:
    made = ctypes.CFUNCTYPE(ctypes.c_double)(lambda: 2.0 + v)
    return scaled(made)


@different
def a_function_hidden_in_numpy(v: int) -> Any:
    hidden = np.frompyfunc(lambda value: value + v, 1, 1)
    return scaled(lambda: float(hidden(2.0)))


@different
def a_vectorized_function(v: int) -> Any:
    hidden = np.vectorize(lambda value: value + v)
    return scaled(lambda: float(hidden(2.0)))


@different
def the_precision_of_decimals(v: int) -> Any:
    decimal.getcontext().prec = 3 + v
    return scaled(lambda: float(decimal.Decimal(2) / decimal.Decimal(3)))


@different
def a_copy_with_a_hook(v: int) -> Any:
    class Holder:
        factor = 2.0

        def __deepcopy__(self, memo: Any) -> Any:
            return types.SimpleNamespace(factor=2.0 + v)

    return attribute(Holder(), lambda value: copy.deepcopy(value).factor)


@different
def the_recursion_limit(v: int) -> Any:
    sys.setrecursionlimit(1000 + 500 * (v + 2))
    return scaled(lambda: float(sys.getrecursionlimit()) / 1000.0)


@different
def a_path_in_the_environment(v: int) -> Any:
    os.environ["PITFALL_FACTOR"] = str(2.0 + v)
    return scaled(lambda: float(os.environ["PITFALL_FACTOR"]))


@different
def the_environment_through_a_getter(v: int) -> Any:
    os.environ["PITFALL_FACTOR"] = str(2.0 + v)
    return scaled(functools.partial(lambda get: float(get("PITFALL_FACTOR")), os.getenv))


@different
def a_file_read_through_a_path(v: int) -> Any:
    place = FOLDER[0] / "factor.txt"
    place.write_text(str(2.0 + v))
    return attribute(place, lambda value: float(value.read_text()))


@different
def a_file_opened_before(v: int) -> Any:
    place = FOLDER[0] / "factor.txt"
    place.write_text(str(2.0 + v))
    stream = place.open()
    return attribute(stream, lambda value: value.seek(0) or float(value.read()))


@different
def an_attribute_found_by_a_made_up_name(v: int) -> Any:
    holder = types.SimpleNamespace(factor_0=2.0, factor_1=3.0, index=v)
    return attribute(holder, lambda value: getattr(value, f"factor_{value.index}"))


@different
def a_string_that_formats_a_float(v: int) -> Any:
    return attribute(0.1 + v * 1e-16, lambda value: 2.0 if f"{value!r}" == "0.1" else 3.0)


@different
def the_names_of_a_namespace(v: int) -> Any:
    holder = types.SimpleNamespace(**{"a" if v else "b": 2.0})
    return attribute(holder, lambda value: 2.0 if "a" in vars(value) else 3.0)


@unstable
def the_clock_through_a_default() -> Any:
    def factor(clock: Any = time.time) -> Any:
        return clock() % 2.0

    return scaled(factor)


@unstable
def the_clock_in_a_table() -> Any:
    return attribute({"clock": time.perf_counter}, lambda value: value["clock"]() % 2.0)


@unstable
def the_address_of_an_object() -> Any:
    holder = object()
    return scaled(lambda: float(id(holder) % 97))


@unstable
def an_address_in_a_text() -> Any:
    class Holder:
        pass

    return attribute(Holder(), lambda value: float(len(object.__repr__(value)) + int(repr(value)[-4:-1], 16) % 7))


@unstable
def the_hash_of_a_text() -> Any:
    return scaled(lambda: float(hash("text") % 97))


@unstable
def random_numbers_of_an_object() -> Any:
    return attribute(random.Random(), lambda value: value.random())


@unstable
def random_numbers_of_numpy_that_were_made_before() -> Any:
    return attribute(np.random.default_rng(), lambda value: float(value.random()))


@unstable
def random_numbers_through_a_method() -> Any:
    return scaled(random.random)


@unstable
def a_function_imported_by_its_name() -> Any:
    def factor() -> Any:
        return __import__("time").time() % 2.0

    return scaled(factor)


@unstable
def a_module_found_by_importlib() -> Any:
    import importlib

    return scaled(lambda: importlib.import_module("time").time() % 2.0)


@unstable
def an_evaluated_text() -> Any:
    return scaled(lambda: eval("__import__('time').time() % 2.0"))


@unstable
def a_thread_that_counts() -> Any:
    return scaled(lambda: float(threading.get_ident() % 97))


@unstable
def the_number_of_this_process() -> Any:
    return scaled(lambda: float(os.getpid() % 97))


@unstable
def a_listing_of_a_folder() -> Any:
    return attribute(Path(FOLDER[0]), lambda value: float(len(list(value.iterdir()))))


@unstable
def a_method_named_like_a_harmless_one() -> Any:
    class Mine(layers.Layer):  # type: ignore[misc]
        def call(self, x: Any) -> Any:
            return x * self.predict()

        def predict(self) -> float:
            return time.time() % 2.0

    return with_layer(Mine)


@unstable
def a_configuration_that_reads_the_clock() -> Any:
    class Mine(layers.Layer):  # type: ignore[misc]
        def call(self, x: Any) -> Any:
            return x * self.get_config()["factor"]

        def get_config(self) -> Any:
            return {"factor": time.time() % 2.0}

    return with_layer(Mine)


@unstable
def the_frame_of_the_caller() -> Any:
    return scaled(lambda: float(len(sys._getframe().f_back.f_code.co_filename)))  # type: ignore[union-attr]


@unstable
def the_order_in_which_garbage_goes() -> Any:
    import gc

    return scaled(lambda: float(len(gc.get_objects()) % 97))


@same
def an_honest_layer() -> Any:
    return with_layer(lambda: layer_of(lambda self, x: ops.tanh(x) * self.factor, factor=2.0))


@same
def a_method_that_writes_files_and_is_not_called() -> Any:
    class Mine(layers.Layer):  # type: ignore[misc]
        def call(self, x: Any) -> Any:
            return x * math.sqrt(2.0) + np.float32(np.pi)

        def describe(self) -> None:
            Path("/nowhere").write_text(f"{time.time()}")

    return with_layer(Mine)


@same
def a_record_and_a_table() -> Any:
    return attribute((Record(), {"a": [1, 2]}), lambda value: value[0].factor + sum(value[1]["a"]))


@same
def tensorflow_and_einsum_in_a_layer() -> Any:
    def call(self: Any, x: Any) -> Any:
        parts = [tf.nn.gelu(x), tf.reduce_mean(x, axis=-1, keepdims=True) + tf.einsum("bi,bi->bi", x, x)]
        return functools.reduce(operator.add, (part for part in parts)) * float(len(parts))

    return with_layer(lambda: layer_of(call))
