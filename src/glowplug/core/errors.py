"""Every error Glowplug raises on purpose, and the exit code its command line gives.

    GlowplugError
    ├── UsageError ............... 2  the call itself is wrong
    │   └── OutputExistsError
    ├── ModelError ............... 3  the model, the bundle or what was fed to it
    │   ├── NotAModelError
    │   ├── UnsupportedModelError
    │   ├── UnanswerableModelError
    │   ├── OutputMismatchError
    │   ├── InputError
    │   ├── ClosedError
    │   ├── WeightsError
    │   └── BundleError
    │       ├── NotABundleError          ├── TensorOverlapError
    │       ├── ManifestTooLargeError    ├── TensorOutOfBoundsError
    │       ├── ManifestMalformedError   ├── TensorMisalignedError
    │       ├── NewerFormatError         ├── TensorSizeError
    │       ├── MissingFileError         ├── UnknownDtypeError
    │       ├── FileSizeError            ├── PaddingError
    │       ├── DigestError              ├── GraphMalformedError
    │       ├── UnsafePathError          ├── OpNotAllowedError
    │       ├── UntrustedBundleError     ├── UnknownNodeError
    │       └── TfliteMalformedError
    ├── ProfileError ............. 3  a saved profile that cannot be read
    │   ├── ProfileDamagedError
    │   └── NewerSchemaError
    ├── RequestError ............. 5  a request that a server refuses
    │   └── NotReadyError
    ├── StorageError ............. 4  what holds files or objects
    │   ├── LocationError            ├── UnreachableError
    │   ├── SignatureError           ├── DamagedObjectError
    │   ├── SchemeError              ├── DiskFullError
    │   └── ObjectNotFoundError      └── AccessError
    ├── WrongTraceError .......... 5  a restored trace that a fresh one contradicts
    ├── StandbyError ............. 5  the warm fork server
    ├── ClusterError ............. 5  Ray, or a node of its cluster
    │   ├── NoClusterError
    │   ├── OtherVersionError
    │   └── RolloutError
    └── RuntimeFailure ........... 5  TensorFlow's C library
        ├── LibraryNotFoundError
        ├── LibraryVersionError
        ├── SymbolMissingError
        ├── ForkedError
        └── TensorFlowError

A message has three parts: what failed, the value seen, what to do next. The command line prints it once, in one
line, and exits with the class's code.
"""

from __future__ import annotations


class GlowplugError(Exception):
    """The root of the tree. `what` failed, `seen` is the offending value, `remedy` is the next thing to do."""

    exit_code = 5

    def __init__(self, what: str, *, seen: object = None, remedy: str = "") -> None:
        self.what = what
        self.seen = seen
        self.remedy = remedy
        text = what if seen is None else f"{what}: {seen}"
        super().__init__(f"{text}; {remedy}" if remedy else text)


class UsageError(GlowplugError):
    """The call is wrong: an unknown option, a path that is not there."""

    exit_code = 2


class OutputExistsError(UsageError):
    """The output is already there and `--force` was not given."""


class ModelError(GlowplugError):
    """A model or bundle that cannot be used, or an input that does not fit it."""

    exit_code = 3


class NotAModelError(ModelError):
    """The path holds no model that Glowplug knows."""


class UnsupportedModelError(ModelError):
    """A model that is well formed and that the chosen engine cannot run."""


class UnanswerableModelError(ModelError):
    """A model that cannot answer any call, whatever the engine and the input."""


class OutputMismatchError(ModelError):
    """The converted model and its source gave different answers."""


class InputError(ModelError):
    """An input of the wrong name, dtype or shape; the message shows the signature."""


class ClosedError(ModelError):
    """A model, session or tensor was used after `close()`."""


class WeightsError(ModelError):
    """Weights that do not fit the model: missing, extra, another shape or dtype, or never set."""


class BundleError(ModelError):
    """A bundle that is damaged or hostile."""


class NotABundleError(BundleError):
    """The directory has no manifest."""


class ManifestTooLargeError(BundleError):
    """The manifest is larger than any real one."""


class ManifestMalformedError(BundleError):
    """The manifest is not the JSON that the specification describes."""


class NewerFormatError(BundleError):
    """The bundle was written by a newer Glowplug."""


class MissingFileError(BundleError):
    """The manifest names a file that is not there."""


class FileSizeError(BundleError):
    """A file is not as long as the manifest says."""


class DigestError(BundleError):
    """The bytes of a file are not the ones that were packed."""


class UnsafePathError(BundleError):
    """A name in the manifest leaves the bundle's directory."""


class UntrustedBundleError(BundleError):
    """A `savedmodel` bundle from elsewhere was opened without `trust=True`."""


