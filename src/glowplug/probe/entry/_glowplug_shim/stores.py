"""Files that hold weights: HDF5, zip archives, safetensors. Runs in the target."""

from __future__ import annotations

from .instruments import Instruments
from .tf_saving import SavingInstruments

TYPE_CHECKING = False  # type checkers take it for true; importing typing would cost the target 5 ms
if TYPE_CHECKING:
    from typing import Any

    from .tracker import Attrs


class StoreInstruments:
    """Reads of weights as spans, with bytes and number of reads."""

    def __init__(self, instruments: Instruments, saving: SavingInstruments) -> None:
        self.instruments = instruments
        self.tracker = instruments.tracker
        self.saving = saving

    def hooks(self) -> dict[str, Any]:
        """Return the hooks by module."""
        return {
            "h5py._hl.dataset": self.install_dataset,
            "h5py._hl.files": self.install_file,
            "zipfile": self.install_zip,
            "safetensors.numpy": self.install_safetensors,
            "safetensors.tensorflow": self.install_safetensors,
        }

    def install_dataset(self, module: Any) -> None:
        """Instrument reads of HDF5 datasets: decoding where the file is in memory, reading where it is on disk."""

        def enter(attrs: Attrs, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            dataset = args[0]
            file = dataset.file
            attrs.update({"format": "h5", "bytes": int(dataset.nbytes), "count": 1, "reads": 1})
            attrs["_name"] = str(dataset.name)
            if file.driver == "fileobj":
                attrs.update({"kind": "decode", "_phase": "weights_decode"})
            else:
                attrs["path"] = str(file.filename)

        patch = self.instruments.patch("h5py")
        timed = self.tracker.timed("weights_read", "read", "dataset", enter=enter, when=_not_reading)
        for name in ("__getitem__", "__array__", "read_direct", "astype"):
            if name != "astype":
                patch.replace(module.Dataset, name, timed, quiet=True)

    def install_file(self, module: Any) -> None:
        """Instrument the opening of an HDF5 file."""

        def enter(attrs: Attrs, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            name = args[1] if len(args) > 1 else kwargs.get("name")
            attrs.update({"format": "h5", "bytes": 0, "reads": 1, "path": str(name)})
            if not isinstance(name, (str, bytes)) and not hasattr(name, "__fspath__"):
                attrs.update({"kind": "decode", "_phase": "weights_decode", "count": 0, "path": "memory"})

        timed = self.tracker.timed("weights_read", "read", "open", enter=enter, when=_not_reading)
        self.instruments.patch("h5py").replace(module.File, "__init__", timed)

    def install_zip(self, module: Any) -> None:
        """Instrument reads from an archive while a model is loaded."""

        def enter(attrs: Attrs, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            attrs.update(
                {"format": "keras", "reads": 1, "path": str(getattr(args[0], "filename", getattr(args[0], "name", "")))}
            )

        def leave(attrs: Attrs, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
            attrs["bytes"] = (
                len(result) if isinstance(result, (bytes, bytearray)) else result if isinstance(result, int) else 0
            )

        def extracted(attrs: Attrs, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
            member = args[1] if len(args) > 1 else kwargs.get("member")
            info = args[0].getinfo(member) if isinstance(member, str) else member
            attrs["bytes"] = int(getattr(info, "file_size", 0))

        patch = self.instruments.patch("zipfile")
        timed = self.tracker.timed
        for name in ("read", "read1", "readinto"):
            reads = timed("weights_read", "read", "archive", enter=enter, leave=leave, when=_loading_not_reading)
            patch.replace(module.ZipExtFile, name, reads, quiet=True)
        extract = timed("weights_read", "read", "archive", enter=enter, leave=extracted, when=_loading_not_reading)
        for name in ("extract", "extractall"):
            patch.replace(module.ZipFile, name, extract, quiet=True)
        opened = timed("weights_read", "read", "archive", enter=enter, when=_loading_not_reading)
        patch.replace(module.ZipFile, "__init__", opened)

    def install_safetensors(self, module: Any) -> None:
        """Instrument `load_file` and `load`."""
        patch = self.instruments.patch("safetensors")
        enter = self.saving.enter_load("safetensors")

        def leave(attrs: Attrs, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
            attrs["variables"] = len(result)

        timed = self.tracker.timed("weights_read", "load", "load_file", enter=enter, leave=leave, loop="load")
        patch.replace(module, "load_file", timed)

        def enter_bytes(attrs: Attrs, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            attrs.update({"format": "safetensors", "bytes": len(args[0]), "count": 0})

        decode = self.tracker.timed("weights_decode", "decode", "safetensors", enter=enter_bytes)
        patch.replace(module, "load", decode, quiet=True)


def _not_reading(stack: list[str], args: tuple[Any, ...]) -> bool:
    return not stack or stack[-1] not in ("read", "decode")


def _loading_not_reading(stack: list[str], args: tuple[Any, ...]) -> bool:
    return "load" in stack and stack[-1] not in ("read", "decode")
