"""What a hook is told on its standard input."""

import os
import time

from guard.hooks.agent.payload import MOST_BYTES

_READ_SECONDS = 10.0
_CHUNK = 1024 * 1024


def read() -> bytes:
    """All that there is to read. What is too long is read to its end, for whoever writes it, but not kept."""
    import select

    chunks: list[bytes] = []
    size, until = 0, time.monotonic() + _READ_SECONDS
    try:
        while select.select([0], [], [], max(0.0, until - time.monotonic()))[0]:
            chunk = os.read(0, _CHUNK)
            if not chunk:
                break
            size += len(chunk)
            if size <= MOST_BYTES + _CHUNK:
                chunks.append(chunk)
    except (OSError, ValueError):
        pass
    return b"".join(chunks)
