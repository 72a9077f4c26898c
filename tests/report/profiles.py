"""Profiles made by hand for the renderers: a training run, one as large as they come, and a hostile one."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from glowplug.core.profile import (
    Finding,
    Loop,
    Process,
    Profile,
    Remedy,
    Round,
    Runs,
    Series,
    Span,
    phase_totals,
)

MS = 1_000_000
ROOT, CHILD, WORKER = 4100, 4180, 4107
HOSTILE = "</script><script>window.pwned=1</script><img src=x onerror=window.pwned=1>'\"&\u2028\x1b[31m{{7*7}}"


class Tape:
    """Writes spans one after another on one thread, nesting by `with`."""

    def __init__(self, pid: int = ROOT, thread: int | None = None, now_ns: int = 0) -> None:
        self.spans: list[Span] = []
        self.now_ns = now_ns
        self._pid, self._thread = pid, thread or pid
        self._open: list[int] = []
        self._base = (self._thread - ROOT) * 1_000_000

    @contextmanager
    def span(self, phase: str, name: str, kind: str, /, **attrs: Any) -> Iterator[None]:
        slot = len(self.spans)
        number = self._base + slot + 1
        parent = self._open[-1] if self._open else None
        start_ns = self.now_ns
        self.spans.append(Span(number, parent, self._pid, self._thread, phase, name, start_ns, start_ns))
        self._open.append(number)
        yield
        self._open.pop()
        self.spans[slot] = Span(
            number,
            parent,
            self._pid,
            self._thread,
            phase,
            name,
            start_ns,
            self.now_ns,
            {"kind": kind, **attrs},
        )

    def leaf(self, phase: str, name: str, kind: str, duration_ns: int, /, **attrs: Any) -> None:
        with self.span(phase, name, kind, **attrs):
            self.now_ns += duration_ns

    def spend(self, duration_ns: int) -> None:
        self.now_ns += duration_ns


def import_module(tape: Tape, name: str, self_ns: int, children: tuple[Any, ...] = (), /, **attrs: Any) -> None:
    """Import a module that takes `self_ns` itself and then imports `children`: (name, self_ns, children)."""
    path = f"lib/python3.11/site-packages/{name.replace('.', '/')}.py"
    with tape.span("import", name, "module", module=name, file=path, self_ns=self_ns, **attrs):
        tape.spend(self_ns // 2)
        for child in children:
            import_module(tape, child[0], child[1], child[2] if len(child) > 2 else (), importer=name)
        tape.spend(self_ns - self_ns // 2)


def training() -> Profile:
    """A Keras training run with two traces on its first step, a thread, a child process and a loop."""
    tape = Tape()
    tape.leaf("interpreter", "python", "start", 55 * MS)
    with tape.span("user_code", "__main__", "main", path="train.py"):
        import_module(
            tape,
            "keras",
            90 * MS,
            (
                ("keras.src", 60 * MS, (("numpy", 80 * MS), ("h5py", 70 * MS))),
                (
                    "tensorflow",
                    40 * MS,
                    (
                        ("tensorflow.python", 210 * MS, (("tensorflow.python.ops.math_ops", 620 * MS),)),
                        ("tensorflow.lite", 180 * MS),
                        ("tensorflow._api.v2", 140 * MS),
                    ),
                ),
            ),
            site="train.py:4",
            modules=2843,
            cpu_ns=1400 * MS,
            major_faults=12,
            read_bytes=9_000_000,
        )
        tape.leaf(
            "library_load",
            "libtensorflow_cc.so.2",
            "library",
            380 * MS,
            path="lib/libtensorflow_cc.so.2",
            bytes=788_000_000,
        )
        tape.leaf("runtime_init", "eager context", "context", 24 * MS, devices=["/CPU:0"], intra_op_threads=2)
        with tape.span("build", "resnet50", "model", **{"class": "Functional"}, layers=40, site="train.py:9"):
            for index in range(40):
                with tape.span("build", f"conv{index}", "layer", **{"class": "Conv2D"}, variables=1):
                    tape.spend(8 * MS)
                    tape.leaf(
                        "initializers",
                        f"conv{index}/kernel",
                        "variable",
                        (6 + index % 7) * MS,
                        name=f"conv{index}/kernel",
                        shape=[3, 3, 64, 64],
                        dtype="float32",
                        bytes=147_456 * (1 + index % 5),
                        initializer="GlorotUniform" if index % 4 else "Orthogonal",
                        initializer_ns=(5 + index % 7) * MS,
                        overwritten=index < 20,
                        layer=f"conv{index}",
                    )
        with tape.span(
            "build",
            "weights/resnet50.keras",
            "load",
            format="keras",
            path="weights/resnet50.keras",
            bytes=102_000_000,
        ):
            tape.spend(30 * MS)
            tape.leaf(
                "weights_read",
                "resnet50.keras",
                "read",
                140 * MS,
                format="keras",
                bytes=102_000_000,
                reads=330,
            )
            tape.leaf("weights_decode", "h5", "decode", 90 * MS, format="keras", bytes=102_000_000, count=320)
            tape.leaf("weights_assign", "variables", "assign", 60 * MS, bytes=102_000_000, count=320)
        tape.leaf("optimizer_setup", "Model.compile", "compile", 12 * MS, optimizer="Adam", site="train.py:12")
        tape.leaf("io_wait", "db.internal:5432", "io", 210 * MS, io="database", target="db.internal:5432", calls=1)
        with (
            tape.span("first_step", "fit", "fit", site="train.py:14", first=True),
            tape.span(
                "first_step",
                "one_step_on_data",
                "step",
                index=1,
                function="one_step_on_data",
                function_id=1,
                mode="train",
            ),
        ):
            for index, reason in ((1, "first"), (2, "variables_created")):
                with tape.span(
                    "trace",
                    "one_step_on_data",
                    "trace",
                    function="one_step_on_data",
                    function_id=1,
                    file="keras/src/backend/tensorflow/trainer.py",
                    line=117,
                    signature="(float32[8,224,224,3], int32[8])",
                    reason=reason,
                    trace_index=index,
                    graph_ops=11_925,
                    step=1,
                    keras=True,
                ):
                    tape.spend(6_400 * MS)
                    tape.leaf(
                        "trace",
                        "call",
                        "trace",
                        900 * MS,
                        function="call",
                        function_id=2,
                        reason="first",
                        graph_ops=2_100,
                    )
            with tape.span("graph_optimization", "one_step_on_data", "graph_optimization", measured="metric"):
                for name, duration in (("layout", 700), ("constant_folding", 1_300), ("remapper", 500)):
                    tape.leaf("graph_optimization", name, "pass", duration * MS, **{"pass": name}, count=2)
            tape.leaf("xla", "cluster_0", "xla_compile", 320 * MS, compilations=1)
            tape.spend(2_900 * MS)
        for index in (2, 3):
            tape.leaf(
                "steady_steps",
                "one_step_on_data",
                "step",
                2_150 * MS,
                index=index,
                function="one_step_on_data",
                function_id=1,
            )
        tape.leaf(
            "steady_steps",
            "one_step_on_data",
            "steps",
            4_200 * MS,
            first_index=4,
            count=2,
            busy_ns=4_180 * MS,
            function="one_step_on_data",
            function_id=1,
        )
        tape.spend(45 * MS)
    tape.spend(120 * MS)
    tape.leaf("exit", "exit", "exit", 480 * MS)
    wall_ns = tape.now_ns
    reader = Tape(ROOT, WORKER, 2_000 * MS)
    with reader.span("user_code", "prefetch", "thread"):
        reader.leaf("io_wait", "data.tfrecord", "io", 700 * MS, io="file", target="data.tfrecord", calls=40)
        reader.spend(100 * MS)
    child = Tape(CHILD, CHILD, 5_000 * MS)
    child.leaf("interpreter", "nvidia-smi", "process", 130 * MS)
    spans = tuple(sorted([*tape.spans, *reader.spans, *child.spans], key=lambda span: span.start_ns))
    main = [span for span in spans if span.thread == ROOT]
    phases = phase_totals(main, wall_ns)
    rounds = tuple(
        Round(
            (3_000 + 400 * index) * MS,
            (20 + 3 * index) * MS,
            545_000_000 + index * 18_000_000,
            6,
            32 + 16 * index,
            index,
        )
        for index in range(60)
    )
    return Profile(
        command=("python", "train.py", "resnet50"),
        exit_code=0,
        wall_ns=wall_ns,
        environment={
            "platform": "Linux-6.1-x86_64",
            "python": "3.11.7",
            "cpu_count": 2,
            "memory_bytes": 16_000_000_000,
            "versions": {"tensorflow": "2.21.0", "keras": "3.15.1", "numpy": "2.4.0"},
            "keras_backend": "tensorflow",
            "env": {"TF_CPP_MIN_LOG_LEVEL": "3"},
            "tensorflow_importer": {
                "module": "keras",
                "site": "train.py:4",
                "chain": ["__main__", "keras", "tensorflow"],
            },
            "runtime_used": True,
            "page_cache": "warm",
            "peak_rss_bytes": 1_793_000_000,
            "cpu_ns": 48_000 * MS,
            "major_faults": 12,
            "read_bytes": 9_000_000,
            "modules": 2843,
        },
        spans=spans,
        phases=phases,
        series=_series(wall_ns, 400),
        processes=(
            Process(
                ROOT,
                1,
                ("python", "train.py", "resnet50"),
                "root",
                0,
                wall_ns,
                0,
                True,
                {"peak_rss_bytes": 1_793_000_000, "threads": 9},
            ),
            Process(
                CHILD,
                ROOT,
                ("nvidia-smi", "-L"),
                "exec",
                5_000 * MS,
                5_130 * MS,
                9,
                False,
                {"peak_rss_bytes": 4_100_000},
            ),
        ),
        loops=(
            Loop(
                "train.py:31",
                "search",
                "Session",
                ROOT,
                rounds,
                {
                    "ns_per_round": 3_000_000.0,
                    "rss_bytes_per_round": 18_000_000.0,
                    "threads_per_round": 0.0,
                    "graph_ops_per_round": 16.0,
                    "traces_per_round": 1.0,
                },
                {"train.py:33": 880, "train.py:35": 64},
            ),
        ),
        notes=("nvidia-smi is not Python: profiled as a process",),
        findings=(
            Finding(
                "two_traces_on_first_step",
                "The training step was traced twice",
                {"function": "one_step_on_data", "traces": 2, "second_trace_ns": 7_300 * MS},
                7_300 * MS,
                Remedy(
                    "Variables were created inside the first trace, so TensorFlow traced again. Build the model and "
                    "the optimizer before the first step.",
                    "model.build(x.shape)\nmodel.optimizer.build(model.trainable_variables)",
                    "glowplug run train.py resnet50",
                    "reference/rules/two_traces_on_first_step.md",
                ),
                spans=tuple(span.id for span in spans if span.kind == "trace" and span.attrs.get("trace_index") == 2),
            ),
            Finding(
                "memory_grows_per_round",
                "Memory grows with each round of the loop",
                {"site": "train.py:31", "rounds": 60, "rss_bytes_per_round": 18_000_000.0},
                0,
                Remedy("Build once and reset the weights.", "train.reinitialize(model, seed=1)"),
                saves_bytes=1_080_000_000,
            ),
        ),
        runs=Runs(
            (wall_ns, wall_ns - 800 * MS, wall_ns + 1_300 * MS),
            {name: (ns, ns - ns // 50, ns + ns // 40) for name, ns in phases.items()},
            (48_000 * MS, 47_200 * MS, 48_900 * MS),
        ),
    )


def large(modules: int = 3_000, spans: int = 15_000) -> Profile:
    """A profile with many modules and spans, with attributes as long as real ones."""
    chance = random.Random(7)
    tape = Tape()
    tape.leaf("interpreter", "python", "start", 50 * MS)
    with tape.span("user_code", "__main__", "main", path="train.py"):
        left = modules
        while left > 0:
            left -= _import_tree(tape, chance, f"package{left % 40}", min(left, 400), 0)
        tape.leaf("runtime_init", "eager context", "context", 20 * MS)
        while len(tape.spans) < spans * 3 // 4:
            index = len(tape.spans)
            tape.leaf(
                "initializers",
                f"model/block_{index % 97}/layer_{index}/kernel",
                "variable",
                chance.randint(20_000, 900_000),
                name=f"model/block_{index % 97}/layer_{index}/kernel",
                shape=[chance.choice((64, 128, 768)), 768],
                dtype="float32",
                bytes=4 * 768 * chance.choice((64, 128, 768)),
                initializer=chance.choice(("GlorotUniform", "Zeros", "TruncatedNormal")),
                initializer_ns=chance.randint(1_000, 20_000),
                overwritten=index % 2 == 0,
                created_in="eager",
                layer=f"model/block_{index % 97}/layer_{index}",
                site="project/models/encoder.py:118",
            )
        while len(tape.spans) < spans - 4:
            index = len(tape.spans)
            with tape.span(
                "trace",
                f"function_{index % 60}",
                "trace",
                function=f"Encoder.function_{index % 60}",
                function_id=index % 60,
                file="project/models/encoder.py",
                line=index % 900,
                signature=f"(float32[{index % 32},128,768], int32[{index % 32},128])",
                reason="shape",
                trace_index=index // 60,
                graph_ops=chance.randint(10, 4000),
                site=f"project/train.py:{index % 300}",
            ):
                tape.spend(chance.randint(100_000, 3_000_000))
                tape.leaf("graph_optimization", "constant_folding", "pass", chance.randint(10_000, 200_000), count=1)
    tape.leaf("exit", "exit", "exit", 300 * MS)
    wall_ns = tape.now_ns
    return Profile(
        command=("python", "-m", "project.train"),
        exit_code=0,
        wall_ns=wall_ns,
        environment={"python": "3.11.7", "cpu_count": 2, "modules": modules},
        spans=tuple(tape.spans),
        phases=phase_totals(tape.spans, wall_ns),
        series=_series(wall_ns, 12_000),
        processes=(Process(ROOT, 1, ("python", "-m", "project.train"), "root", 0, wall_ns, 0, True),),
        loops=training().loops,
        findings=training().findings,
    )


def _import_tree(tape: Tape, chance: random.Random, name: str, budget: int, depth: int) -> int:
    """Import `name` and modules below it, nested up to 40 deep as real ones are, with names as long as real ones."""
    made = 1
    package = name.partition(".")[0]
    path = f"/opt/venvs/project/lib/python3.11/site-packages/{name.replace('.', '/')}/__init__.py"
    attrs = {
        "module": name,
        "file": path,
        "self_ns": chance.randint(90_000, 700_000),
        "importer": "package.python.framework",
    }
    with tape.span("import", name, "module", **attrs):
        tape.spend(attrs["self_ns"])
        while made < budget and (depth < 2 or chance.random() < 0.7) and depth < 40:
            below = f"{package}.python.area_{chance.randint(1, 30)}.module_{len(tape.spans)}"
            made += _import_tree(tape, chance, below, min(budget - made, 60), depth + 1)
    return made


def hostile() -> Profile:
    """Every string a target can choose is an attempt to break out of the page or the terminal."""
    spans = (
        Span(1, None, ROOT, ROOT, "user_code", HOSTILE, 0, 90 * MS, {"kind": "main", "path": HOSTILE}),
        Span(
            2,
            1,
            ROOT,
            ROOT,
            "import",
            HOSTILE,
            5 * MS,
            30 * MS,
            {"kind": "module", "self_ns": 9, "site": HOSTILE},
        ),
        Span(
            3,
            1,
            ROOT,
            ROOT,
            "initializers",
            HOSTILE,
            30 * MS,
            40 * MS,
            {
                "kind": "variable",
                "name": HOSTILE,
                "initializer": HOSTILE,
                "dtype": HOSTILE,
                "layer": HOSTILE,
                HOSTILE: HOSTILE,
            },
        ),
        Span(
            4,
            1,
            ROOT,
            ROOT,
            "trace",
            HOSTILE,
            40 * MS,
            50 * MS,
            {"kind": "trace", "function": HOSTILE, "reason": HOSTILE},
        ),
        Span(
            5,
            1,
            ROOT,
            ROOT,
            "build",
            HOSTILE,
            50 * MS,
            60 * MS,
            {"kind": "load", "format": HOSTILE, "path": HOSTILE},
        ),
        Span(
            6,
            1,
            ROOT,
            ROOT,
            "first_step",
            HOSTILE,
            60 * MS,
            70 * MS,
            {"kind": "step", "index": 1, "function": HOSTILE},
        ),
        Span(
            7,
            99,
            ROOT,
            3,
            "trace",
            "caf\udce9",
            0,
            10,
            {"kind": "trace", "__proto__": "x", "constructor": "y"},
        ),
    )
    rounds = tuple(Round(index, 5 * MS, 1, 1, 1, 1) for index in range(4))
    return Profile(
        command=(HOSTILE,),
        exit_code=-9,
        wall_ns=100 * MS,
        environment={
            HOSTILE: HOSTILE,
            "versions": {"tensorflow": HOSTILE},
            "python": HOSTILE,
            "env": {HOSTILE: HOSTILE},
        },
        spans=spans,
        phases=phase_totals(spans[:6], 100 * MS),
        series=(Series(HOSTILE, ((0, 1), (50, 2))), Series("rss_bytes", ((0, 1), (50, 2)))),
        processes=(Process(ROOT, 1, (HOSTILE,), HOSTILE, 0, 100 * MS, -9, True, {HOSTILE: HOSTILE}),),
        loops=(Loop(HOSTILE, HOSTILE, HOSTILE, ROOT, rounds, {HOSTILE: 1.0, "ns_per_round": 1.0}, {HOSTILE: 3}),),
        notes=(HOSTILE,),
        findings=(
            Finding(
                HOSTILE,
                HOSTILE,
                {HOSTILE: HOSTILE},
                5,
                Remedy(HOSTILE, HOSTILE, HOSTILE, f"javascript:{HOSTILE}"),
            ),
        ),
    )


def _series(wall_ns: int, points: int) -> tuple[Series, ...]:
    step = wall_ns // points
    rise = [40_000_000 + int(1_700_000_000 * (index / points) ** 0.6) for index in range(points)]
    return (
        Series("rss_bytes", tuple((index * step, value) for index, value in enumerate(rise))),
        Series(
            "pss_bytes",
            tuple((index * step, value * 9 // 10) for index, value in enumerate(rise) if index % 10 == 0),
        ),
        Series("threads", tuple((index * step, 1 + 8 * (index > points // 6)) for index in range(points))),
        Series("major_faults", tuple((index * step, min(12, index)) for index in range(points))),
        Series("read_bytes", tuple((index * step, 9_000_000 * index // points) for index in range(points))),
        Series("graph_ops", tuple((index * step, 200 * index // points) for index in range(0, points, 7))),
    )
