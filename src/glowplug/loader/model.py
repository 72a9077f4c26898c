"""`Model`: a loaded bundle that is called like a function."""

from __future__ import annotations

from _thread import allocate_lock
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from glowplug.bundle.reader import Bundle
from glowplug.core.errors import InputError, TensorFlowError
from glowplug.core.manifest import Signature

from .engines.engine import Engine

if TYPE_CHECKING:
    from typing import TypeAlias

    from numpy.typing import NDArray

    from glowplug.bundle.warmup import Request

    from .info import Info
    from .origin import LocalCopy
    from .pending import Pending

    Answer: TypeAlias = NDArray[Any] | dict[str, NDArray[Any]]

_DEFAULT = "serving_default"
_readiness_lock = allocate_lock()
_CALLERS_FAULT = ("INVALID_ARGUMENT", "OUT_OF_RANGE")


class CallableSignature:
    """One signature of a model."""

    __slots__ = ("_bind", "_engine", "_name", "signature")

    def __init__(self, engine: Engine, name: str) -> None:
        from .arguments import bind

        self._bind = bind
        self._engine = engine
        self._name = name
        self.signature: Signature = engine.signatures[name]

    def __call__(self, value: Any = None, /, **named: Any) -> Answer:
        """Answer one call: an array for a signature of one input, or a dict by name.

        Returns an array if the signature has one output, else a dict.
        """
        results = self._run(value, named)
        if len(results) == 1:
            return results[0]
        return dict(zip(self.signature.outputs, results, strict=True))

    def array(self, value: Any = None, /, **named: Any) -> NDArray[Any]:
        """Answer one call of a signature that has one output: always an array, so that nobody need ask which it is."""
        if len(self.signature.outputs) != 1:
            raise InputError(
                f"signature {self._name!r} has not one output",
                seen=", ".join(self.signature.outputs),
                remedy="call arrays(), which returns all of them by name",
            )
        return self._run(value, named)[0]

    def arrays(self, value: Any = None, /, **named: Any) -> dict[str, NDArray[Any]]:
        """Answer one call: always a dict of the outputs by name, also where there is one."""
        return dict(zip(self.signature.outputs, self._run(value, named), strict=True))

    def _run(self, value: Any, named: Mapping[str, Any]) -> list[NDArray[Any]]:
        arrays = self._bind(self._name, self.signature, value, named)
        try:
            return self._engine.run(self._name, arrays)
        except TensorFlowError as error:
            if error.code not in _CALLERS_FAULT:
                raise
            raise InputError(
                f"TensorFlow refused the inputs of signature {self._name!r}",
                seen=str(error.seen).splitlines()[0],
                remedy=f"it is {self.signature}",
            ) from error


class Model:
    """A loaded model. Call it, from as many threads as you like; close it, or use it in a `with` block."""

    def __init__(self, engine: Engine, bundle: Bundle) -> None:
        self._engine = engine
        self._bundle = bundle
        self._copy: LocalCopy | None = None
        self._info: Info | None = None
        self._signatures = {name: CallableSignature(engine, name) for name in engine.signatures}
        self._readiness: Pending[None] | None = None

    @property
    def info(self) -> Info:
        """Where the model came from and how it was loaded."""
        if self._info is None:
            from .info import describe  # once somebody asks: a first prediction needs none of it

            self._info = describe(self._bundle, self._engine)
        return self._info

    @property
    def signatures(self) -> Mapping[str, Signature]:
        """The ways to call the model, by name."""
        return self._engine.signatures

    @property
    def engine(self) -> str:
        """The engine that runs the model: `native`, `litert` or `savedmodel`."""
        return self._bundle.manifest.engine

    def signature(self, name: str) -> CallableSignature:
        """Return the signature of that name, to be called."""
        try:
            return self._signatures[name]
        except KeyError:
            raise InputError(
                "the model has no such signature", seen=name, remedy=f"it has {', '.join(self._signatures)}"
            ) from None

    def __call__(self, value: Any = None, /, **named: Any) -> Answer:
        """Call the signature `serving_default`, or the only one there is."""
        return self._default()(value, **named)

    def array(self, value: Any = None, /, **named: Any) -> NDArray[Any]:
        """Call the same signature, which has one output: always an array."""
        return self._default().array(value, **named)

    def arrays(self, value: Any = None, /, **named: Any) -> dict[str, NDArray[Any]]:
        """Call the same signature: always a dict of the outputs by name."""
        return self._default().arrays(value, **named)

    def _default(self) -> CallableSignature:
        name = _DEFAULT if _DEFAULT in self._signatures or len(self._signatures) != 1 else next(iter(self._signatures))
        return self.signature(name)

    def warmup_requests(self) -> list[Request]:
        """Return the calls that were packed with the model to warm it up."""
        from glowplug.bundle.warmup import read_requests

        return read_requests(self._bundle)

    def warm_up(self) -> list[int]:
        """Run the packed warm-up calls and return how many nanoseconds each took."""
        from glowplug.core.clock import now_ns

        durations = []
        for request in self.warmup_requests():
            began = now_ns()
            self.signature(request.signature)(dict(request.inputs))
            durations.append(now_ns() - began)
        return durations

    def keep(self, copy: LocalCopy) -> None:
        """Keep what the model was loaded from in the node cache until the model is closed."""
        self._copy = copy
        self._engine.notes[:0] = copy.notes

    def note(self, text: str) -> None:
        """Add to what `info.notes` says."""
        self._engine.notes.append(text)
        self._info = None

    def when_ready(self) -> Pending[None]:
        """Begin to read the weights and to run the packed warm-up calls; return what can be awaited, or waited for.

        Afterwards a first call takes no longer than the next ones. Asking again gives the same answer.
        """
        from .pending import Pending

        with _readiness_lock:
            if self._readiness is None:
                self._readiness = Pending(self._make_ready, "glowplug-ready")
            return self._readiness

    def _make_ready(self) -> None:
        from .ahead import read_weights

        read_weights(self._bundle)
        self.warm_up()

    def close(self) -> None:
        """Free the model. Closing twice is harmless; calling it afterwards raises `ClosedError`."""
        self._engine.close()
        if self._copy is not None:
            self._copy.release()

    def __enter__(self) -> Model:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        ways = "; ".join(f"{name}{signature}" for name, signature in self.signatures.items())
        return f"<glowplug.Model {self.info.path.name} ({self.engine}): {ways}>"
