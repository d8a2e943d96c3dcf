"""Make a linked work tree and reset it to a branch, without hooks, filters and fsmonitor of the repository's.

A reset deletes what is not committed: the caller saves it before. What git ignores stays.
"""

import os
import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from guard.context.invocation import Invocation
from guard.errors import Refused, RepositoryProblem
from guard.git.locate import Repository, repository_at
from guard.git.obstacles import refuse_obstacles, refuse_to_write, refuse_to_write_index
from guard.git.reader import RepositoryReader
from guard.git.status import read_status, without_filters
from guard.snapshots.safe_writer import PathRefused, SafeFolder

_HEADS = "refs/heads/"
_SECONDS = 600.0
"""A checkout of a very large tree takes minutes."""
_OPERATIONS = (
    *("MERGE_HEAD", "MERGE_MODE", "MERGE_MSG", "AUTO_MERGE", "SQUASH_MSG", "CHERRY_PICK_HEAD"),
    *("REVERT_HEAD", "REBASE_HEAD", "BISECT_LOG", "rebase-merge", "rebase-apply", "sequencer"),
    "index.lock",
)
_SUBMODULE = b"160000 "
_SETTINGS = {"core.sparseCheckout": "false", "submodule.recurse": "false"}


def task_branch(task_id: str) -> str:
    return f"{_HEADS}guard/task/{task_id}"


