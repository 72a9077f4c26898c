"""What the server can do, whichever protocol asks: predict, classify, regress, tell status and metadata.

Inputs are arrays and messages, outputs too; bodies and wire forms belong to `rest` and `rpc`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import numpy as np

from glowplug.core.dtypes import BY_NAME
from glowplug.core.errors import NotReadyError, RequestError

from .metrics.registry import Metrics
from .models.catalog import Catalog
from .models.versions import Version
from .recording import Recorder
from .telemetry.trail import Watch, failure_code
from .wire import inference
from .wire.calls import Arrays, ModelReference, check_inputs, choose_outputs, find_signature
from .wire.examples import serialized
from .wire.messages import serving
from .wire.statuses import CODES
from .workers.group import Group

_MAX_WAITING = 1000  # calls that may wait for a version to be loaded

Waiting = Callable[[], Awaitable[None]]
T = TypeVar("T")


class Service:
    """The operations of the API over the catalogue of models. `watch` is there where requests are followed."""

    def __init__(
        self,
        catalog: Catalog,
        metrics: Metrics,
        recorder: Recorder | None = None,
        wait: Waiting | None = None,
        watch: Watch | None = None,
    ) -> None:
        self.catalog, self._metrics, self._recorder, self._watch = catalog, metrics, recorder, watch
        self._wait, self._waiting = wait, 0

    async def when_ready(self, call: Callable[[], Awaitable[T]], timeout_s: float) -> T:
        """Make a call again each time a version changed, for as long as the one that it wants is being loaded.

        A client of TensorFlow Serving finds the port closed until the models are there. Here it is open before, so
        that the state can be asked; whoever took that for ready waits, and does not fail.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        self._waiting += 1
        try:
            while self._wait is not None and self._waiting <= _MAX_WAITING:
                try:
                    await asyncio.wait_for(self._wait(), deadline - loop.time())
                except TimeoutError:
                    break
                try:
                    return await call()
                except NotReadyError:
                    continue
            return await call()
        finally:
            self._waiting -= 1

    def stop_waiting(self) -> None:
        """Let calls for versions that are still being loaded fail from now on."""
        self._wait = None

    async def predict(
        self, target: ModelReference, signature: str, inputs: Arrays, wanted: list[str], timeout_s: float
    ) -> tuple[Version, str, dict[str, Any]]:
        """Run a signature. Returns the version that answered, the signature's name and the outputs."""
        version, group = self.catalog.group(target)
        name, declared = find_signature(group.signatures, signature)
        check_inputs(name, declared, inputs)
        outputs = choose_outputs(declared, wanted)
        answer = await self._submit(version, group, name, inputs, tuple(outputs), timeout_s)
        if self._recorder is not None:
            self._recorder.offer(version, name, inputs)
        return version, name, answer

    async def _submit(
        self, version: Version, group: Group, name: str, inputs: Arrays, outputs: tuple[str, ...], timeout_s: float
    ) -> dict[str, Any]:
        began = time.perf_counter()
        call = None if self._watch is None else self._watch.call(version.model, version.number, name)
        try:
            answer = await group.submit(name, inputs, outputs, timeout_s, None if call is None else call.timing)
        except BaseException as error:
            self._metrics.failed(version, name, failure_code(error))
            if self._watch is not None and call is not None:
                self._watch.called(call, error)
            raise
        seconds = time.perf_counter() - began
        version.first_answer_s = version.first_answer_s or seconds
        self._metrics.answered(version, name, seconds)
        if self._watch is not None and call is not None:
            self._watch.called(call)
        return answer

    async def infer(
        self, method: str, target: ModelReference, signature: str, given: Any, timeout_s: float
    ) -> tuple[Version, str, Any]:
        """Classify or regress examples. Returns the version, the signature's name and the result message.

        `given` is an `Input` message, or the examples of one, serialized.
        """
        version, group = self.catalog.group(target)
        name, declared = find_signature(group.signatures, signature)
        inference.check_signature(method, name, declared)
        examples = given if hasattr(given, "shape") else serialized(given)
        outputs = tuple(declared.outputs)
        answer = await self._submit(version, group, name, {"inputs": examples}, outputs, timeout_s)
        build = inference.classification if method == "classify" else inference.regression
        arrays = {key: np.asarray(array) for key, array in answer.items()}  # very many strings come packed
        return version, name, build(arrays, len(examples))

    async def multi_infer(self, tasks: list[Any], given: Any, timeout_s: float) -> list[Any]:
        """Answer several classify and regress tasks over the same examples."""
        if not tasks:
            raise RequestError("MultiInferenceRequest::tasks is empty")
        if len({task.model_spec.name for task in tasks}) > 1:
            raise RequestError("All ModelSpecs in a MultiInferenceRequest must access the same model name")
        results = []
        for task in tasks:
            method = inference.METHODS.get(task.method_name)
            if method is None:
                raise RequestError("Unsupported signature method_name", seen=task.method_name, code="UNIMPLEMENTED")
            spec = task.model_spec
            version, name, found = await self.infer(method, read_target(spec), spec.signature_name, given, timeout_s)
            result = serving("InferenceResult")(model_spec=write_spec(version, name))
            getattr(result, f"{'classification' if method == 'classify' else 'regression'}_result").CopyFrom(found)
            results.append(result)
        return results

    def metadata(self, target: ModelReference) -> tuple[Version, Any]:
        """Return a version and the `SignatureDefMap` that describes it."""
        version, group = self.catalog.group(target)
        found = serving("SignatureDefMap")()
        for name, signature in group.signatures.items():
            entry = found.signature_def[name]
            entry.method_name = inference.method_name(signature)
            for ports, infos in ((signature.inputs, entry.inputs), (signature.outputs, entry.outputs)):
                for key, port in ports.items():
                    info = infos[key]
                    info.name = port.tensor
                    info.dtype = BY_NAME[port.spec.dtype].code
                    info.tensor_shape.SetInParent()
                    if port.spec.shape is None:
                        info.tensor_shape.unknown_rank = True
                    for size in port.spec.shape or ():
                        info.tensor_shape.dim.add(size=-1 if size is None else size)
        return version, found

    def status(self, target: ModelReference) -> Any:
        """Return the `GetModelStatusResponse` for a model or one version of it."""
        response = serving("GetModelStatusResponse")()
        for version in self.catalog.statuses(target):
            entry = response.model_version_status.add(version=version.number, state=int(version.state))
            entry.status.error_code = CODES[version.code]
            entry.status.error_message = version.error
        return response


def read_target(spec: Any) -> ModelReference:
    """Return which model a `ModelSpec` means."""
    if not spec.name:
        raise RequestError("ModelSpec has no name specified")
    choice = spec.WhichOneof("version_choice")
    return ModelReference(
        spec.name,
        spec.version.value if choice == "version" else None,
        spec.version_label if choice == "version_label" else None,
    )


def write_spec(version: Version, signature: str, spec: Any = None) -> Any:
    """Return the `ModelSpec` that an answer carries, written into `spec` where one is given."""
    spec = serving("ModelSpec")() if spec is None else spec
    spec.name, spec.signature_name, spec.version.value = version.model, signature, version.number
    return spec
