"""Read files of a git directory without git: small and regular ones, never waited for."""

import os
import stat
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from guard.git.locate import Repository
from guard.system.private_files import close

_MOST_BYTES = 8 * 1024 * 1024
_MOST_PATH = 65536


class Portion(NamedTuple):
    """The end of a file, from this offset on."""

    offset: int
    data: bytes


def read_portion(path: Path, offset: int = 0, most: int = _MOST_BYTES) -> Portion | None:
    """Read a regular file from an offset on, or its last `most` bytes; None if there is no such file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_size < offset:
        close(descriptor)
        return None
    with open(descriptor, "rb") as file:
        start = max(offset, status.st_size - most)
        file.seek(start)
        return Portion(start, file.read(most))


def file_size(path: Path) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0


def heads(repository: Repository) -> Iterator[tuple[str, Path]]:
    """Yield the HEAD of each work tree of the repository, with the name that git has for it from this one."""
    yield "HEAD", repository.git_dir / "HEAD"
    if repository.git_dir != repository.common_dir:
        yield "main-worktree/HEAD", repository.common_dir / "HEAD"
    linked = repository.common_dir / "worktrees"
    try:
        names = sorted(os.listdir(linked))
    except OSError:
        return
    for name in names:
        if linked / name != repository.git_dir:
            yield f"worktrees/{name}/HEAD", linked / name / "HEAD"


class WorkTree(NamedTuple):
    """Another work tree of the same repository."""

    root: Path
    head: str
    """The name that git has for its HEAD from this one."""
    branch: bytes | None
    """The ref that its HEAD names."""


def other_work_trees(repository: Repository) -> Iterator[WorkTree]:
    # As far as the git directory tells where they are.
    for name, path in heads(repository):
        if name == "HEAD":
            continue
        root = repository.common_dir.parent if repository.common_dir.name == ".git" else None
        if name != "main-worktree/HEAD":
            file = read_portion(path.parent / "gitdir", most=_MOST_PATH)
            line = os.fsdecode(file.data.rstrip(b"\n")) if file else ""
            root = Path(os.path.realpath(path.parent / line)).parent if line else None
        if root is not None:
            found = read_portion(path, most=_MOST_PATH)
            text = found.data.strip() if found else b""
            ref = text.removeprefix(b"ref: ") if text.startswith(b"ref: ") else None
            yield WorkTree(root, name, ref)


def read_fetched_oids(repository: Repository) -> set[str]:
    """Return the commits that the last fetch of each work tree brought, also those that no ref points to."""
    found: set[str] = set()
    for _, head in heads(repository):
        file = read_portion(head.parent / "FETCH_HEAD")
        lines = file.data.splitlines() if file else []
        brought = (line.partition(b"\t") for line in lines if not line.endswith(b" of ."))
        found |= {oid.decode(errors="replace") for oid, _, _ in brought}
    return found


def has_reftable(repository: Repository) -> bool:
    # Then refs and reflogs are in git's own tables, which only git reads.
    return (repository.common_dir / "reftable").is_dir()


def shallow_digest(repository: Repository) -> str | None:
    """Return a hash of where the shallow history ends; None if the history is whole."""
    found = read_portion(repository.common_dir / "shallow")
    return sha256(found.data).hexdigest() if found else None
