"""What a bundle says about itself: the values behind `bundle.json`.

These are plain values. `bundle.schema` turns them into JSON and back, and refuses what is wrong; this module only
says what there is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from .records import Record

FORMAT_VERSION = 1

Engine = Literal["native", "litert", "savedmodel"]
_NOTHING: Mapping[str, Any] = {}
ENGINES: tuple[Engine, ...] = ("native", "litert", "savedmodel")


class TensorSpec(Record):
    """A dtype and a shape. `None` as a dimension means any size; `None` as the shape means any rank."""

    dtype: str
    shape: tuple[int | None, ...] | None

    def __str__(self) -> str:
        if self.shape is None:
            return f"{self.dtype}[...]"
        return f"{self.dtype}[{', '.join('?' if n is None else str(n) for n in self.shape)}]"


class Port(Record):
    """One named input or output of a signature, and the graph tensor (`node:index`) that carries it."""

    spec: TensorSpec
    tensor: str


class Signature(Record):
    """One way to call the model.

    `weights` are indices into the manifest's tensor table: what must be fed with each call. `targets` are nodes that
    run for their side effects. `method` is what the source says that the signature is for; it may say nothing.
    """

    inputs: Mapping[str, Port]
    outputs: Mapping[str, Port]
    weights: tuple[int, ...] = ()
    targets: tuple[str, ...] = ()
    method: str = ""

    def __str__(self) -> str:
        def side(ports: Mapping[str, Port]) -> str:
            return ", ".join(f"{name}: {port.spec}" for name, port in ports.items())

        return f"({side(self.inputs)}) -> ({side(self.outputs)})"


class StoredTensor(Record):
    """A tensor of `weights.bin`, the placeholder `node` that takes it, and the name its source gave it.

    An empty `node` means that no graph reads it: it is there for a variable.
    """

    node: str
    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int
    nbytes: int


class StoredVariable(Record):
    """A variable of the source whose value is the bytes of tensor number `tensor`, in a shape of its own."""

    name: str
    shape: tuple[int, ...]
    tensor: int


class Asset(Record):
    """A file of the bundle whose path is fed to the placeholder `node` while the initialisers run."""

    node: str
    path: str


class InitStep(Record):
    """One run before the first call: `weights` (indices) and all assets are fed, `targets` run."""

    targets: tuple[str, ...]
    weights: tuple[int, ...] = ()


class FileEntry(Record):
    """The length and SHA-256 of one file of the bundle."""

    size: int
    sha256: str


class Fingerprint(Record):
    """What `graph.pb` was optimised for. Elsewhere `graph.portable.pb` is used instead."""

    tensorflow: str
    cpu: tuple[str, ...]
    environment: Mapping[str, str] = _NOTHING


Interface = Literal["compiled", "declared", "interpreter"]
INTERFACES: tuple[Interface, ...] = ("compiled", "declared", "interpreter")


class PackedWeights(Record):
    """The weights of `model.tflite` as the kernels of one machine read them: a file that can be made again.

    It is not among the bundle's files: where `machine` is another, or it is missing, a user's cache has one. `machine`
    stands for the model, the processor and the release of LiteRT that made it.
    """

    machine: str
    size: int
    sha256: str


class LiteRTSettings(Record):
    """How `model.tflite` is run.

    `interface` is `compiled` (LiteRT's `CompiledModel`, whatever the shapes), `declared` (that for the shapes in the
    file, an interpreter for others) or `interpreter`. With `any_shape` a call may have other shapes than the declared
    ones, as LiteRT itself allows; a model that was converted is right for the declared ones only. `largest` is up to
    which magnitude of floating-point inputs it answers as its source does, where it does not so for all: a call with
    larger numbers, or with what is no number, is refused.
    """

    interface: Interface
    any_shape: bool = False
    packed: PackedWeights | None = None
    largest: float | None = None


class Manifest(Record):
    """The whole of `bundle.json`."""

    engine: Engine
    signatures: Mapping[str, Signature]
    files: Mapping[str, FileEntry]
    tensors: tuple[StoredTensor, ...] = ()
    variables: tuple[StoredVariable, ...] = ()
    assets: tuple[Asset, ...] = ()
    initializers: tuple[InitStep, ...] = ()
    op_libraries: tuple[str, ...] = ()
    fingerprint: Fingerprint | None = None
    provenance: Mapping[str, Any] = _NOTHING
    equivalence: Mapping[str, Any] = _NOTHING
    litert: LiteRTSettings | None = None
    measured: Mapping[str, Any] = _NOTHING
