"""Find the repository that a folder belongs to, without running git.

Walking up stops at the first folder that has a `.git` of any kind, or that guard knows as a work tree. So a work tree whose
`.git` was deleted is still itself, and never becomes a part of some repository around it.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from guard.core.base.first_use import dataclass
from guard.errors import RepositoryProblem
from guard.system.foreign_files import read_regular
from guard.system.programs import close_folders

_MOST_BYTES = 4096
_MOST_WORK_TREES = 1000
_looked_at: dict[Path, int] = {}


@dataclass(frozen=True)
class Repository:
    """A work tree with its git directory; linked work trees have one common directory."""

    root: Path
    git_dir: Path
    common_dir: Path
    git_dir_exists: bool = True


def find_repository(start: Path, known: Callable[[Path], Repository | None]) -> Repository:
    """Find the repository around `start`; `known` answers for folders that guard has seen as work trees.

    From then on guard finds no program in it.
    """
    found = _find_around(start, known)
    close_folders(*_places_of(found))
    return found


def _find_around(start: Path, known: Callable[[Path], Repository | None]) -> Repository:
    here = Path(os.path.realpath(start))
    for folder in (here, *here.parents):
        remembered = known(folder)
        found = _read_if_there(folder, is_known=remembered is not None)
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


def _read_if_there(folder: Path, *, is_known: bool) -> Repository | None:
    """Read the `.git` of a folder; None if there is none, or if a known work tree has one that leads nowhere."""
    if not os.path.lexists(folder / ".git"):
        return None
    try:
        return _read_repository(folder)
    except RepositoryProblem:
        if is_known:
            return None
        raise


def _is_replaced(found: Repository, remembered: Repository | None) -> bool:
    """Whether the work tree leads to another repository than guard knows, though that one is still there.

    If it is gone, the user has moved it, unless it was the work tree's own.
    """
    if remembered is None:
        return False
    if remembered.git_dir == found.git_dir:
        return remembered.common_dir != found.common_dir
    return remembered.git_dir == found.root / ".git" or remembered.git_dir.is_dir()


def repository_at(root: Path) -> Repository:
    """Return the repository whose work tree is this folder, by the `.git` in it; guard finds no program in it any more."""
    found = _read_repository(root)
    close_folders(*_places_of(found))
    return found


def _places_of(repository: Repository) -> Iterator[Path]:
    """The work trees and git directories of a repository, as far as plain files tell."""
    yield repository.root
    for folder in (repository.git_dir, repository.common_dir):
        # The agent can name any folder, such as that of the system's programs: it has to look like a git directory.
        if (folder / "HEAD").is_file():
            yield folder
            # Of a linked work tree the main one, of a submodule the project around it.
            parts = folder.parts
            yield from [Path(*parts[: parts.index(".git")])] if ".git" in parts else []
    yield from _linked_work_trees(repository.common_dir)


def _linked_work_trees(common_dir: Path) -> Iterator[Path]:
    """The linked work trees; none if they were found before, and no other has been added since."""
    folder = common_dir / "worktrees"
    try:
        changed = os.stat(folder).st_ctime_ns
    except OSError:
        return
    if _looked_at.get(folder) != changed:
        _looked_at[folder] = changed
        yield from linked_work_trees(common_dir)


def linked_work_trees(common_dir: Path) -> Iterator[Path]:
    """Yield the roots of the linked work trees."""
    try:
        entries = list(os.scandir(common_dir / "worktrees"))
    except OSError:
        return
    for entry in entries[:_MOST_WORK_TREES]:
        dot_git = Path(os.path.join(entry.path, _line_in(Path(entry.path, "gitdir")) or ""))
        # The agent can write any path there, too: the work tree has to agree.
        pointer = (_line_in(dot_git) or "").partition("gitdir: ")[2]
        if pointer and os.path.realpath(dot_git.parent / pointer) == os.path.realpath(entry.path):
            yield dot_git.parent


def _read_repository(root: Path) -> Repository:
    dot_git = root / ".git"
    git_dir = _read_pointer(dot_git) if dot_git.is_file() else dot_git
    git_dir = Path(os.path.realpath(git_dir))
    return Repository(root, git_dir, read_common_dir(git_dir))


def read_common_dir(git_dir: Path) -> Path:
    """Return the git directory that all work trees of the repository share, as a file in this one names it."""
    common = _line_in(git_dir / "commondir")
    return Path(os.path.realpath(git_dir / common)) if common else git_dir


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
