"""Read single commits whole, by ids that guard has resolved: message, trailers and patch. The only use of GitPython.

GitPython sees a git directory of guard's own, which borrows the project's objects and has none of its configuration,
attributes, hooks or refs; its git gets the same environment as all of guard's. It never sees a work tree.
"""

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from guard.core.report.details import CommitDetails, FilePatch
from guard.errors import RepositoryProblem
from guard.git.locate import Repository
from guard.git.obstacles import object_folders, refuse_to_lend
from guard.git.reader import RepositoryReader
from guard.git.run import environment_of_settings
from guard.system.programs import search_program

if TYPE_CHECKING:
    from git import Commit, Repo
    from git.diff import Diff

_MOST_BYTES = 1024 * 1024
"""A longer patch of a file is left out."""
_OPTIONS = {
    "no_renames": True,
    "no_ext_diff": True,
    "no_textconv": True,
    "no_color": True,
    "ignore_submodules": "none",
    "diff_algorithm": "myers",
}
_MISLEADING = (
    "GIT_DIR",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_WORK_TREE",
    "GIT_NAMESPACE",
)
"""Variables that GitPython would hand on, and that would lead it to another repository."""


@dataclass(frozen=True)
class CommitObjects:
    """The commits of a project, while GitPython has them open."""

    _repo: "Repo"

    def read(self, oid: str) -> CommitDetails | None:
        """Return what the commit says and changes; None if it, or a parent, is not here, or has an id of SHA-256."""
        from git.exc import GitError, ODBError

        try:
            return _details(self._repo.commit(oid))
        except (GitError, ODBError, ValueError, OSError):
            return None


@contextmanager
def open_objects(git: RepositoryReader) -> Iterator[CommitObjects]:
    """Open the objects of a project, and close all processes that were started for it."""
    misleading = [name for name in _MISLEADING if name in os.environ]
    if misleading:
        raise RepositoryProblem(f"{misleading[0]} is set", "unset it for this program")
    with tempfile.TemporaryDirectory(prefix="guard-objects-") as folder:
        own = _own_directory(Path(folder), git.repository)
        with _imported(git.environ) as repo_class:
            repo = repo_class(own, search_parent_directories=False, expand_vars=False)
        with ExitStack() as stack:
            stack.callback(repo.close)
            variables = {"GIT_DIR": os.fspath(own), "GIT_CONFIG_GLOBAL": os.devnull}
            repo.git.update_environment(**environment_of_settings(git.environ), **variables)
            yield CommitObjects(repo)


def _own_directory(folder: Path, repository: Repository) -> Path:
    common = repository.common_dir
    refuse_to_lend(Repository(common, common, common))
    for name in ("objects/info", "objects/pack", "refs"):
        (folder / name).mkdir(parents=True)
    (folder / "HEAD").write_text("ref: refs/heads/none\n")
    (folder / "config").write_text("[core]\n\trepositoryformatversion = 0\n\tbare = true\n")
    lenders = (_quote(os.fspath(each)) for each in object_folders(common / "objects"))
    alternates = folder / "objects" / "info" / "alternates"
    alternates.write_bytes(os.fsencode("".join(f"{line}\n" for line in lenders)))
    return folder


def _quote(path: str) -> str:
    # A path that git would read otherwise is written as a string of C.
    if not path.startswith(("#", '"')) and "\n" not in path:
        return path
    escaped = path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


@contextmanager
def _imported(environ: Mapping[str, str]) -> Iterator[Any]:
    """Import GitPython with guard's own git: it would take, and run, what PATH finds first."""
    search = search_program("git", environ)
    if search.program is None:
        raise RepositoryProblem(search.problem, search.hint or "install git 2.31 or newer")
    told = {"GIT_PYTHON_GIT_EXECUTABLE": search.program, "GIT_PYTHON_REFRESH": "quiet"}
    before = {name: os.environ.get(name) for name in told}
    os.environ.update(told)
    try:
        import git

        if search.program != git.Git.GIT_PYTHON_GIT_EXECUTABLE:
            git.refresh(search.program)
        yield git.Repo
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def _details(commit: "Commit") -> CommitDetails:
    return CommitDetails(
        oid=commit.hexsha,
        author=commit.author.name or "",
        email=commit.author.email or "",
        message=_text(commit.message),
        trailers=tuple((key, value) for key, value in commit.trailers_list),
        files=tuple(map(_patch, _diffs(commit))),
    )


def _diffs(commit: "Commit") -> Iterable["Diff"]:
    from git import NULL_TREE

    options: dict[str, Any] = dict(_OPTIONS)
    if len(commit.parents) > 1:
        return ()
    if not commit.parents:
        return commit.diff(NULL_TREE, create_patch=True, **options)
    # Seen from the parent, so that what is new comes in.
    return commit.parents[0].diff(commit, create_patch=True, **options)


def _patch(diff: "Diff") -> FilePatch:
    data = diff.diff or b""
    kind: Literal["added", "changed", "removed"] = "changed"
    if diff.new_file or diff.deleted_file:
        kind = "added" if diff.new_file else "removed"
    return FilePatch(
        path=diff.b_path or diff.a_path or "",
        kind=kind,
        text=_text(data) if len(data) <= _MOST_BYTES else "",
    )


def _text(data: str | bytes) -> str:
    return data if isinstance(data, str) else data.decode("utf-8", "replace")
