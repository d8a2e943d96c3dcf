"""Ask git what an agent changed since it was spawned."""

import os
import stat
from collections.abc import Container, Iterable, Mapping
from contextlib import suppress
from dataclasses import field, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from guard.context.invocation import Invocation
from guard.core.agents.baseline import Ground
from guard.core.base.first_use import dataclass
from guard.core.base.paths import spell, unspell
from guard.core.claims.evidence import WorkSinceBaseline
from guard.core.claims.substance import Substance, TextChange, weigh
from guard.core.iteration.baseline import Baseline
from guard.core.iteration.facts import DirtyFile
from guard.core.work.count import Work, count_work, describe_uncounted
from guard.core.work.leftovers import files_changed_since
from guard.errors import RepositoryProblem
from guard.git.changed_paths import BlobPair, net_changes, recent_paths
from guard.git.content_hash import ContentReader
from guard.git.dirty import read_dirty
from guard.git.history import read_history
from guard.git.locate import Repository, repository_at
from guard.git.named_files import open_root
from guard.git.reader import RepositoryReader
from guard.git.refs import read_refs
from guard.git.texts import read_text_changes
from guard.iteration.baseline import standing_of

SLACK_SECONDS = 2
"""Git stores whole seconds, and a file system may round."""
_MOST_NESTED = 20
_CODE = tuple(
    f".{name}".encode()
    for name in [
        "py",
        "js",
        "jsx",
        "mjs",
        "cjs",
        "ts",
        "tsx",
        "go",
        "rs",
        "java",
        "kt",
        "scala",
        "rb",
        "php",
        "c",
        "h",
        "cc",
        "cpp",
        "hpp",
        "cs",
        "swift",
        "ex",
        "exs",
    ]
)
_MOST_READ = 500
"""Of so many changed files the text is weighed."""


def read_ground(git: RepositoryReader) -> Ground:
    """Read the state of the repository in which an agent starts; nothing is written to it."""
    standing = {**standing_of(git, read_refs(git)), "dirty": read_dirty(git).files}
    return Ground.of(spell(os.fsencode(git.repository.root)), standing)


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


def changes_since(
    ground: Ground,
    since: datetime,
    git: RepositoryReader,
    others: Container[str] = (),
    noted: frozenset[str] = frozenset(),
) -> WorkSinceBaseline:
    """Collect what the agent changed since then, in the work tree where it began and in the one it reports from.

    What the check does not count as work does not count here either. `others` are the refs of other agents, `noted` the
    commits that guard's hook in git saw being made. Raises a RepositoryProblem if git cannot tell.
    """
    search = _Search(git.environ, git.time_limit, since.timestamp() - SLACK_SECONDS, noted)
    now, root = git.repository, Path(os.fsdecode(unspell(ground.root)))
    began = now if now.root == root else repository_at(root)
    if began.common_dir != now.common_dir and ground.head is None:
        raise RepositoryProblem(
            f"{now.root} is not in the repository in which the agent began, {ground.root}",
            "report from where it was spawned",
        )
    places = [search.find_work(began, ground.baseline, others)]
    if began.common_dir != now.common_dir:
        named = ground.baseline.model_copy(update={"revision": ground.head, "dirty": ()})
        places.append(search.find_work(now, named))
    if began is not now:
        found = search.recent_dirty_paths(now)
        places.append(_WorkFound(now, found | search.find_nested_changes(now, found)))
    return _combine(places, git)


@dataclass(frozen=True)
class _WorkFound:
    """What was found in one work tree."""

    repository: Repository
    left: set[bytes]
    """What is uncommitted, or lies in nested repositories."""
    committed: Mapping[bytes, BlobPair] = field(default_factory=dict)
    work: Work = field(default_factory=Work)
    baseline: Baseline | None = None


def _combine(places: list[_WorkFound], git: RepositoryReader) -> WorkSinceBaseline:
    files = {path for place in places for path in (*place.left, *place.committed)}
    return WorkSinceBaseline(
        files=frozenset(map(spell, files)),
        commits=sum(place.work.counted for place in places),
        uncounted=tuple(words for place in places for words in describe_uncounted(place.work)),
        last_edit=_last_edit(places),
        substance=_weigh(places, git),
        left=frozenset(spell(path) for place in places for path in place.left),
    )


def _last_edit(places: list[_WorkFound]) -> datetime | None:
    times: list[float] = []
    for place in places:
        for path in {*place.left, *place.committed}:
            if path.endswith(_CODE):
                with suppress(OSError):
                    times.append(os.lstat(_path_below(place.repository, path)).st_mtime)
    return datetime.fromtimestamp(max(times), UTC) if times else None


def _weigh(places: list[_WorkFound], git: RepositoryReader) -> Substance:
    """Weigh the texts of the changed files, where they can be read."""
    found: list[TextChange] = []
    for place in places:
        # What the user had changed before is left out: guard does not have its text.
        users = {unspell(file.path) for file in place.baseline.dirty} if place.baseline else set()
        committed = {path: pair for path, pair in place.committed.items() if path not in users}
        left = sorted(place.left - users)[:_MOST_READ]
        head = place.baseline.head if place.baseline else "HEAD"
        reader = replace(git, repository=place.repository)
        found += read_text_changes(reader, head, committed, left)
    count = sum(len({*place.left, *place.committed}) for place in places)
    return weigh(found, whole=len(found) == count)


def _is_as_left(
    file: DirtyFile, contents: ContentReader, path: bytes, committed: BlobPair | None
) -> bool:
    now = contents.identity(path)
    if (now.kind, now.content) != (file.kind, file.content):
        return False
    if now.content is None:
        return now.kind == "missing" and (committed is None or committed.after is None)
    blob = committed.after if committed else None
    return blob is None or contents.blob(path, blob) == blob


def tracked_files(git: RepositoryReader) -> frozenset[str]:
    listed = git.ask("ls-files", "-z", "--cached")
    return frozenset(spell(path) for path in listed.split(b"\0") if path)


@dataclass(frozen=True)
class _Search:
    environ: Mapping[str, str]
    time_limit: float
    earliest: float
    noted: frozenset[str] = frozenset()

    def find_work(
        self, repository: Repository, baseline: Baseline, others: Container[str] = ()
    ) -> "_WorkFound":
        git = self._git(repository)
        history = read_history(git, baseline, others, self.noted)
        work = count_work(history)
        committed = net_changes(git, history) if work.net_change else {}
        users = self._users_paths(repository, baseline.dirty, committed)
        committed = {path: pair for path, pair in committed.items() if path not in users}
        left = set() if baseline.revision else self.dirty_paths_since(repository, baseline.dirty)
        left |= self.find_nested_changes(repository, {*committed, *left})
        return _WorkFound(repository, left - users, committed, work, baseline)

    def _users_paths(
        self,
        repository: Repository,
        before: tuple[DirtyFile, ...],
        committed: Mapping[bytes, BlobPair],
    ) -> set[bytes]:
        """Return the paths that have the content in which the user had left them, committed or not."""
        root = open_root(repository.root)
        try:
            contents = ContentReader(root)
            return {
                path
                for file in before
                if file.left_by == "user" and not file.path.endswith("/")
                for path in [unspell(file.path)]
                if _is_as_left(file, contents, path, committed.get(path))
            }
        finally:
            os.close(root)

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
            made = recent_paths(self._git(repository), self.earliest)
        return made | self.recent_dirty_paths(repository)


def _path_below(repository: Repository, path: bytes) -> Path:
    return repository.root / os.fsdecode(path)
