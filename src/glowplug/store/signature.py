"""Signatures: ed25519 over a digest that stands for everything that was pushed.

A key is a PEM file, as `glowplug keygen` or OpenSSL writes it. A signature is an object of its own, named by the digest
and the key, so that a reader who trusts a key finds it without listing. What was signed is the kind of thing, too: a
signature of a bundle says nothing about a trace with the same digest.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from glowplug.core.disk.files import refuse_existing, write_file
from glowplug.core.disk.regular_files import open_regular
from glowplug.core.errors import SignatureError, UsageError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

Kind = Literal["bundle", "trace"]

FOLDER = "signatures"
TRUSTED_VARIABLE = "GLOWPLUG_TRUSTED_KEYS"
REQUIRED_VARIABLE = "GLOWPLUG_REQUIRE_SIGNATURE"

_NO = ("", "0", "false", "no", "off")
_HEAD = b"glowplug-signature-1 "
_RAW_BYTES = 32
_SIGNATURE_BYTES = 64
MAX_BYTES = len(_HEAD) + 2 * _SIGNATURE_BYTES + 1
_MAX_KEY_BYTES = 1 << 16
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_MAKE = "glowplug keygen FILE makes a pair"


@dataclass(frozen=True, slots=True)
class PublicKey:
    """Whose signatures are believed."""

    raw: bytes

    @property
    def id(self) -> str:
        """A short name that stands for the key in names of objects and in messages."""
        return hashlib.sha256(b"glowplug key\0" + self.raw).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class PrivateKey:
    """What signs. It never shows itself."""

    public: PublicKey
    _key: Ed25519PrivateKey = field(repr=False)

    def sign(self, kind: Kind, digest: str) -> bytes:
        """Return the signature to be stored."""
        return _HEAD + self._key.sign(_message(kind, digest)).hex().encode() + b"\n"


@dataclass(frozen=True, slots=True)
class Trust:
    """Whose signatures count, and whether there must be one."""

    keys: tuple[PublicKey, ...] = ()
    required: bool = False

    def signer(self, kind: Kind, digest: str, fetch: Callable[[str], bytes | None]) -> PublicKey | None:
        """Return the trusted key that signed the digest, None where none did and none had to.

        `fetch` gets the name of a signature, and returns its bytes or None where there is none.
        """
        for key in self.keys:
            data = fetch(object_name(digest, key))
            if data is not None:
                verify(key, kind, digest, data)
                return key
        if self.required:
            raise SignatureError(
                f"the {kind} must be signed by a trusted key, and is not" if self.keys else "no key is trusted",
                seen=f"trusted: {', '.join(key.id for key in self.keys) or 'none'}",
                remedy=f"push it with --sign KEY, or trust the public key of who signed it ({TRUSTED_VARIABLE})",
            )
        return None


def trust(keys: Iterable[str | os.PathLike[str]] = (), *, required: bool = False) -> Trust:
    """Return whom to believe: keys that are named here count alone, and one of them must have signed.

    Where none is named, those of the environment count, and a signature is needed where it, or `required`, says so.
    """
    named = tuple(read_public(Path(key)) for key in keys)
    if named:
        return Trust(named, required=True)
    listed = [Path(one) for one in os.environ.get(TRUSTED_VARIABLE, "").split(os.pathsep) if one]
    must = os.environ.get(REQUIRED_VARIABLE, "").strip().lower() not in _NO  # a wish for safety in any other words
    return Trust(tuple(read_public(path) for path in listed), required=required or must)


def object_name(digest: str, key: PublicKey) -> str:
    """Return the name of a key's signature below what was pushed."""
    return f"{FOLDER}/{digest}.{key.id}"


