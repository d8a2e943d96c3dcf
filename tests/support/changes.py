"""What happens to a work tree between two snapshots, hidden as well as it can be."""

import mmap
import os
import random
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

from tests.support import write

LARGE = 51 * 1024**2
"""A file of so many bytes is not held in memory."""
SETTLED_SECONDS = 2.2
"""After so long a rest nobody takes a file for one that was just written."""


def edit_unseen(path: Path) -> None:
    """The same size, and the old time of change put back; only the time of the inode's change tells."""
    status = path.stat()
    path.write_bytes(path.read_bytes()[::-1])
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def replace_unseen(path: Path) -> None:
    status = path.stat()
    other = write(path.with_name("other"), path.read_bytes()[::-1])
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    other.replace(path)


def edit_mapped(path: Path) -> None:
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        mapped[:2] = b"MM"


def become_file(path: Path) -> None:
    shutil.rmtree(path)
    write(path, "now a file\n")


def become_folder(path: Path, inside: str = "inside") -> None:
    path.unlink()
    write(path / inside, "now in a folder\n")


def become_link(path: Path, target: str = "elsewhere") -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
    path.symlink_to(target)


def exchange(one: Path, other: Path) -> None:
    aside = one.with_name("aside")
    one.rename(aside)
    other.rename(one)
    aside.rename(other)


def nothing(_folder: Path) -> None:
    pass


def text(name: str, content: str = "some text\n") -> Callable[[Path], object]:
    return lambda folder: write(folder / name, content)


def then(*steps: Callable[[Path], object]) -> Callable[[Path], object]:
    def take_them(path: Path) -> None:
        for step in steps:
            step(path)

    return take_them


def linked(folder: Path) -> None:
    folder.mkdir()
    (folder / "a").symlink_to("x")


def several(*names: str) -> Callable[[Path], object]:
    return lambda folder: [write(folder / name, f"{name}\n") for name in names]


def large(last: bytes) -> Callable[[Path], object]:
    def make(folder: Path) -> None:
        path = write(folder / "large.bin", b"")
        os.truncate(path, LARGE)
        with path.open("r+b") as file:
            file.seek(-1, os.SEEK_END)
            file.write(last)

    return make


class Play:
    """Random changes to a work tree, from a seed."""

    def __init__(self, root: Path, seed: int) -> None:
        self.root, self.random = root, random.Random(seed)

    def place(self) -> Path:
        """One of few names, at most three folders deep, so that they meet."""
        names = ["a", "b", "c.d", "c", ".GIT", "escaped%x", "ä\n"]
        return self.root.joinpath(*self.random.choices(names, k=self.random.randint(1, 3)))

    def clear(self, path: Path) -> None:
        """Make room for a file, in place of whatever is there or above."""
        above = [folder for folder in path.parents if self.root in folder.parents]
        for folder in (*reversed(above), path):
            if folder.is_symlink() or folder.is_file():
                folder.unlink()
        if path.is_dir():
            shutil.rmtree(path)
        path.parent.mkdir(parents=True, exist_ok=True)

    def files(self) -> list[Path]:
        """Regular ones."""
        every = sorted(self.root.rglob("*"))
        outside = (path for path in every if path.relative_to(self.root).parts[0] != ".git")
        return [path for path in outside if stat.S_ISREG(path.lstat().st_mode)]

    def change(self) -> None:
        """One of them."""
        make = [self.write, self.write, self.link, self.mkdir]
        alter = [self.unseen, self.touch, self.chmod, self.rename, self.delete, self.exchange]
        self.random.choice(make + alter if len(self.files()) > 2 else make)()

    def one(self) -> Path:
        return self.random.choice(self.files())

    def write(self) -> None:
        path = self.place()
        self.clear(path)
        path.write_bytes(self.random.randbytes(self.random.randrange(40)))

    def link(self) -> None:
        path = self.place()
        self.clear(path)
        path.symlink_to(self.random.choice(["a", "../b", "nowhere"]))

    def mkdir(self) -> None:
        path = self.place()
        self.clear(path)
        path.mkdir()

    def unseen(self) -> None:
        edit_unseen(self.one())

    def touch(self) -> None:
        os.utime(self.one(), (self.random.randrange(2**31),) * 2)

    def chmod(self) -> None:
        self.one().chmod(self.random.choice([0o644, 0o755, 0o600, 0o444]))

    def rename(self) -> None:
        path, aside = self.place(), self.root / "aside"
        self.one().rename(aside)
        self.clear(path)
        aside.rename(path)

    def delete(self) -> None:
        one = self.one()
        one.unlink()
        if self.random.random() < 0.3 and one.parent != self.root:
            shutil.rmtree(one.parent)

    def exchange(self) -> None:
        exchange(*self.random.sample(self.files(), 2))
