"""Compare a checkout with what guard put there, and delete the rest without following a link."""

import os
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from guard.git.index_file import WrittenEntry, WrittenStamp, kind_of, stamp_of
from guard.system.private_files import close

_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_DEPTH = 50


class Product(NamedTuple):
    """What a set-up made at a path: of a folder only that it is there counts."""

    kind: int
    stamp: WrittenStamp | None


@dataclass
class CheckoutState:
    """What a checkout has that it should not have, and the other way round."""

    wrong: list[bytes] = field(default_factory=list)
    """What has to be deleted: changed files, and what guard did not put there."""
    changed: list[bytes] = field(default_factory=list)
    """Files of the tree that are missing or not as guard wrote them."""
    spoiled: bool = False
    """Whether anything that the set-up made is missing or changed."""


def compare(
    root: bytes, files: Mapping[bytes, WrittenEntry], products: Mapping[bytes, Product]
) -> CheckoutState:
    """Look at every entry of a checkout; folders that were made unreadable are opened up."""
    found, seen, bits = CheckoutState(), set[bytes](), 0o777 & ~_umask()
    folders = _folders_of(files)
    ahead = [b""]
    while ahead:
        folder = ahead.pop()
        with os.scandir(os.path.join(root, folder)) as entries:
            for entry in entries:
                path = folder + entry.name
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(status.st_mode) and (path in folders or path in products):
                    seen.add(path)
                    ahead.append(path + b"/")
                    if stat.S_IMODE(status.st_mode) != bits and path in folders:
                        os.chmod(os.path.join(root, path), bits)
                elif _is_kept(path, status, files, products):
                    seen.add(path)
                else:
                    found.wrong.append(path)
    found.changed = [path for path in files if path not in seen]
    found.spoiled = any(path not in seen for path in products)
    return found


def _folders_of(files: Mapping[bytes, WrittenEntry]) -> set[bytes]:
    folders = {path for path, entry in files.items() if kind_of(entry.mode) == stat.S_IFDIR}
    for path in files:
        parent = path.rpartition(b"/")[0]
        while parent and parent not in folders:
            folders.add(parent)
            parent = parent.rpartition(b"/")[0]
    return folders


def _is_kept(
    path: bytes,
    status: os.stat_result,
    files: Mapping[bytes, WrittenEntry],
    products: Mapping[bytes, Product],
) -> bool:
    entry = files.get(path)
    if entry is not None:
        return entry.stamp == stamp_of(status) and stat.S_IFMT(status.st_mode) == kind_of(
            entry.mode
        )
    product = products.get(path)
    return product == Product(stat.S_IFMT(status.st_mode), stamp_of(status))


def list_products(root: bytes, paths: Iterable[bytes]) -> dict[bytes, Product]:
    """Everything at and below these paths, as it is now."""
    found: dict[bytes, Product] = {}
    ahead = list(paths)
    while ahead:
        path = ahead.pop()
        status = os.lstat(os.path.join(root, path))
        is_folder = stat.S_ISDIR(status.st_mode)
        found[path] = Product(stat.S_IFMT(status.st_mode), None if is_folder else stamp_of(status))
        if is_folder:
            ahead += [path + b"/" + name for name in os.listdir(os.path.join(root, path))]
    return found


def delete_all(root: bytes, paths: Iterable[bytes]) -> None:
    for path in paths:
        folder, name = os.path.split(os.path.join(root, path))
        descriptor = os.open(folder, _OPEN_FOLDER)
        try:
            delete(descriptor, os.fsdecode(name))
        finally:
            close(descriptor)


def delete_folder(path: bytes) -> None:
    """Delete a folder with all that is in it, if it is there."""
    with suppress(FileNotFoundError):
        delete_all(os.path.dirname(path), [os.path.basename(path)])


def delete(folder: int, name: str) -> None:
    """Delete what has this name in an open folder: a file, a link or a whole tree, also one without permissions."""
    waiting = [name]
    while waiting:
        _delete_in(folder, waiting.pop(), folder, waiting, 0)


def _delete_in(here: int, name: str, top: int, waiting: list[str], depth: int) -> None:
    try:
        if not stat.S_ISDIR(os.stat(name, dir_fd=here, follow_symlinks=False).st_mode):
            os.unlink(name, dir_fd=here)
            return
        os.chmod(name, 0o700, dir_fd=here)
        descriptor = os.open(name, _OPEN_FOLDER, dir_fd=here)
    except FileNotFoundError:
        return
    try:
        for below in os.listdir(descriptor):
            if depth < _MOST_DEPTH:
                _delete_in(descriptor, below, top, waiting, depth + 1)
            else:
                # Folders can lie deeper than guard can have open: they are moved up.
                aside = f".guard-{os.urandom(8).hex()}"
                _open_up(below, descriptor)
                os.rename(below, aside, src_dir_fd=descriptor, dst_dir_fd=top)
                waiting.append(aside)
    finally:
        close(descriptor)
    os.rmdir(name, dir_fd=here)


def _open_up(name: str, folder: int) -> None:
    # A folder can only be moved by a user who may write to it.
    if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        os.chmod(name, 0o700, dir_fd=folder)


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