def verify(key: PublicKey, kind: Kind, digest: str, data: bytes) -> None:
    """Raise `SignatureError` unless `data` is this key's signature of the digest."""
    _cryptography()
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        if len(data) > MAX_BYTES or not data.startswith(_HEAD):
            raise ValueError
        Ed25519PublicKey.from_public_bytes(key.raw).verify(
            bytes.fromhex(data[len(_HEAD) :].decode("ascii").strip()), _message(kind, digest)
        )
    except (ValueError, InvalidSignature):
        raise SignatureError(
            f"the signature does not fit the {kind}",
            seen=f"digest {digest[:16]}…, key {key.id}",
            remedy="what is stored there was altered, or signed anew with another key: do not use it",
        ) from None


def make_key_pair(path: Path, *, force: bool = False) -> PublicKey:
    """Write a new private key to `path`, for this user alone, and its public key beside it, with `.pub` appended."""
    _cryptography()
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    refuse_existing(path, force=force)  # first: a folder need not have a name
    beside = public_path(path)
    refuse_existing(beside, force=force)
    key = Ed25519PrivateKey.generate()
    plain = serialization.NoEncryption()
    pem = serialization.Encoding.PEM
    write_file(path, key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain), mode=0o600)
    public = key.public_key()
    write_file(beside, public.public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo))
    return PublicKey(public.public_bytes_raw())


def public_path(path: Path) -> Path:
    """Return where the public key of a private one lies."""
    return path.with_name(f"{path.name}.pub")


def read_private(path: Path) -> PrivateKey:
    """Return the key that signs, from a PEM file that only its owner can read."""
    _cryptography()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    data, mode = _read(path)
    if mode & _OTHERS:
        raise SignatureError(
            "others can read or change this private key", seen=f"{path} (mode {mode:o})", remedy=f"chmod 600 {path}"
        )
    key = _loaded(path, "private", lambda: load_pem_private_key(data, password=None))
    if not isinstance(key, Ed25519PrivateKey):
        raise SignatureError("this is no ed25519 key", seen=path, remedy=_MAKE)
    return PrivateKey(PublicKey(key.public_key().public_bytes_raw()), key)


def read_public(path: Path) -> PublicKey:
    """Return the key whose signatures are believed, from a PEM file."""
    _cryptography()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    data, _ = _read(path)
    if b"PRIVATE KEY" in data:
        raise UsageError(
            "this is a private key, which need not be here", seen=path, remedy=f"trust its {public_path(path).name}"
        )
    key = _loaded(path, "public", lambda: load_pem_public_key(data))
    if not isinstance(key, Ed25519PublicKey):
        raise SignatureError("this is no ed25519 key", seen=path, remedy=_MAKE)
    return PublicKey(key.public_bytes_raw())


def _loaded(path: Path, what: str, load: Callable[[], Any]) -> Any:
    from cryptography.exceptions import UnsupportedAlgorithm

    try:
        return load()
    except TypeError:
        raise SignatureError(
            "the key has a passphrase", seen=path, remedy=f"openssl pkey -in {path} writes it without one"
        ) from None
    except (ValueError, UnsupportedAlgorithm):
        raise SignatureError(f"this is no {what} key in a PEM file", seen=path, remedy=_MAKE) from None


def _read(path: Path) -> tuple[bytes, int]:
    try:
        with os.fdopen(_opened(path), "rb") as stream:
            return stream.read(_MAX_KEY_BYTES), stat.S_IMODE(os.fstat(stream.fileno()).st_mode)
    except OSError as error:
        raise SignatureError("the key cannot be read", seen=f"{path} ({error.strerror})", remedy=_MAKE) from error


def _opened(path: Path) -> int:
    """Open an ordinary file, or the pipe of a shell's `<(...)`: a named pipe may never have a writer."""
    if str(path).startswith("/dev/fd/"):
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    return open_regular(path)


def _message(kind: Kind, digest: str) -> bytes:
    return f"glowplug {kind} 1\0{digest}".encode("ascii")


def _cryptography() -> None:
    try:
        import cryptography  # noqa: F401
    except ImportError:
        raise SignatureError(
            "signatures need a package", seen="cryptography", remedy="pip install 'glowplug[sign]'"
        ) from None
