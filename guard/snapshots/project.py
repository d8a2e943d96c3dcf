"""Run plumbing commands in the project's repository, with its index or with one of guard's own."""

import hashlib
import os
import stat
from collections.abc import Collection, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import TypeGuard

from guard.core.base.first_use import dataclass
from guard.core.base.paths import spell
from guard.core.rescue.state import RepositoryState, full_ref
from guard.errors import RepositoryProblem
from guard.git.gitdir_files import read_portion
from guard.git.locate import Repository
from guard.git.obstacles import is_writer, refuse_to_write, refuse_to_write_index
from guard.git.reader import RepositoryReader
from guard.git.run import limited_deadline, read_config
from guard.git.status import filter_overrides
from guard.snapshots.fast_import import Listing, parse_tree
from guard.system.clock import Deadline

_SETTINGS = {"core.safecrlf": "false", "i18n.commitEncoding": "UTF-8"}
_OPERATIONS = {
    "MERGE_HEAD": "merge",
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
    "CHERRY_PICK_HEAD": "cherry_pick",
    "REVERT_HEAD": "revert",
    "BISECT_LOG": "bisect",
    "sequencer": "sequencer",
}
_LOCKS = {"index.lock": "index_lock", "HEAD.lock": "head_lock"}
_MOST_BYTES = 1024**3
_BRIEF_SHARE = 0.1
_LONGEST_READ_SECONDS = 60.0
_OWN_IDENTITY = ("guard", "guard@localhost")
_NO_PART_OF_A_NAME = "".join(map(chr, range(33))) + ".,:;<>\"\\'"


@dataclass(frozen=True)
class Site:
    """A work tree, the workspace that has its state, and the time that git is given."""

    repository: Repository
    workspace: Path
    environ: Mapping[str, str]
    time_limit: float

    def project(self) -> "Project":
        return Project(self.repository, self.environ, limited_deadline(self.time_limit))


