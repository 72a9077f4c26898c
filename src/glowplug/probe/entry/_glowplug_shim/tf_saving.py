"""SavedModels and checkpoints, by stage. Runs in the target."""

from __future__ import annotations

from . import storage, user_lines
from .instruments import Instruments

TYPE_CHECKING = False  # type checkers take it for true; importing typing would cost the target 5 ms
if TYPE_CHECKING:
    from typing import Any

    from .tracker import Attrs


class SavingInstruments:
    """Loading through TensorFlow."""

    def __init__(self, instruments: Instruments) -> None:
        self.instruments = instruments
        self.tracker = instruments.tracker

    def install_load(self, module: Any) -> None:
        """Instrument `tensorflow.python.saved_model.load`."""
        patch = self.instruments.patch("TensorFlow")
        timed = self.tracker.timed
        patch.replace(
            module, "load_partial", timed("build", "load", "load", enter=self.enter_load("saved_model"), loop="load")
        )

        def count_nodes(attrs: Attrs, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            attrs["count"] = len(args[0]._proto.nodes)

        patch.replace(module.Loader, "_load_all", timed("build", "saved_model_objects", "objects", enter=count_nodes))
        self._replace_restore(patch, module)

    def _replace_restore(self, patch: Any, module: Any) -> None:
        def enter(attrs: Attrs, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            attrs["format"] = "saved_model"
            attrs["count"] = sum(1 for node in args[0]._proto.nodes if node.WhichOneof("kind") == "variable")
            attrs["bytes"] = 0

        timed = self.tracker.timed
        patch.replace(module.Loader, "_restore_checkpoint", timed("weights_assign", "assign", "variables", enter=enter))

    def install_loader(self, module: Any) -> None:
        """Instrument `tensorflow.python.saved_model.loader_impl`."""

        def enter(attrs: Attrs, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            attrs.update({"format": "saved_model", "reads": 1, "path": str(args[0])})
            size = 0
            for name in ("saved_model.pb", "saved_model.cpb"):
                try:
                    size = storage.describe_path(f"{args[0]}/{name}")["bytes"] or size
                except KeyError:
                    continue
            attrs["bytes"] = size

        patch = self.instruments.patch("TensorFlow")
        timed = self.tracker.timed("weights_read", "read", "saved_model.pb", enter=enter)
        patch.replace(module, "parse_saved_model_with_debug_info", timed)
        v1_load = self.tracker.timed("build", "load", "load", enter=self.enter_load("saved_model", 1), loop="load")
        if hasattr(module, "SavedModelLoader"):
            patch.replace(module.SavedModelLoader, "load", v1_load, quiet=True)

    def install_functions(self, module: Any) -> None:
        """Instrument `tensorflow.python.saved_model.function_deserialization`."""

        def enter(attrs: Attrs, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            library = args[0] if args else kwargs["library"]
            attrs["count"] = len(library.function)

        timed = self.tracker.timed("build", "saved_model_functions", "functions", enter=enter)
        self.instruments.patch("TensorFlow").replace(module, "load_function_def_library", timed)

    def install_restore(self, module: Any) -> None:
        """Instrument `tensorflow.python.checkpoint.functional_saver`."""

        def enter(attrs: Attrs, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            attrs.update({"format": "checkpoint", "reads": 1, "bytes": 0})

        def leave(attrs: Attrs, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
            count = size = 0
            for tensors in result.values():
                for tensor in tensors.values() if hasattr(tensors, "values") else [tensors]:
                    count += 1
                    size += tensor.shape.num_elements() * tensor.dtype.size
            attrs["bytes"], attrs["count"] = size, count

        patch = self.instruments.patch("TensorFlow")
        timed = self.tracker.timed("weights_read", "read", "checkpoint", enter=enter, leave=leave)
        if not patch.replace(module, "_single_shard_restore", timed, quiet=True):
            for name in ("_SingleDeviceSaver", "SingleDeviceSaver"):
                saver = getattr(module, name, None)
                if saver is not None:
                    patch.replace(saver, "restore", timed)

    def install_checkpoint(self, module: Any) -> None:
        """Instrument `tensorflow.python.checkpoint.checkpoint`."""
        patch = self.instruments.patch("TensorFlow")
        outside = _not_inside_load
        for name in ("Checkpoint", "CheckpointV1"):
            owner = getattr(module, name, None)
            if owner is None:
                continue
            for method in ("restore", "read"):
                enter = self.enter_load("checkpoint", 1)
                timed = self.tracker.timed("build", "load", "checkpoint", enter=enter, when=outside, loop="load")
                patch.replace(owner, method, timed, quiet=True)

    def install_saver(self, module: Any) -> None:
        """Instrument `tensorflow.python.training.saver`."""
        enter = self.enter_load("tf1_checkpoint", 2)
        timed = self.tracker.timed("weights_read", "load", "Saver.restore", enter=enter, loop="load")
        self.instruments.patch("TensorFlow").replace(module.Saver, "restore", timed)

    def enter_load(self, form: str, position: int = 0) -> Any:
        """Return a function that describes the start of a load whose path is the argument at `position`."""

        def enter(attrs: Attrs, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            path = args[position] if len(args) > position else next(iter(kwargs.values()), "")
            attrs["format"] = form
            attrs["in_event_loop"] = storage.in_event_loop()
            user_lines.with_site(attrs, 4)
            attrs.update(storage.describe_path(path))
            attrs["_name"] = attrs["path"]

        return enter


def _not_inside_load(stack: list[str], args: tuple[Any, ...]) -> bool:
    return "load" not in stack