class TensorOverlapError(BundleError):
    """Two tensors claim the same bytes."""


class TensorOutOfBoundsError(BundleError):
    """A tensor reaches past the end of the weights."""


class TensorMisalignedError(BundleError):
    """A tensor does not start on a 64-byte boundary."""


class TensorSizeError(BundleError):
    """A tensor's byte count does not follow from its dtype and shape."""


class UnknownDtypeError(BundleError):
    """A tensor or signature names a dtype that does not exist or cannot be mapped."""


class PaddingError(BundleError):
    """The bytes between two tensors are not zero."""


class GraphMalformedError(BundleError):
    """The graph is not a well-formed GraphDef."""


class OpNotAllowedError(BundleError):
    """The graph holds an operation outside the allow-list, or a file name that is not an asset."""


class UnknownNodeError(BundleError):
    """The manifest names a graph node that the graph does not have."""


class TfliteMalformedError(BundleError):
    """A LiteRT model that is truncated, damaged or hostile."""


class ProfileError(GlowplugError):
    """A saved profile that cannot be used."""

    exit_code = 3


class ProfileDamagedError(ProfileError):
    """The file is no profile, or not a whole one."""


class NewerSchemaError(ProfileError):
    """The profile was written by a newer Glowplug."""


class RequestError(GlowplugError):
    """A request that the server refuses or could not answer. `code` is gRPC's (`INVALID_ARGUMENT`, ...)."""

    def __init__(self, what: str, *, seen: object = None, remedy: str = "", code: str = "INVALID_ARGUMENT") -> None:
        self.code = code
        super().__init__(what, seen=seen, remedy=remedy)


class NotReadyError(RequestError):
    """A request for a version that is still being loaded."""

    def __init__(self, what: str, *, seen: object = None, remedy: str = "try again") -> None:
        super().__init__(what, seen=seen, remedy=remedy, code="UNAVAILABLE")


class StorageError(GlowplugError):
    """A file or object could not be read, written or fetched."""

    exit_code = 4


class LocationError(StorageError):
    """A URL or path that cannot be used: an unknown scheme, a secret in it."""


class SignatureError(StorageError):
    """What was fetched has no signature, or none by a key that is trusted, or was altered since."""


class SchemeError(StorageError):
    """No installed package reads or writes this kind of storage."""


class ObjectNotFoundError(StorageError):
    """The storage has nothing under this name."""


class AccessError(StorageError):
    """The storage refuses these credentials, or there are none."""


class UnreachableError(StorageError):
    """The storage does not answer, or not now. `retry_after_s` is how long it asks to be left alone, if it does."""

    def __init__(self, what: str, *, seen: object = None, remedy: str = "", retry_after_s: float | None = None) -> None:
        self.retry_after_s = retry_after_s
        super().__init__(what, seen=seen, remedy=remedy)


class DamagedObjectError(StorageError):
    """What the storage holds is cut off, altered or not of the format."""


class DiskFullError(StorageError):
    """The disk of this machine has no room for what was asked for."""


class WrongTraceError(GlowplugError):
    """A step was restored whose trace, made again, is another: what it computed since is not to be used."""

    exit_code = 5


class StandbyError(GlowplugError):
    """A standby cannot be started, reached or trusted, or one of its children is gone."""

    exit_code = 5


class ClusterError(GlowplugError):
    """Ray, or a node of its cluster, could not do what was asked."""

    exit_code = 5


class NoClusterError(ClusterError):
    """No Ray cluster answers, or Ray is not installed."""


class OtherVersionError(ClusterError):
    """Ray, Python or Glowplug is another version on a node than here."""


class RolloutError(ClusterError):
    """A new version could not be fetched or warmed somewhere: the old one goes on."""


class RuntimeFailure(GlowplugError):  # noqa: N818 - `RuntimeError` is taken
    """TensorFlow's C library is missing, unsuitable or refused a call."""

    exit_code = 5


class LibraryNotFoundError(RuntimeFailure):
    """No TensorFlow wheel is installed for this interpreter."""


class LibraryVersionError(RuntimeFailure):
    """The installed TensorFlow is outside the supported range."""


class SymbolMissingError(RuntimeFailure):
    """The library lacks a function of the C API."""


class ForkedError(RuntimeFailure):
    """A model was called, or loaded, in a fork of a process that had loaded one."""


class TensorFlowError(RuntimeFailure):
    """A `TF_Status` that is not OK. `code` is TensorFlow's own (`INVALID_ARGUMENT`, ...)."""

    def __init__(self, what: str, *, seen: object = None, remedy: str = "", code: str = "UNKNOWN") -> None:
        self.code = code
        super().__init__(what, seen=seen, remedy=remedy)
