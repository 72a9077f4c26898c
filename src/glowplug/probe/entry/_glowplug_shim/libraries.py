"""Which module, once loaded, gets which instruments. Runs in the target."""

from __future__ import annotations

import atexit
import sys

from . import importing, runtime_state, threads
from .connections import Connections
from .recorder import Recorder
from .waits import Waits

TYPE_CHECKING = False  # type checkers take it for true; importing typing would cost the target 5 ms
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .activate import Run
    from .importing import Hook


LIBRARIES = ("tensorflow", "keras", "tf_keras", "h5py", "safetensors")


def install(recorder: Recorder, run: Run) -> None:
    """Record imports, and instrument what is imported."""
    hooks: dict[str, Hook] = {}
    triggers: dict[str, Callable[[], None]] = {}

    def when_tensorflow_is_loaded(_: Any) -> None:
        recorder.fact("threads_after_import", runtime_state.count_threads())
        # The last handler to be registered runs first: what TensorFlow registered counts as exit.
        atexit.register(run.end)

    def before_any_library() -> None:
        # A program that uses none of these libraries does not pay for their instruments.
        triggers.clear()
        for name, hook in _library_hooks(recorder, run).items():
            _add(hooks, name, hook)

    hooks["tensorflow"] = when_tensorflow_is_loaded
    for found in (Waits(recorder).hooks(), Connections(recorder).hooks()):
        for name, hook in found.items():
            _add(hooks, name, hook)
    _add(hooks, "threading", threads.install(recorder))
    triggers.update(dict.fromkeys(LIBRARIES, before_any_library))
    importing.install(recorder, hooks, triggers)


def _add(found: dict[str, Hook], name: str, hook: Hook) -> None:
    """Register a hook; at once where the module is loaded already, after the present one where there is one."""
    loaded = sys.modules.get(name)
    if loaded is not None:
        hook(loaded)
    elif name in found:
        earlier = found[name]

        def both(module: Any) -> None:
            earlier(module)
            hook(module)

        found[name] = both
    else:
        found[name] = hook


def _library_hooks(recorder: Recorder, run: Run) -> dict[str, Hook]:
    from .instruments import Instruments
    from .keras2 import Keras2Instruments
    from .keras3 import Keras3Instruments
    from .keras_calls import KerasCalls
    from .stores import StoreInstruments
    from .tf_functions import FunctionInstruments
    from .tf_graph import GraphInstruments
    from .tf_runtime import RuntimeInstruments
    from .tf_saving import SavingInstruments
    from .tf_variables import VariableInstruments

    instruments = Instruments(recorder)
    functions = FunctionInstruments(instruments)
    runtime = RuntimeInstruments(instruments)
    graph = GraphInstruments(instruments, runtime)
    variables = VariableInstruments(instruments)
    saving = SavingInstruments(instruments)
    keras3 = Keras3Instruments(instruments, KerasCalls(instruments, "Keras"), variables, saving)
    keras2 = Keras2Instruments(instruments, KerasCalls(instruments, "tf_keras"), saving)
    stores = StoreInstruments(instruments, saving)
    run.at_end = graph.flush

    def training_saver(module: Any) -> None:
        graph.install_saver(module)
        saving.install_saver(module)

    def polymorphic_function(module: Any) -> None:
        functions.install_calls(module)
        variables.install_unlifted(module)

    tensorflow = "tensorflow.python"
    return {
        f"{tensorflow}.eager.context": runtime.install_context,
        f"{tensorflow}.eager.polymorphic_function.tracing_compilation": functions.install_tracing,
        f"{tensorflow}.eager.polymorphic_function.polymorphic_function": polymorphic_function,
        f"{tensorflow}.eager.polymorphic_function.concrete_function": functions.install_concrete,
        f"{tensorflow}.data.ops.iterator_ops": runtime.install_iterators,
        f"{tensorflow}.client.session": runtime.install_session,
        f"{tensorflow}.framework.ops": graph.install_ops,
        f"{tensorflow}.ops.variables": graph.install_variables,
        f"{tensorflow}.ops.resource_variable_ops": variables.install,
        f"{tensorflow}.training.saver": training_saver,
        f"{tensorflow}.saved_model.load": saving.install_load,
        f"{tensorflow}.saved_model.loader_impl": saving.install_loader,
        f"{tensorflow}.saved_model.function_deserialization": saving.install_functions,
        f"{tensorflow}.checkpoint.functional_saver": saving.install_restore,
        f"{tensorflow}.checkpoint.checkpoint": saving.install_checkpoint,
        **keras3.hooks(),
        **keras2.hooks(),
        **stores.hooks(),
    }
