"""A question to git in a hook's own surroundings: the index is then the one that is about to be committed.

For that the variables stay that git gives its hooks. `subprocess` takes longer to load than git to answer.
"""

import os
import signal
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_SECONDS = 20.0
_CHUNK = 65536
_QUIET = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")


def ask(environ: "Mapping[str, str]", *words: str) -> bytes | None:
    """What git answers; None if it does not, or not in time."""
    reading, writing = os.pipe()
    try:
        pid = os.posix_spawnp(
            "git",
            ["git", *_QUIET, *words],
            {**environ, "GIT_OPTIONAL_LOCKS": "0"},
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, writing, 1),
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            ],
        )
    except OSError:
        os.close(reading)
        os.close(writing)
        return None
    os.close(writing)
    data, ended = _read(reading)
    if not ended:
        os.kill(pid, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return data if ended and code == 0 else None


def _read(descriptor: int) -> tuple[bytes, bool]:
    """All that there is, and whether that was the end."""
    import select

    chunks: list[bytes] = []
    until = time.monotonic() + _SECONDS
    try:
        while select.select([descriptor], [], [], max(0.0, until - time.monotonic()))[0]:
            chunk = os.read(descriptor, _CHUNK)
            if not chunk:
                return b"".join(chunks), True
            chunks.append(chunk)
        return b"".join(chunks), False
    finally:
        os.close(descriptor)
