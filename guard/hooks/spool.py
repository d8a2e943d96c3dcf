"""The spool: what observing hooks were told, one small file each, until somebody takes it in.

It lies in the state home, one folder for each work tree, and is found without asking git. A sign of life goes under one name
for each session, helper and event, so that the newest replaces the one before: an agent at work fills no disk.
"""

import os
import stat
import time

from guard.core.hooks.event_kinds import SIGNS_OF_LIFE
from guard.hooks import plain_json
from guard.hooks.agent.payload import Document
from guard.hooks.faults import state_home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDER = "spool.d"
INDEX = "index.d"
ALIVE = "alive-"
MOST_FILES = 10_000
_MANY_BYTES = 128 * 1024
"""A folder with that many files is larger wherever folders have a size: 200 kB on tmpfs, 570 kB on ext4."""
_COUNTED_ANYWAY = 64
"""One call in so many counts also where folders have none."""
_MOST_ENTRY = 64 * 1024
_MODULUS = 2**128 - 159
_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class NotSpooled(Exception):
    """Why something could not be put into the spool."""


def work_tree_key(root: str) -> str:
    """What names a work tree here."""
    return _digest(os.fsencode(os.path.realpath(root)))


def _digest(data: bytes) -> str:
    """A name for these bytes. Who makes two that get the same harms only himself; `hashlib` costs more than all of this."""
    return f"{int.from_bytes(data, 'big') % _MODULUS:032x}"


def put(environ: "Mapping[str, str]", heard: Document) -> str | None:
    """Put one call of a hook into the spool of its work tree; its path. None outside of every work tree."""
    home = state_home(environ)
    if home is None:
        raise NotSpooled("neither XDG_STATE_HOME nor HOME is a whole path")
    root = find_root(home, str(heard["cwd"]))
    if root is None:
        return None
    return write_document(os.path.join(home, FOLDER, work_tree_key(root)), _name(heard), heard)


def write_document(path: str, name: str, document: Document) -> str:
    """Leave a document in a folder of this user's alone, under this name; its path."""
    folder = _opened(path)
    try:
        _refuse_too_many(folder, path)
        _write(folder, name, plain_json.render(document).encode())
    finally:
        os.close(folder)
    return os.path.join(path, name)


def find_root(home: str, cwd: str) -> str | None:
    """The nearest folder that has a `.git` of any kind, or had one: then it has a spool already, or guard knows it."""
    here = os.path.realpath(cwd if os.path.isdir(cwd) else os.getcwd())
    while True:
        if os.path.lexists(os.path.join(here, ".git")):
            return here
        if os.path.isdir(os.path.join(home, FOLDER, work_tree_key(here))) or _is_known(home, here):
            return here
        above = os.path.dirname(here)
        if above == here:
            return None
        here = above


def _is_known(home: str, folder: str) -> bool:
    """Whether guard's index has this very folder as a work tree, as `guard.context.workspace` writes it."""
    return bool(find_workspace(home, folder))


def find_workspace(home: str, folder: str) -> str | None:
    """Where the state of this very folder lies, by guard's index; empty if it is not in it, None if that is unclear."""
    index = os.path.join(home, INDEX)
    if not os.path.isdir(index):
        return ""
    from hashlib import (
        sha256,
    )  # Only here, where a `.git` was not found at once: it takes its time to load.

    try:
        path = os.path.join(index, f"{sha256(os.fsencode(folder)).hexdigest()}.json")
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return ""
    import json

    try:
        entry, status = json.loads(os.read(descriptor, _MOST_ENTRY)), os.stat(folder)
        if (entry["device"], entry["inode"]) != (status.st_dev, status.st_ino):
            return ""
        return _path(str(entry["workspace"]))
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None
    finally:
        os.close(descriptor)


def _path(uri: str) -> str:
    """The path of a `file:` URI; what is escaped in it stands for bytes."""
    first, *rest = uri.removeprefix("file://").encode().split(b"%")
    return os.fsdecode(first + b"".join(bytes.fromhex(one[:2].decode()) + one[2:] for one in rest))


def _opened(path: str) -> int:
    """The folder, made if need be; one that is a link or somebody else's is refused."""
    try:
        folder = os.open(path, _OPEN_FOLDER)
    except FileNotFoundError:
        os.makedirs(path, mode=0o700, exist_ok=True)
        folder = os.open(path, _OPEN_FOLDER)
    status = os.fstat(folder)
    if status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o022:
        os.close(folder)
        raise NotSpooled(f"{path} is not the user's alone")
    return folder


def _refuse_too_many(folder: int, path: str) -> None:
    """Nobody takes it in: it must not grow for ever. A folder that was large once stays so on some file systems."""
    is_small = os.fstat(folder).st_size <= _MANY_BYTES
    if is_small and time.time_ns() // 1000 % _COUNTED_ANYWAY:
        return
    if len(os.listdir(folder)) >= MOST_FILES:
        raise NotSpooled(f"{path} is full: `guard status` in the work tree takes it in")


def _name(heard: Document) -> str:
    if heard["kind"] in SIGNS_OF_LIFE:
        who = [heard[part] for part in ("agent", "event", "session", "helper")]
        return f"{ALIVE}{_digest(plain_json.render(who).encode())}.json"
    return next_name()


def next_name() -> str:
    """A name that nobody else has, and that comes after those of before."""
    return f"{time.time_ns():019d}-{os.getpid()}.json"


def _write(folder: int, name: str, data: bytes) -> None:
    """Whoever reads sees all of it or nothing. It is not synced: after a power loss the session has ended, too."""
    temporary = f".{time.time_ns():019d}-{os.getpid()}.tmp"
    descriptor = os.open(temporary, _NEW_FILE, 0o600, dir_fd=folder)
    try:
        try:
            while data:
                data = data[os.write(descriptor, data) :]
        finally:
            os.close(descriptor)
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        os.unlink(temporary, dir_fd=folder)
        raise
