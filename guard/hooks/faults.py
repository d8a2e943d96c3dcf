"""Keep the faults of hooks in a file beside the workspaces: agent CLIs do not show a hook's stderr."""

import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

LOG = "hooks.log"
_MOST_BYTES = 256 * 1024
_MOST_TEXT = 2000
_OPEN = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


def state_home(environ: "Mapping[str, str]") -> str | None:
    """Return the folder of guard's state, as `guard where` shows it; None if the environment does not say."""
    state, home = environ.get("XDG_STATE_HOME", ""), environ.get("HOME", "")
    if os.path.isabs(state):
        return os.path.join(state, "guard")
    home = home or os.path.expanduser("~")
    return os.path.join(home, ".local", "state", "guard") if os.path.isabs(home) else None


def note(environ: "Mapping[str, str]", text: str) -> None:
    """Append one line with the time to the faults file; never fail, because there would be no place to report that."""
    try:
        home = state_home(environ)
        if home is not None:
            os.makedirs(home, mode=0o700, exist_ok=True)
            _append(os.path.join(home, LOG), _line(text))
    except (OSError, ValueError):
        return


def tell(environ: "Mapping[str, str]", text: str) -> None:
    """Append a line to the faults file, and write it to stderr as well."""
    note(environ, text)
    try:
        shown = text[:500].encode("unicode_escape").decode()
        sys.stderr.write(f"guard: {shown}\n")
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        return


def read_lines(environ: "Mapping[str, str]") -> list[str]:
    home = state_home(environ)
    try:
        descriptor = os.open(os.path.join(home or "", LOG), _READ)
    except OSError:
        return []
    try:
        data = os.pread(descriptor, 2 * _MOST_BYTES, 0)
    except OSError:
        return []
    finally:
        os.close(descriptor)
    return data.decode("utf-8", "replace").splitlines()


def _line(text: str) -> bytes:
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    shown = text[:_MOST_TEXT].encode("unicode_escape").decode()
    return f"{at} pid {os.getpid()}: {shown}\n".encode()


def _append(path: str, line: bytes) -> None:
    descriptor = os.open(path, _OPEN, 0o600)
    try:
        if os.fstat(descriptor).st_uid != os.geteuid():
            return
        if os.fstat(descriptor).st_size + len(line) > _MOST_BYTES:
            _halve(descriptor)
        os.write(descriptor, line)
    finally:
        os.close(descriptor)


def _halve(descriptor: int) -> None:
    # Two processes that do so at once may lose lines, which only people read.
    size = os.fstat(descriptor).st_size
    kept = os.pread(descriptor, _MOST_BYTES // 2, max(0, size - _MOST_BYTES // 2))
    os.ftruncate(descriptor, 0)
    os.write(descriptor, kept[kept.find(b"\n") + 1 :])
