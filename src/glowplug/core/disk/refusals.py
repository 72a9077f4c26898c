"""What to do where the system refuses a file: the third part of a message, by the number of the error."""

from __future__ import annotations

import errno

_REMEDIES = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "make room on that disk, or name another place"),
    errno.EFBIG: "raise the limit of a file's size (ulimit -f), or name another disk",
    errno.EROFS: "name a place that can be written",
    **dict.fromkeys((errno.EACCES, errno.EPERM), "name a place of your own, or ask its owner"),
    errno.ENOENT: "make its folder first, or name another place",
    **dict.fromkeys((errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENOTEMPTY), "name another place"),
    errno.ENAMETOOLONG: "use a shorter name",
    errno.ELOOP: "name the file that the links should lead to",
    **dict.fromkeys((errno.EMFILE, errno.ENFILE), "raise the limit of open files (ulimit -n)"),
    **dict.fromkeys((errno.EIO, errno.ESTALE, errno.ENOTCONN), "look at that disk or mount, and try again"),
}


def remedy(error: OSError) -> str:
    """Return what a user can do about it."""
    return _REMEDIES.get(error.errno or 0, "check the path, and that you may use it")
