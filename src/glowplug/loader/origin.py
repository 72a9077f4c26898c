"""Where a model comes from: a path is used as it is, a URL becomes a directory of this host's node cache.

Everything that takes a bundle asks here. Nothing of `store` is imported for a path. For a URL little is imported before
the copy is found, so that whoever loads it can begin to open TensorFlow's library.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from glowplug.core.errors import BundleError, OutputExistsError, UntrustedBundleError, UsageError

if TYPE_CHECKING:
    from glowplug.store.node_cache.entries import Held
    from glowplug.store.progress import Progress
    from glowplug.store.pull import Foreseen
    from glowplug.store.push import Pushed
    from glowplug.store.signature import PrivateKey, Trust

Result = TypeVar("Result")


def is_url(where: object) -> bool:
    """Say whether a user meant a URL, not a path."""
    if not isinstance(where, str) or not (":/" in where or "//" in where):
        return False
    if "://" in where:
        return True
    from glowplug.store.location import is_url as is_meant_as_url

    return is_meant_as_url(where)


class LocalCopy:
    """What a user named, on this machine. What came from a URL is not removed until this is released."""

    __slots__ = ("_held", "path")

    def __init__(self, path: Path, held: Held | None = None) -> None:
        self.path = path
        self._held = held

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user should know about how it came here."""
        return self._held.notes if self._held is not None else ()

    @property
    def digest(self) -> str | None:
        """The digest of what came from a URL."""
        return self._held.digest if self._held is not None else None

    @property
    def signed(self) -> bool:
        """Whether it came from a URL with the signature of a key that is trusted. The origin may be asked for that."""
        return self._held is not None and self._held.signed

    def is_damaged(self) -> bool:
        """Read what came from a URL; say whether it is not what was fetched. It is then fetched again next time."""
        if self._held is None:
            return False
        from glowplug.store.node_cache import entries
        from glowplug.store.node_cache.folder import open_folder

        folder = open_folder()
        faults = entries.verify(folder, self._held.digest)
        if faults:
            entries.doubt(folder, self._held.digest)
        return bool(faults)

    def release(self) -> None:
        """Allow it to be removed. Doing so twice is harmless."""
        if self._held is not None:
            self._held.release()

    def __enter__(self) -> LocalCopy:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def local_copy(
    where: str | Path,
    *,
    progress: Progress | None = None,
    trusted: Trust | None = None,
    foreseen: Foreseen | None = None,
) -> LocalCopy:
    """Return what a path or URL names, on this machine.

    `trusted` says whose signatures count; `foreseen` is told the names of files before they are there.
    """
    if not is_url(where):
        return LocalCopy(Path(where))
    from glowplug.store.pull import obtain

    held = obtain(str(where), progress=progress, trusted=trusted, foreseen=foreseen)
    return LocalCopy(held.path, held)


def with_local_copy(
    where: str | Path,
    action: Callable[[LocalCopy], Result],
    *,
    progress: Progress | None = None,
    trusted: Trust | None = None,
    foreseen: Foreseen | None = None,
) -> Result:
    """Do something with what a path or URL names. If the node cache turns out to be damaged, it is repaired first.

    `action` releases the copy when it is done with it; if it raises, that is done here.
    """
    for last in (False, True):
        copy = local_copy(where, progress=progress, trusted=trusted, foreseen=foreseen)
        try:
            return action(copy)
        except BundleError as error:
            damaged = not last and not isinstance(error, UntrustedBundleError) and copy.is_damaged()
            copy.release()
            if not damaged:
                raise
        except BaseException:
            copy.release()
            raise
    raise AssertionError("unreachable")


def publish(
    directory: Path,
    url: str,
    *,
    key: PrivateKey | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Pushed:
    """Store a bundle or a SavedModel under a URL. Weights are cut where tensors begin, so that layers are chunks."""
    from glowplug.bundle import layout
    from glowplug.bundle.reader import open_bundle
    from glowplug.store.push import push

    from .engines.savedmodel import is_saved_model

    if not (directory / layout.MANIFEST).exists() and is_saved_model(directory):
        return push(directory, url, key=key, force=force, progress=progress)
    bundle = open_bundle(directory)
    boundaries = {layout.WEIGHTS: [tensor.offset for tensor in bundle.manifest.tensors]}
    return push(directory, url, boundaries=boundaries, key=key, force=force, progress=progress)


def refuse_published(url: str, *, force: bool) -> None:
    """Raise `OutputExistsError` when something is published under a URL and `force` is off."""
    from glowplug.core.errors import ObjectNotFoundError
    from glowplug.store import tree
    from glowplug.store.backend import open_backend
    from glowplug.store.location import parse

    location = parse(url)
    if location.digest is not None:
        raise UsageError("an output has no digest yet", seen=url, remedy="leave out what follows the @")
    place = open_backend(location)
    try:
        place.backend.size(place.child(tree.NAME))
    except ObjectNotFoundError:
        return
    if not force:
        raise OutputExistsError("the output exists already", seen=url, remedy="pass --force to replace it")