@dataclass(frozen=True)
class Project:
    """One repository, with the time that is left for it."""

    repository: Repository
    environ: Mapping[str, str]
    deadline: Deadline
    extra: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    """More settings that win over the repository's."""

    def without_filters(self) -> "Project":
        """A copy in which no filter of the repository's runs: git looks again at files that it was not asked about."""
        reader = RepositoryReader(self.repository, self.environ, self.deadline.left(), self.extra)
        return replace(self, settings={**self.settings, **filter_overrides(reader)})

    def with_index(self, path: Path) -> "Project":
        """A copy with another index, and with the identity that commits are made under."""
        return self.with_variables(GIT_INDEX_FILE=os.fspath(path), **self._identity())

    def with_variables(self, **extra: str) -> "Project":
        return replace(self, extra={**self.extra, **extra})

    def with_object_folder(self, folder: Path) -> "Project":
        folder.mkdir(mode=0o700)
        usual = os.fspath(self.repository.common_dir / "objects")
        quoted = usual.replace("\\", "\\\\").replace('"', '\\"')
        return self.with_variables(
            GIT_OBJECT_DIRECTORY=os.fspath(folder), GIT_ALTERNATE_OBJECT_DIRECTORIES=f'"{quoted}"'
        )

    @property
    def committer(self) -> str:
        who = self._identity()
        return f"{who['GIT_COMMITTER_NAME']} <{who['GIT_COMMITTER_EMAIL']}>"

    def with_brief_deadline(self) -> "Project":
        """A copy for a question that can stay unanswered: a repository that hangs must not use up the time."""
        return replace(self, deadline=self.deadline.part(_BRIEF_SHARE))

    def call(self, *words: str, stdin: bytes = b"", codes: Collection[int] = (0,)) -> bytes:
        """Run git and return what it prints; `RepositoryProblem` with git's own words if it refuses."""
        reader = self._reader()
        if not is_writer(words):
            reader = replace(reader, time_limit=min(reader.time_limit, _LONGEST_READ_SECONDS))
        return reader.ask(*words, stdin=stdin, codes=codes)

    def command(self, *words: str) -> tuple[list[str], dict[str, str]]:
        return self._reader().command(*words)

    def _reader(self) -> RepositoryReader:
        reader = RepositoryReader(self.repository, self.environ, self.deadline.left(), self.extra)
        return reader.with_settings({**_SETTINGS, **self.settings})

    def line(self, *words: str, stdin: bytes = b"") -> str:
        return os.fsdecode(self.call(*words, stdin=stdin)).rstrip("\n")

    def line_if_any(self, *words: str) -> str | None:
        """A line of output, or None if git says no by its exit status alone."""
        return os.fsdecode(self.call(*words, codes=(0, 1))).rstrip("\n") or None

    def commit_of(self, name: str) -> str | None:
        """The commit that HEAD or a branch names; None before the first one."""
        words = ("rev-parse", "--verify", "--quiet", "--end-of-options")
        found = self.line_if_any(*words, f"{name}^{{commit}}")
        missing = self.line_if_any(*words, name) if found is None else None
        if missing is not None and missing.strip("0"):
            raise RepositoryProblem(
                f"{name} names the commit {missing}, which the repository does not have",
                "run `git fsck` to find out what else is missing",
            )
        return found

    def tree(self, treeish: str | None) -> Listing:
        """Every file of a commit, with its mode and object id; nothing for no commit."""
        if treeish is None:
            return {}
        return parse_tree(self.call("ls-tree", "-r", "-z", "--full-tree", treeish))

    def object_format(self) -> str:
        """The hash that names the objects; the usual one where git cannot tell."""
        # Git takes another one only from this very file, and follows no include there.
        settings = read_portion(self.repository.common_dir / "config")
        if (
            settings is not None
            and settings.offset == 0
            and b"objectformat" not in settings.data.lower()
        ):
            return "sha1"
        try:
            return self.with_brief_deadline().line("rev-parse", "--show-object-format")
        except RepositoryProblem:
            return "sha1"

    def refuse_obstacles(self, *refs: str) -> None:
        """Raise `GitObstacle` if git would write elsewhere, or wait, when it moves these refs and the index."""
        refuse_to_write(self.repository, refs)
        refuse_to_write_index(self.repository)

    def state(self, baseline_branch: str | None) -> RepositoryState:
        if not _is_folder(self.repository.git_dir):
            return RepositoryState(git_dir=False)
        branch = self.line_if_any("symbolic-ref", "--quiet", "HEAD")
        damaged = self._index_is_damaged()
        return RepositoryState(
            branch=branch and spell(os.fsencode(branch)),
            baseline_branch=full_ref(baseline_branch),
            operation=self._find_first(_OPERATIONS),
            misplaced=self._misplacing_setting(),
            conflicts=not damaged and bool(self.call("ls-files", "--unmerged", "-z")),
            lock=self._find_first(_LOCKS) or self._branch_lock(branch),
            index_damaged=damaged,
            elsewhere=branch is not None and self._checkouts(branch) > 1,
        )

    def _find_first(self, names: Mapping[str, str]) -> str | None:
        there = (name for name in names if os.path.lexists(self.repository.git_dir / name))
        return next((names[name] for name in there), None)

    def _branch_lock(self, branch: str | None) -> str | None:
        lock = self.repository.common_dir / f"{branch}.lock"
        return "branch_lock" if branch is not None and os.path.lexists(lock) else None

    def _index_is_damaged(self) -> bool:
        """Check the hash at the end of the index, where there is one: git itself reads half an index as if it were whole."""
        path = self.repository.git_dir / "index"
        found = read_portion(path, most=_MOST_BYTES)
        if found is None:
            return os.path.lexists(path)
        digest = hashlib.new(self.object_format(), usedforsecurity=False)
        end = max(0, len(found.data) - digest.digest_size)
        digest.update(memoryview(found.data)[:end])
        return found.data[end:] not in (digest.digest(), bytes(digest.digest_size))

    def _misplacing_setting(self) -> str | None:
        """Return the setting that puts the work tree elsewhere; it binds only the main work tree, not a linked one."""
        place = self._config("core.worktree")
        inside = self.repository.git_dir
        if place is not None and os.path.realpath(inside / place) != os.fspath(
            self.repository.root
        ):
            return "core_worktree"
        main = inside == self.repository.common_dir
        return "core_bare" if main and self._config("core.bare", "bool") == "true" else None

    def _checkouts(self, branch: str) -> int:
        listed = self.call("worktree", "list", "--porcelain").split(b"\n")
        return listed.count(b"branch " + os.fsencode(branch))

    def _config(self, key: str, kind: str = "") -> str | None:
        return read_config(key, self.repository.git_dir, self.environ, kind)

    def _identity(self) -> dict[str, str]:
        name = self.environ.get("GIT_AUTHOR_NAME") or self._config("user.name")
        mail = self.environ.get("GIT_AUTHOR_EMAIL") or self._config("user.email")
        name, mail = (name, mail) if _is_name(name) and _is_name(mail) else _OWN_IDENTITY
        author = {"GIT_AUTHOR_NAME": name, "GIT_AUTHOR_EMAIL": mail}
        return {**author, "GIT_COMMITTER_NAME": name, "GIT_COMMITTER_EMAIL": mail}


def _is_name(text: str | None) -> TypeGuard[str]:
    """Tell whether anything is left of a name when git has stripped what may not stand at its ends."""
    return bool(text and text.strip(_NO_PART_OF_A_NAME))


def _is_folder(path: Path) -> bool:
    """Tell whether it is a folder: a link or a file in its place would lead to another repository."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False
