"""Loading while the caller does something else: `load_async`, `preload`, and a model's way to be ready.

Loading maps weights and reads none of them. Being ready means that they have been read and that the packed warm-up
calls have run, so that the first call takes no longer than the next ones. What is imported for it is imported in the
thread too: numpy alone would stop an event loop for a tenth of a second.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .pending import Pending, in_loop

if TYPE_CHECKING:
    from glowplug.bundle.reader import Bundle
    from glowplug.store.progress import Transfer
    from glowplug.store.signature import Trust

    from .model import Model

_PIECE_BYTES = 4 << 20
_READERS = 4  # one at a time does not keep an SSD busy


async def load_async(
    path: str | Path,
    *,
    progress: Callable[[str], object] | None = None,
    transfer: Callable[[Transfer], object] | None = None,
    **options: Any,
) -> Model:
    """Load a bundle while the event loop goes on. Options are those of `load`; callbacks are called in the loop.

    Whoever is cancelled while waiting gets no model: it is closed as soon as it is there.
    """
    told: Any = {"progress": in_loop(progress), "transfer": in_loop(transfer)}

    def work() -> Model:
        from .open import load

        return load(path, **told, **options)

    pending = Pending(work, "glowplug-load")
    try:
        return await pending
    except asyncio.CancelledError:
        pending.dispose(lambda model: model.close())
        raise


def preload(
    paths: str | Path | Iterable[str | Path],
    *,
    transfer: Callable[[Transfer], None] | None = None,
    trusted_keys: Sequence[str | Path] = (),
    require_signature: bool = False,
) -> Pending[list[Path]]:
    """Begin to fetch bundles to this machine and to read their weights, one after the other, and return at once.

    What comes back can be awaited, or waited for with `result()`, and gives the local directories. Loading need not
    wait for it. `transfer` is called in a thread.
    """
    wanted = [paths] if isinstance(paths, str | Path) else list(paths)

    def fetch() -> list[Path]:
        from glowplug.store.signature import trust

        trusted = trust(trusted_keys, required=require_signature)
        return [_preload_one(path, transfer, trusted) for path in wanted]

    return Pending(fetch, "glowplug-preload")


def read_weights(bundle: Bundle) -> int:
    """Read the weights of a bundle into the page cache, on several threads; return how many bytes they have."""
    from glowplug.bundle import layout

    if not bundle.manifest.tensors:
        return 0
    with bundle.open_file(layout.WEIGHTS) as stream, ThreadPoolExecutor(_READERS, "glowplug-read") as pool:
        size = os.fstat(stream.fileno()).st_size
        return sum(pool.map(lambda start: _read_piece(stream, start), range(0, size, _PIECE_BYTES)))


def _read_piece(stream: FileIO, start: int) -> int:
    return len(os.pread(stream.fileno(), _PIECE_BYTES, start))


def _preload_one(path: str | Path, transfer: Callable[[Transfer], None] | None, trusted: Trust) -> Path:
    from glowplug.bundle.reader import open_bundle

    from .engines.savedmodel import is_saved_model
    from .origin import local_copy

    with local_copy(path, progress=transfer, trusted=trusted) as copy:
        if not is_saved_model(copy.path):  # which is read when it is loaded, by TensorFlow
            read_weights(open_bundle(copy.path))
        return copy.path
