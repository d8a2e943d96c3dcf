"""Find the repository that a folder belongs to, without running git.

Walking up stops at the first folder that has a `.git` of any kind, or that guard knows as a work tree. So a work tree whose
`.git` was deleted is still itself, and never becomes a part of some repository around it.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from guard.errors import RepositoryProblem
from guard.system.foreign_files import read_regular

_MOST_BYTES = 4096


@dataclass(frozen=True)
class Repository:
    """A work tree with its git directory; linked work trees have one common directory."""

    root: Path
    git_dir: Path
    common_dir: Path
    git_dir_exists: bool = True


def find_repository(start: Path, known: Callable[[Path], Repository | None]) -> Repository:
    """Find the repository around `start`; `known` answers for folders that guard has seen as work trees."""
    here = Path(os.path.realpath(start))
    for folder in (here, *here.parents):
        found = repository_at(folder) if os.path.lexists(folder / ".git") else None
        remembered = known(folder)
        if found is not None and found.git_dir.is_dir() and not _is_replaced(found, remembered):
            return found
        if remembered is not None:
            return remembered
        if found is not None:
            return replace(found, git_dir_exists=False)
        if _looks_bare(folder):
            raise RepositoryProblem(
                f"{folder} has no work tree: it is a bare repository, or a git directory",
                "name a work tree with --repo",
            )
    raise RepositoryProblem(
        f"{here} is not in a git repository",
        "change to a repository, name one with --repo, or run `git init`",
    )


def _is_replaced(found: Repository, remembered: Repository | None) -> bool:
    """Whether a git directory of the work tree's own was replaced by a pointer to another one."""
    if remembered is None or remembered.git_dir == found.git_dir:
        return False
    return remembered.git_dir == found.root / ".git"


def repository_at(root: Path) -> Repository:
    """Return the repository whose work tree is this folder, by the `.git` in it."""
    dot_git = root / ".git"
    git_dir = _read_pointer(dot_git) if dot_git.is_file() else dot_git
    git_dir = Path(os.path.realpath(git_dir))
    common = _line_in(git_dir / "commondir")
    common_dir = Path(os.path.realpath(git_dir / common)) if common else git_dir
    return Repository(root, git_dir, common_dir)


def _read_pointer(dot_git: Path) -> Path:
    line = _line_in(dot_git) or ""
    prefix, _, target = line.partition(": ")
    if prefix != "gitdir" or not target:
        raise RepositoryProblem(
            f"{dot_git} is a file that does not name a git directory",
            "restore the file; `git worktree repair` repairs a linked work tree",
        )
    return dot_git.parent / target


def _line_in(path: Path) -> str | None:
    # As git reads it: all but the newline at its end, in whatever encoding.
    try:
        data = read_regular(path, _MOST_BYTES)
    except OSError:
        return None
    return os.fsdecode(data[:_MOST_BYTES]).rstrip("\r\n")


def _looks_bare(folder: Path) -> bool:
    return (
        (folder / "HEAD").is_file() and (folder / "objects").is_dir() and (folder / "refs").is_dir()
    )
