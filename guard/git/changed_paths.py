"""List the files that commits have changed, with their blobs before and after."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from guard.core.work.count import new_commits
from guard.core.work.history import Commit, History, descendants_of
from guard.errors import RepositoryProblem
from guard.git.commits import diff_files
from guard.git.reader import RepositoryReader
from guard.git.refs import read_refs

MOST_COMMITS = 20_000
MOST_PATHS = 200_000
_BRANCHES = ("refs/heads/", "worktrees/", "main-worktree/")
_NO_FILES = ("000000", "120000", "160000")
"""The modes of what is no file of text: nothing, a link, a submodule."""


class BlobPair(NamedTuple):
    """The blobs of a file before and after; None where there is no such file."""

    before: str | None
    after: str | None


def net_changes(git: RepositoryReader, history: History) -> dict[bytes, BlobPair]:
    """Return the files that the agent's new commits touch and that differ from the baseline on a branch that has them."""
    new = {commit.oid: commit for commit in new_commits(history)}
    _refuse_more(len(new))
    base = history.before_head
    touched = {
        path: pair
        for pairs in _differences(git, (_line(commit, base) for commit in new.values()))
        for path, pair in pairs.items()
    }
    if base is None:
        return touched
    tips = descendants_of(new, history.commits) & {*history.names.values(), history.head}
    found: dict[bytes, BlobPair] = {}
    for pairs in _differences(git, (f"{tip} {base}" for tip in sorted(filter(None, tips)))):
        found |= {path: pair for path, pair in pairs.items() if path in touched}
    return found


def _line(commit: Commit, base: str | None) -> str:
    # A history that was begun anew is compared with the baseline, because no commit says what was left out.
    other = commit.parents[0] if commit.parents else base
    return f"{commit.oid} {other}" if other else commit.oid


def recent_paths(git: RepositoryReader, earliest: float) -> set[bytes]:
    """Return the paths in commits of any branch since a time, for a repository without a baseline."""
    refs = read_refs(git)
    tips = {oid for name, oid in refs.names.items() if name.startswith(_BRANCHES)}
    tips |= {refs.head} if refs.head else set()
    words = ("rev-list", "--stdin", f"--since={int(earliest)}", f"-n{MOST_COMMITS}")
    oids = git.ask(*words, stdin="\n".join(sorted(tips)).encode()).decode().split() if tips else []
    _refuse_more(len(oids))
    return {path for pairs in _differences(git, oids) for path in pairs}


def _differences(git: RepositoryReader, lines: Iterable[str]) -> Iterator[Mapping[bytes, BlobPair]]:
    count = 0
    for _, changed in diff_files(git, list(lines)):
        count += len(changed)
        if count > MOST_PATHS:
            raise RepositoryProblem(
                f"the new commits changed more than {MOST_PATHS} files", "see `git log --stat`"
            )
        yield {path: _pair(raw) for raw, path in changed}


def _pair(raw: bytes) -> BlobPair:
    before_mode, after_mode, before, after, _ = raw.decode().lstrip(":").split()
    return BlobPair(
        None if before_mode in _NO_FILES else before, None if after_mode in _NO_FILES else after
    )


def _refuse_more(count: int) -> None:
    if count >= MOST_COMMITS:
        raise RepositoryProblem(
            f"there are {MOST_COMMITS} new commits or more, too many for guard to compare",
            "look at them with `git log`",
        )
