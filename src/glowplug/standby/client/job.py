"""Stops a program as its shell would have stopped it. Runs in the client."""

from __future__ import annotations

import contextlib
import os
import signal

STOPPING = (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)


def suspend(pid: int, group: int, number: int = signal.SIGTSTP) -> None:
    """Stop a job as Ctrl-Z would.

    The kernel drops the default action of these signals for a group whose parent is in another session, which a standby
    is. So a program that has its own handler gets the signal, one that ignores it nothing, and any other gets SIGSTOP.
    """
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as stream:
            fields = dict(line.split(":", 1) for line in stream if line.startswith(("SigCgt", "SigIgn", "SigBlk")))
    except FileNotFoundError:
        return
    bit = 1 << (number - 1)
    if int(fields["SigIgn"], 16) & bit:
        return
    taken = (int(fields["SigCgt"], 16) | int(fields["SigBlk"], 16)) & bit
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number if taken else signal.SIGSTOP)
