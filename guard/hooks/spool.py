"""Keep each call of an observing hook as a small file, until the next command records it in the log.

The spool lies in the state home, one folder for each work tree, and is found without asking git. A sign of life has one file
name for each session, helper and event, so that the newest replaces the one before: an agent at work fills no disk.
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
    """A call could not be put into the spool."""


def work_tree_key(root: str) -> str:
    return digest(os.fsencode(os.path.realpath(root)))


def digest(data: bytes) -> str:
    # Loading `hashlib` costs more than all else here, and a user who makes two paths collide harms only their own spool.
    return f"{int.from_bytes(data, 'big') % _MODULUS:032x}"


def put(environ: "Mapping[str, str]", call: Document) -> str | None:
    """Write a hook call to the spool of its work tree and return the file's path; None outside of every work tree."""
    home = state_home(environ)
    if home is None:
        raise NotSpooled("neither XDG_STATE_HOME nor HOME is an absolute path")
    root = find_root(home, str(call["cwd"]))
    if root is None:
        return None
    return write_document(os.path.join(home, FOLDER, work_tree_key(root)), _name(call), call)


def write_document(path: str, name: str, document: Document) -> str:
    folder = open_folder(path)
    try:
        _refuse_too_many(folder, path)
        _write(folder, name, plain_json.render(document).encode())
    finally:
        os.close(folder)
    return os.path.join(path, name)


def find_root(home: str, cwd: str) -> str | None:
    """Return the nearest folder above that is a work tree, or was one: then it has a spool, or stands in guard's index."""
    here = os.path.realpath(cwd if os.path.isdir(cwd) else os.getcwd())
    while True:
        if os.path.lexists(os.path.join(here, ".git")):
            return here
        has_spool = os.path.isdir(os.path.join(home, FOLDER, work_tree_key(here)))
        if has_spool or find_workspace(home, here):
            return here
        above = os.path.dirname(here)
        if above == here:
            return None
        here = above


def find_workspace(home: str, folder: str) -> str | None:
    """Return the workspace of a work tree, by the index that `guard.context.workspace` writes.

    Empty if the folder is not in the index, None if its entry cannot be read.
    """
    index = os.path.join(home, INDEX)
    if not os.path.isdir(index):
        return ""
    # Loaded only where a `.git` was not found at once: it takes its time.
    from hashlib import sha256

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
        return _path_of_uri(str(entry["workspace"]))
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None
    finally:
        os.close(descriptor)


def _path_of_uri(uri: str) -> str:
    first, *rest = uri.removeprefix("file://").encode().split(b"%")
    return os.fsdecode(
        first + b"".join(bytes.fromhex(part[:2].decode()) + part[2:] for part in rest)
    )


def open_folder(path: str) -> int:
    # A link, and a folder that others may write to, are refused.
    try:
        folder = os.open(path, _OPEN_FOLDER)
    except FileNotFoundError:
        os.makedirs(path, mode=0o700, exist_ok=True)
        folder = os.open(path, _OPEN_FOLDER)
    status = os.fstat(folder)
    if status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o022:
        os.close(folder)
        raise NotSpooled(f"{path} may be changed by other users")
    return folder


def _refuse_too_many(folder: int, path: str) -> None:
    # A spool that no command records must not grow forever. A folder that was large once stays so on some file systems.
    is_small = os.fstat(folder).st_size <= _MANY_BYTES
    if is_small and time.time_ns() // 1000 % _COUNTED_ANYWAY:
        return
    if len(os.listdir(folder)) >= MOST_FILES:
        raise NotSpooled(f"{path} is full: `guard status` in the work tree empties it")


def _name(call: Document) -> str:
    if call["kind"] in SIGNS_OF_LIFE:
        who = [call[part] for part in ("agent", "event", "session", "helper")]
        if call.get("tool_document") is not None:
            # The newest edit, and the newest run of each test command, are kept beside the newest sign.
            who.append(f"call {call['tested']}")
        return f"{ALIVE}{digest(plain_json.render(who).encode())}.json"
    return next_name()


def next_name() -> str:
    # Unique, and sorted after the earlier names.
    return f"{time.time_ns():019d}-{os.getpid()}.json"


def _write(folder: int, name: str, data: bytes) -> None:
    # A reader sees all of it or nothing. It is not synced: after a power loss the session has ended, too.
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
