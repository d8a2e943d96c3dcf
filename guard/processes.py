"""Other programs: started as argv lists in a process group of their own, and ended as a group at their time limit."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass


@dataclass(frozen=True)
class Finished:
    """How a program ended; `code` is None if it had to be killed at its time limit."""

    code: int | None
    stdout: bytes
    stderr: bytes


def run(
    argv: Sequence[str],
    *,
    environ: Mapping[str, str],
    time_limit: float,
    cwd: str | os.PathLike[str] | None = None,
) -> Finished:
    """Run a program to its end, without input; FileNotFoundError if there is none of that name."""
    process = subprocess.Popen(  # noqa: S603
        list(argv),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(environ),
        cwd=cwd,
        start_new_session=True,
    )
    try:
        stdout, stderr = process.communicate(timeout=time_limit)
    except subprocess.TimeoutExpired:
        _end_group(process)
        return Finished(None, b"", b"")
    except BaseException:
        _end_group(process)
        raise
    return Finished(process.returncode, stdout, stderr)


def _end_group(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    # A grandchild in a session of its own may hold the other end; it is not waited for.
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
