"""Brings the versions under a URL to this machine, in a process of its own: python -m …mirror ORDER

It lists the URL again and again, fetches through the node cache what is to be served, and gives each version a link in
one folder, which the front end watches like any base path. So no transfer holds up a request, and a version appears
whole: one that was pushed is whole once its description is there; of any other the listing must have come to rest, and
its files must be as long as they say. What it is doing stands in a small file beside the links.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from glowplug.bundle import layout
from glowplug.bundle.reader import read_manifest
from glowplug.core.disk.digest import sha256
from glowplug.core.disk.unfinished import new_file
from glowplug.core.errors import (
    DamagedObjectError,
    GlowplugError,
    ModelError,
    ObjectNotFoundError,
    SignatureError,
    StorageError,
    UntrustedBundleError,
)
from glowplug.loader.engines.savedmodel import FILES
from glowplug.loader.origin import LocalCopy, local_copy
from glowplug.store import tree
from glowplug.store.backend import Place, open_backend
from glowplug.store.location import Location, parse
from glowplug.store.progress import Transfer
from glowplug.store.signature import Trust, trust

from .arrivals import SETTLE_S, STILL_CHANGING
from .completeness import what_is_missing
from .mirror_protocol import STATUS, Order, Status
from .sources import Source, identify, version_number

_CANNOT_LIST = ("http", "https")
_NOTHING_YET = "there is no version of the model yet"
_OF_A_MODEL = (tree.NAME, layout.MANIFEST, layout.TFLITE, *FILES)
_LISTING_SHARE = 10  # a look takes at most this part of the time: large folders are looked at less often
_RETRY_S = 5.0
_REFUSED_FOR_S = 60.0  # what the storage may have mended meanwhile
_UNWANTED_FOR_S = 600.0  # workers of a version that is being replaced may have to be started again


@dataclass(frozen=True, slots=True)
class Found:
    """One version on the storage. `stamp` changes with any of its objects; `whole` says that it was pushed."""

    location: Location
    stamp: str
    whole: bool


@dataclass(frozen=True, slots=True)
class _Refusal:
    """Why a version that looks so is not used, and until when."""

    stamp: str
    why: str
    until: float


class Versions:
    """What a look at a URL shows: which versions there are, and, of those that are asked for, what they are.

    One listing says which folders there are; only versions that may be served are looked into.
    """

    def __init__(self, location: Location) -> None:
        self._location = location
        self._found: dict[int, Found] = {}
        self._names: dict[int, str] = {}
        if location.digest is not None:
            self._found[1] = Found(location, location.digest, whole=True)
            return
        self._place = open_backend(location)
        if location.scheme in _CANNOT_LIST:
            self._found[1] = Found(location, _web_stamp(self._place), whole=True)
            return
        children = list(self._place.backend.children(self._place.path))
        names = {one.path.rpartition("/")[2]: one.is_folder for one in children}
        if not {name for name, is_folder in names.items() if not is_folder}.isdisjoint(_OF_A_MODEL):
            single = self._look_into(location, self._place.path)
            if single is not None:
                self._found[1] = single
                return
        numbers = {name: version_number(name) for name, is_folder in names.items() if is_folder}
        self._names = {number: name for name, number in numbers.items() if number is not None}

    @property
    def numbers(self) -> list[int]:
        """The versions that there are, as far as is known."""
        return sorted({*self._found, *self._names})

    def find(self, number: int) -> Found | None:
        """Return a version, or None where it turns out to be none, and is not counted any more."""
        if number not in self._found:
            name = self._names.pop(number)
            found = self._look_into(self._location.child(name), self._place.child(name))
            if found is None:
                return None
            self._found[number] = found
        return self._found[number]

    def _look_into(self, location: Location, path: str) -> Found | None:
        start = len(path) + 1 if path else 0
        rows = [(one.path[start:], one.size, one.tag) for one in self._place.backend.list(path)]
        rows = [row for row in rows if row[0].partition("/")[0] != tree.POOL]
        names = {name for name, _, _ in rows}
        whole = tree.NAME in names
        if names.isdisjoint(_OF_A_MODEL):
            return None
        stamp = [row for row in rows if row[0] == tree.NAME] if whole else rows
        return Found(location, json.dumps(sorted(stamp)), whole)


def _web_stamp(place: Place) -> str:
    """Return what changes with the description at a web server, for as little as the server allows."""
    path = place.child(tree.NAME)
    for one in place.backend.list(path):
        if one.tag:
            return json.dumps([one.size, one.tag])
    return sha256(place.backend.read(path, 0, tree.MAX_BYTES + 1))


class Mirror:
    """The links of one folder, and what they stand for."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._folder = Path(order.folder)
        self._location = parse(order.url)
        self._trusted: Trust = trust(order.trusted_keys, required=order.require_signature)
        self._since: dict[int, tuple[str, float]] = {}
        self._linked: dict[int, tuple[str, LocalCopy]] = {}
        self._wanted_at: dict[int, float] = {}
        self._refused: dict[int, _Refusal] = {}
        self._waiting: dict[int, str] = {}
        self._said: Status | None = None

    def look(self) -> bool:
        """Look at the storage once, and do what there is to do; say whether all is here."""
        versions = Versions(self._location)
        self._waiting = {}
        refused: dict[int, str] = {}
        while True:
            left = [n for n in versions.numbers if n not in self._waiting and n not in refused]
            wanted = self._order.policy.choose(left)
            if all(self._is_here(number, versions, refused) for number in reversed(wanted)):
                break
        self._remove_unwanted(versions.numbers, {*wanted, *self._order.labelled})
        shown = self._order.policy.choose(versions.numbers)  # what nobody asked for is nobody's trouble
        waiting = {n: why for n, why in {**self._waiting, **refused}.items() if n in shown}
        self._say(error="" if versions.numbers else f"{_NOTHING_YET}: {self._location}", waiting=waiting)
        return not self._waiting and not refused

    def _is_here(self, number: int, versions: Versions, refused: dict[int, str]) -> bool:
        """Say whether a version is here, after what can be done about it; else note why it is not."""
        one = versions.find(number)
        if one is None:
            return False
        if not self._has_settled(number, one):
            self._waiting[number] = STILL_CHANGING
            return False
        why = self._why_refused(number, one)
        if not why and self._bring(number, one):
            return True
        refused[number] = why or self._why_refused(number, one)
        return False

    def _remove_unwanted(self, found: Collection[int], wanted: set[int]) -> None:
        """Let go of what is gone from the storage, or has not been wanted for a while."""
        now = time.monotonic()
        self._wanted_at.update(dict.fromkeys(wanted, now))
        for number in list(self._linked):
            if number not in found or now - self._wanted_at.get(number, now) > _UNWANTED_FOR_S:
                with contextlib.suppress(FileNotFoundError):
                    (self._folder / str(number)).unlink()
                self._linked.pop(number)[1].release()
        for link in self._folder.iterdir():  # of a mirror that ended, and was started again
            known = version_number(link.name)
            if known is not None and known not in found:
                link.unlink(missing_ok=True)

    def _has_settled(self, number: int, one: Found) -> bool:
        """Say whether a version that was not pushed has been left alone for a moment."""
        now = time.monotonic()
        stamp, since = self._since.get(number, ("", now))
        if one.whole or (number in self._linked and self._linked[number][0] == one.stamp):
            return True
        if stamp != one.stamp:
            self._since[number] = (one.stamp, now)
            return False
        return now - since >= SETTLE_S

    def _why_refused(self, number: int, one: Found) -> str:
        known = self._refused.get(number)
        return known.why if known is not None and known.stamp == one.stamp and time.monotonic() < known.until else ""

    def _bring(self, number: int, one: Found) -> bool:
        """Fetch and link a version if it is not here; say whether it is. What cannot be used is left alone for long."""
        known = self._linked.get(number)
        if known is not None and known[0] == one.stamp:
            return True

        def tell(transfer: Transfer) -> None:
            share = 100 * transfer.done_bytes // max(1, transfer.total_bytes)
            self._say(waiting={**self._waiting, number: f"being fetched, {share} %"})

        patience_s = float("inf")
        try:
            copy = local_copy(str(one.location), progress=tell, trusted=self._trusted)
            try:
                self._check(copy)
                self._link(number, copy)
            except BaseException:
                copy.release()
                raise
        except (ModelError, SignatureError) as error:
            why = str(error)
        except (DamagedObjectError, ObjectNotFoundError) as error:
            why, patience_s = str(error), _REFUSED_FOR_S
        else:
            if known is not None:
                known[1].release()
            self._linked[number] = (one.stamp, copy)
            return True
        self._refused[number] = _Refusal(one.stamp, why, time.monotonic() + patience_s)
        return False

    def _check(self, copy: LocalCopy) -> None:
        """Raise `ModelError` unless all of a model is there, and may be run."""
        source = identify(copy.path)
        if source is None:
            raise ModelError("this is neither a bundle nor a SavedModel")
        missing = what_is_missing(source)
        if missing:
            raise ModelError("the version is not whole", seen=missing)
        if _is_code(source) and not (self._order.trust or copy.signed):
            raise UntrustedBundleError(
                "a SavedModel from a URL can run any TensorFlow program, and no trusted key has signed this one",
                remedy="push it with --sign and serve with --trust-key, or serve with --trust",
            )

    def _link(self, number: int, copy: LocalCopy) -> None:
        temporary = self._folder / f".{number}"
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
        temporary.symlink_to(copy.path, target_is_directory=True)
        temporary.rename(self._folder / str(number))

    def fail(self, error: GlowplugError) -> None:
        """Say that the storage could not be looked at."""
        self._say(error=str(error), waiting={} if self._said is None else self._said.waiting)

    def _say(self, *, error: str = "", waiting: Mapping[int, str]) -> None:
        status = Status(error, dict(waiting))
        if status != self._said:
            self._said = status
            with new_file(str(self._folder / STATUS), mode=0o600) as stream:
                stream.write(json.dumps(asdict(status)).encode())


def _is_code(source: Source) -> bool:
    if source.kind == "bundle":
        return read_manifest(source.path).engine == "savedmodel"
    return source.kind == "saved_model"


def run(order: Order) -> None:
    """Mirror until the process is ended, or until all is here if one look is enough."""
    mirror = Mirror(order)
    while True:
        began = time.monotonic()
        done = False
        try:
            done = mirror.look()
        except StorageError as error:
            mirror.fail(error)
            time.sleep(_RETRY_S)
        if done and not order.poll_seconds:
            return
        took = time.monotonic() - began
        time.sleep(max(order.poll_seconds or SETTLE_S, took * _LISTING_SHARE if done else 0.0))


def main(arguments: Iterable[str]) -> int:
    """Run the order that is given as JSON."""
    (text,) = arguments
    run(Order.parse(text))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