class SlotTree:
    """A linked work tree of the project's repository, at a path of guard's own."""

    def __init__(self, guard: Invocation, path: Path) -> None:
        self._guard, self.path = guard, path

    @property
    def is_there(self) -> bool:
        """Tell whether the work tree is one of the project's repository and complete."""
        try:
            found = repository_at(self.path)
        except RepositoryProblem:
            return False
        common = self._guard.repository.common_dir
        return found.common_dir == common and (found.git_dir / "HEAD").is_file()

    @property
    def repository(self) -> Repository:
        return repository_at(self.path)

    def _git(self, repository: Repository | None = None) -> RepositoryReader:
        seconds = self._guard.users_config.settings.completion_check.git_timeout_seconds
        reader = RepositoryReader(
            repository or self.repository, self._guard.environ, max(seconds, _SECONDS)
        )
        return without_filters(reader).with_settings(_SETTINGS)

    def make(self, commit: str) -> None:
        """Make the work tree with no file in it yet; something else that stands in its place is put aside."""
        words = ("worktree", "add", "--force", "--force", "--no-checkout", "--detach")
        refuse_obstacles(self._guard.repository, words)
        if os.path.lexists(self.path):
            number = 1
            while os.path.lexists(aside := self.path.with_name(f"{self.path.name}.aside-{number}")):
                number += 1
            os.rename(self.path, aside)
            self._guard.output.warn(f"{self.path} is no work tree any more: moved to {aside}")
        self._git(self._guard.repository).ask(*words, os.fspath(self.path), commit)

    def head(self) -> tuple[str | None, str | None]:
        """Return the commit and the branch that are checked out; None for a branch without a commit, and for no branch."""
        git = self._git()
        branch = git.line("symbolic-ref", "--quiet", "HEAD")
        return git.line("rev-parse", "--verify", "--quiet", "HEAD^{commit}"), branch

    def is_clean(self, excludes: Path | None = None) -> bool:
        """Tell whether every file is committed or ignored."""
        git = self._git()
        if excludes is not None:
            git = git.with_settings({"core.excludesFile": os.fspath(excludes)})
        lines = read_status(git).split(b"\0")
        return not any(line and not line.startswith(b"# ") for line in lines)

    def reset(self, ref: str | None, commit: str) -> None:
        """Check out a branch, made at this commit if there is none; the work tree is exactly what it has.

        Without a branch the commit itself is checked out.
        """
        git = self._git()
        tip = git.line("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}") if ref else commit
        if ref is not None:
            self._refuse_elsewhere(git, ref)
        repository = git.repository
        self._pin_head(git)
        for name in _OPERATIONS:
            _remove(repository.git_dir / name)
        refuse_to_write(repository, ("HEAD", ref or "HEAD"))
        refuse_to_write_index(repository)
        git.ask("update-ref", "--no-deref", "-m", "guard: slot", "HEAD", tip or commit)
        git.ask("read-tree", "--reset", "-u", tip or commit)
        if ref is not None and tip is None:
            git.ask("update-ref", "-m", "guard: slot", ref, commit, "0" * len(commit))
        if ref is not None:
            git.ask("symbolic-ref", "-m", "guard: slot", "HEAD", ref)

    def _pin_head(self, git: RepositoryReader) -> None:
        """Keep commits on a detached HEAD that no branch has."""
        commit, branch = self.head()
        if commit is None or branch is not None:
            return
        if git.line("rev-list", "--max-count=1", commit, "--not", "--all") is not None:
            git.ask("update-ref", "-m", "guard: slot", f"refs/guard/kept/{commit}", commit)

    def detach(self) -> None:
        """Leave the branch, so that it can be moved or deleted; the files stay as they are."""
        git = self._git()
        commit, branch = self.head()
        if commit is not None and branch is not None:
            git.ask("update-ref", "--no-deref", "-m", "guard: slot", "HEAD", commit)

    def bring_home(self, ref: str) -> bool:
        """Move the task's branch to HEAD, if the agent went on from it on another branch or on none."""
        git = self._git()
        commit, branch = self.head()
        tip = git.line("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")
        if branch == ref or commit is None or tip is None:
            return False
        if tip != commit:
            base = git.line("merge-base", tip, commit)
            if base != tip:
                return False
            git.ask("update-ref", "-m", "guard: slot", ref, commit, tip)
        self._refuse_elsewhere(git, ref)
        git.ask("symbolic-ref", "-m", "guard: slot", "HEAD", ref)
        return True

    def files(self) -> list[tuple[str, str]]:
        """Return the path and the object id of each file in the index."""
        lines = self._git().ask("ls-files", "-z", "--stage").split(b"\0")
        found = (line.partition(b"\t") for line in lines if line)
        return [(os.fsdecode(path), facts.split(b" ")[1].decode()) for facts, _, path in found]

    def submodules(self) -> list[tuple[str, str]]:
        """Return the path and the commit of each submodule in the index."""
        lines = self._git().ask("ls-files", "-z", "--stage").split(b"\0")
        found = (line.partition(b"\t") for line in lines if line.startswith(_SUBMODULE))
        return [(os.fsdecode(path), facts.split(b" ")[1].decode()) for facts, _, path in found]

    def strays(self, excludes: Path | None) -> list[bytes]:
        """Return the files that git neither tracks nor ignores; a nested repository is one entry, with a slash at its end."""
        git = self._git()
        if excludes is not None:
            git = git.with_settings({"core.excludesFile": os.fspath(excludes)})
        found = git.ask("ls-files", "--others", "--exclude-standard", "-z")
        return [path for path in found.split(b"\0") if path]

    def delete(self, paths: list[bytes]) -> None:
        """Delete these files, and folders that are empty then."""
        target = SafeFolder(self.path)
        try:
            for path in paths:
                self._delete(target, path)
        finally:
            target.close()

    def _delete(self, target: SafeFolder, path: bytes) -> None:
        if path.endswith(b"/"):
            shutil.rmtree(os.path.join(os.fsencode(self.path), path))
        else:
            with suppress(FileNotFoundError):
                os.unlink(os.path.join(os.fsencode(self.path), path))
        while b"/" in (path := path.rstrip(b"/")):
            path = path.rpartition(b"/")[0]
            with suppress(PathRefused):
                if not target.remove_folder(path):
                    return

    def _refuse_elsewhere(self, git: RepositoryReader, ref: str) -> None:
        listed = git.ask("worktree", "list", "--porcelain", "-z").split(b"\0")
        here = b""
        for line in listed:
            if line.startswith(b"worktree "):
                here = line.removeprefix(b"worktree ")
            elif line == b"branch " + os.fsencode(ref) and here != os.fsencode(self.path):
                place = os.fsdecode(here)
                raise Refused(
                    f"the branch {ref.removeprefix(_HEADS)} is checked out in {place}",
                    "check out another branch there: `git switch --detach`",
                )


def _remove(path: Path) -> None:
    try:
        path.unlink()
    except FileNotFoundError:
        return
    except (IsADirectoryError, PermissionError):
        shutil.rmtree(path)


def slot_invocation(guard: Invocation, root: Path) -> Invocation:
    """Return the invocation that acts in this work tree with the state of `guard`."""
    there = replace(guard, repo=root)
    return replace(there, workspace_option=guard.workspace.name)
