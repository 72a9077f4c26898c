"""The walk: isomorphic objects have one key, anything else has another, and what has no value has none."""

from __future__ import annotations

import collections
import dataclasses
import enum
import functools
import itertools
import random
import re
import threading
from typing import Any

import numpy as np
import pytest

from glowplug.train.fingerprint.errors import NoKeyError
from glowplug.train.fingerprint.walker import Walker

pytestmark = pytest.mark.tensorflow


def key(value: Any) -> dict[str, str]:
    walker = Walker()
    walker.visit(value, "value")
    walker.finish()
    return walker.stream.components()


def function_from(source: str, name: str = "f", **space: Any) -> Any:
    space = {"__name__": "user_module", **space}
    exec(compile(source, "user_module.py", "exec"), space)
    return space[name]


class Thing:
    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


def circle() -> Thing:
    thing = Thing()
    thing.me = [thing]
    return thing


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = a, b


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


@dataclasses.dataclass
class Point:
    x: float
    y: float


class Whole(int):
    pass


DIFFERENT = {
    "numbers": [1, 2, 1.0, True, 1 + 0j, -0.0, 0.0, float("inf"), 10**30],
    "texts": ["1", b"1", "", None, "é", ...],
    "containers": [
        [1, 2],
        (1, 2),
        [2, 1],
        [[1], 2],
        {1, 2},
        {1: 2},
        {2: 1},
        {"a": {"b": 1}},
        {"a": {}, "b": 1},
    ],
    "order of a dict": [{"a": 1, "b": 2}, {"b": 2, "a": 1}],
    "arrays": [
        np.zeros(4),
        np.zeros((2, 2)),
        np.ones(4),
        np.zeros(4, "int64"),
        np.float32(1),
        np.float64(1),
        np.array(["a"], object),
    ],
    "objects": [
        Thing(a=1),
        Thing(a=2),
        Thing(b=1),
        Thing(a=Thing(a=1)),
        Slotted(1, 2),
        Slotted(2, 1),
        Slotted(1, 1),
    ],
    "values with classes": [Colour.RED, Colour.BLUE, Point(1, 2), Point(2, 1), Whole(1), Whole(2), 1],
    "aliasing": [[[1]] * 2, [[1], [1]]],
    "patterns": [re.compile("a"), re.compile("b"), re.compile("a", re.IGNORECASE)],
    "partials": [functools.partial(max, 1), functools.partial(max, 2), functools.partial(min, 1)],
    "queues": [collections.deque([1]), collections.deque([2])],
    "functions": [
        function_from("def f(x): return x + 1"),
        function_from("def f(x): return x + 2"),
        function_from("def f(x, y=1): return x + 1"),
        function_from("def f(x, y=2): return x + 1"),
        function_from("def f(x, *, y=2): return x + 1"),
        function_from("def f(y): return y + 1"),
        function_from("def f(x): return x + A", A=1),
        function_from("def f(x): return x + A", A=2),
        function_from("def f(x): return x + A"),
        function_from("def f(x):\n def g(): return x + 1\n return g()"),
        function_from("def f(x):\n def g(): return x + 2\n return g()"),
        function_from("def make(a):\n def f(x): return x + a\n return f\nf = make(1)"),
        function_from("def make(a):\n def f(x): return x + a\n return f\nf = make(2)"),
        function_from("def g(): return 1\ndef f(x): return x + g()"),
        function_from("def g(): return 2\ndef f(x): return x + g()"),
        function_from("f = lambda x: x in {1, 2}"),
        function_from("f = lambda x: x in {1, 3}"),
        function_from("import math\ndef f(x): return x + math.pi"),
        function_from("import math\ndef f(x): return x + math.e"),
    ],
    "classes": [
        function_from("class f:\n a = 1"),
        function_from("class f:\n a = 2"),
        function_from("class f:\n def m(self): return 1"),
        function_from("class f:\n def m(self): return 2"),
        function_from("class f:\n @property\n def m(self): return 1"),
        function_from("class f:\n @staticmethod\n def m(self): return 1"),
        function_from("class B:\n a = 1\nclass f(B): pass"),
        function_from("class B:\n a = 2\nclass f(B): pass"),
        function_from("class M(type): pass\nclass f(metaclass=M):\n a = 1"),
    ],
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_differs_has_different_keys(name):
    keys = [tuple(sorted(key(value).items())) for value in DIFFERENT[name]]
    for (first, a), (second, b) in itertools.combinations(enumerate(keys), 2):
        assert a != b, (DIFFERENT[name][first], DIFFERENT[name][second])


EQUAL = {
    "containers": lambda: [1, (2.0, "3"), {"a": None}, {3, 1, 2}, np.arange(3)],
    "objects": lambda: Thing(a=[1], b=Thing(c=Slotted(1, None))),
    "an object in a circle": circle,
    "functions": lambda: function_from("A = 3\ndef g(x): return x * A\ndef f(x): return g(x)"),
    "a class": lambda: function_from("class f:\n def m(self): return super().__repr__()"),
    "locks": lambda: [threading.Lock(), threading.RLock()],
}


@pytest.mark.parametrize("name", EQUAL)
def test_what_is_made_the_same_way_has_the_same_key(name):
    assert key(EQUAL[name]()) == key(EQUAL[name]())


def test_comments_lines_and_documentation_do_not_count():
    plain = function_from("def f(x):\n    return x + 1\n")
    commented = function_from("\n\n\ndef f(x):\n    # a comment\n\n    return x + 1  # more\n")
    assert key(plain) == key(commented)


NO_VALUE = {
    "a generator": (n for n in ()),
    "an iterator": iter([1]),
    "a counter": itertools.count(),
    "a random generator": np.random.default_rng(1),
    "a set of objects": {Thing()},
    "a file": lambda: open(__file__),  # noqa: PTH123, SIM115
    "a user's module": "module",
    "the clock": function_from("import time\ndef f(x): return x + time.time()"),
    "random numbers": function_from("import random\ndef f(x): return x + random.random()"),
    "random numbers of an instance": function_from("def f(x): return x + r.random()", r=random.Random(1)),
    "numpy's random numbers": function_from("import numpy as np\ndef f(x): return x + np.random.rand()"),
    "numpy's under another name": function_from("import numpy as np\ndef f(x):\n n = np\n return n.random.rand()"),
    "an imported name": function_from("from random import random as draw\ndef f(x): return x + draw()"),
    "an import inside": function_from("def f(x):\n import random\n return random.random()"),
    "the environment": function_from("import os\ndef f(x): return x if os.environ.get('A') else 0"),
    "a nested function": function_from("import time\ndef f(x):\n return [time.time() for _ in x]"),
    "a module in a closure": function_from(
        "def make():\n import time\n def f(x): return time.time()\n return f\nf = make()"
    ),
    "a file that is read": function_from("def f(x): return open('a').read()"),
    "tensorflow's files": function_from("import tensorflow as tf\ndef f(x): return tf.io.gfile.GFile('a')"),
    "eval": function_from("def f(x): return eval('x')"),
    "globals": function_from("def f(x): return globals()['a']"),
    "the identity": function_from("def f(x): return id(x)"),
}


@pytest.mark.parametrize("name", NO_VALUE)
def test_what_has_no_value_has_no_key(name, tmp_path, monkeypatch):
    value = NO_VALUE[name]
    if name == "a file":
        value = value()
    if name == "a user's module":
        (tmp_path / "users_own.py").write_text("A = 1\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        value = __import__("users_own")
    walker = Walker()
    try:
        walker.visit(value, "value")
    except NoKeyError:
        return
    assert value.__code__ in walker.code.objections  # it must not run in a trace


def test_construction_may_look_outside():
    """What `__init__` and `build` did is in the object: they may read the clock."""
    made = function_from(
        "import time, os\nclass f:\n"
        " def __init__(self): self.at = time.time() * 0\n"
        " def build(self, shape): self.here = os.getcwd()\n"
        " def call(self, x): return x\n"
    )
    assert key(made()) == key(made())


def test_a_module_of_the_user_is_read_attribute_by_attribute(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "settings_of_user.py").write_text("A = 1\nB = 2\n")
    module = __import__("settings_of_user")
    function = function_from("def f(x): return x + settings.A", settings=module)
    before = key(function)
    monkeypatch.setattr(module, "B", 3)
    assert key(function) == before
    monkeypatch.setattr(module, "A", 3)
    assert key(function) != before


def test_a_very_long_chain_is_refused_and_does_not_crash():
    chain: Any = None
    for _ in range(100_000):
        chain = Thing(next=chain)
    with pytest.raises(NoKeyError, match="deep"):
        key(chain)


def test_variables_are_numbered_as_they_are_met_and_their_values_do_not_count():
    import tensorflow as tf

    def walk(first: float, second: float) -> Walker:
        walker = Walker()
        walker.visit(Thing(a=tf.Variable(first), b=[tf.Variable([second])]), "value")
        return walker

    one, other = walk(1.0, 2.0), walk(3.0, 4.0)
    assert one.stream.components() == other.stream.components()
    assert [variable.shape.rank for variable in one.variables] == [0, 1]


@pytest.mark.parametrize("option", [{"trainable": False}, {"dtype": "float64"}, {"shape": [None]}])
def test_what_a_variable_is_counts(option):
    import tensorflow as tf

    assert key(tf.Variable([1.0])) != key(tf.Variable([1.0], **option))


def test_tensors_count_by_value():
    import tensorflow as tf

    assert key(tf.constant([1.0])) == key(tf.constant([1.0]))
    assert key(tf.constant([1.0])) != key(tf.constant([2.0]))
    assert key(tf.constant(["a"])) != key(tf.constant(["b"]))
