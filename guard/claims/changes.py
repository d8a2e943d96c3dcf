"""Ask git what an agent changed since it was spawned."""

import os
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path

from guard.context.invocation import Invocation
from guard.core.agents.baseline import Ground
from guard.core.base.paths import spell, unspell
from guard.core.claims.evidence import WorkSinceBaseline
from guard.core.iteration.events import DirtyFile
from guard.core.work.leftovers import files_changed_since
from guard.errors import RepositoryProblem
from guard.git.changed_paths import Committed, read_committed
from guard.git.dirty import read_dirty
from guard.git.locate import Repository, repository_at
from guard.git.reader import RepositoryReader
from guard.git.refs import read_refs

SLACK_SECONDS = 2
"""Git stores whole seconds, and a file system may round."""
_MOST_NESTED = 20


def read_ground(git: RepositoryReader) -> Ground:
    """Read the state of the repository in which an agent starts; nothing is written to it."""
    head = git.line("rev-parse", "--quiet", "--verify", "HEAD^{commit}") or read_refs(git).head
    files = read_dirty(git).files
    return Ground(spell(os.fsencode(git.repository.root)), head, files)


def current_ground(guard: Invocation) -> Ground | None:
    """Read the state of the invocation's repository; None without one: claims are then not measured."""
    repository = guard.repository_if_any
    if repository is None:
        return None
    limit = guard.users_config.settings.completion_check.git_timeout_seconds
    try:
        return read_ground(RepositoryReader(repository, guard.environ, limit))
    except RepositoryProblem as error:
        guard.output.warn(f"the state of the repository is not known: {error.message}")
        return None


def changes_since(ground: Ground, since: datetime, git: RepositoryReader) -> WorkSinceBaseline:
    """Collect every path changed since then, in the work tree where the agent began and in the one it reports from.

    Raises a RepositoryProblem if git cannot tell.
    """
    search = _Search(git.environ, git.time_limit, since.timestamp() - SLACK_SECONDS)
    now, root = git.repository, Path(os.fsdecode(unspell(ground.root)))
    began = now if now.root == root else repository_at(root)
    if began.common_dir != now.common_dir and ground.head is None:
        raise RepositoryProblem(
            f"{now.root} is not in the repository in which the agent began, {ground.root}",
            "report from where it was spawned",
        )
    found = search.find_committed(now, ground.head)
    files = found.paths | (search.recent_dirty_paths(now) if began is not now else set())
    files |= search.find_nested_changes(now, files)
    if began.common_dir != now.common_dir:
        there = search.find_committed(began, ground.head)
        files |= there.paths
        found.oids |= there.oids
    left = search.dirty_paths_since(began, ground.dirty)
    files |= left | search.find_nested_changes(began, left)
    return WorkSinceBaseline(frozenset(map(spell, files)), len(found.oids))


def tracked_files(git: RepositoryReader) -> frozenset[str]:
    listed = git.ask("ls-files", "-z", "--cached")
    return frozenset(spell(path) for path in listed.split(b"\0") if path)


@dataclass(frozen=True)
class _Search:
    environ: Mapping[str, str]
    time_limit: float
    earliest: float

    def find_committed(self, repository: Repository, head: str | None) -> Committed:
        return read_committed(self._git(repository), head, self.earliest, by_time=False)

    def _git(self, repository: Repository) -> RepositoryReader:
        return RepositoryReader(repository, self.environ, self.time_limit)

    def dirty_paths_since(
        self, repository: Repository, before: tuple[DirtyFile, ...]
    ) -> set[bytes]:
        """Return the paths that became dirty since, and those that were dirty before and are clean now."""
        now = read_dirty(self._git(repository), before)
        known = {file.path for file in before}
        left = known - {file.path for file in now.files}
        found = {unspell(path) for path in left if not path.endswith("/")}
        for file in files_changed_since(before, now.files):
            paths = now.paths([file])
            if file.path in known and file.path in now.members:
                paths = (path for path in paths if self._is_new(repository, path))
            found.update(paths)
        return found

    def recent_dirty_paths(self, repository: Repository) -> set[bytes]:
        """Return the dirty paths of a work tree without a baseline that were written since, or are missing."""
        now = read_dirty(self._git(repository))
        return {path for path in now.paths(now.files) if self._is_new(repository, path)}

    def _is_new(self, repository: Repository, path: bytes) -> bool:
        # By the inode's change time, which no program can set; for a folder it shows nothing.
        try:
            status = os.lstat(_path_below(repository, path))
        except OSError:
            return True
        return stat.S_ISDIR(status.st_mode) or status.st_ctime >= self.earliest

    def find_nested_changes(self, repository: Repository, paths: Iterable[bytes]) -> set[bytes]:
        """Return the changes inside repositories nested at some of these paths, where git can tell."""
        nested = (path for path in paths if os.path.lexists(_path_below(repository, path) / ".git"))
        found: set[bytes] = set()
        for path in islice(nested, _MOST_NESTED):
            with suppress(RepositoryProblem):
                inner = repository_at(_path_below(repository, path))
                done = self._changes_in(inner, inner.common_dir == repository.common_dir)
                found.update(path.rstrip(b"/") + b"/" + name for name in done)
        return found

    def _changes_in(self, repository: Repository, linked: bool) -> set[bytes]:
        made: set[bytes] = set()
        if not linked:
            # The commits of a linked work tree are counted with those of its repository.
            git = self._git(repository)
            made = read_committed(git, None, self.earliest, by_time=True).paths
        return made | self.recent_dirty_paths(repository)


def _path_below(repository: Repository, path: bytes) -> Path:
    return repository.root / os.fsdecode(path)
