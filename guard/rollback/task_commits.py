"""Which commits are a task's: those between where it began and where it passed its audit."""

from collections.abc import Sequence

from guard.errors import RepositoryProblem
from guard.git.reader import RepositoryReader
from guard.git.refs import missing
from guard.rollback.errors import Stopped

MOST_COMMITS = 10_000


def commits_of_task(
    git: RepositoryReader, base_sha: str | None, commit_sha: str, earlier: Sequence[str] = ()
) -> tuple[str, ...]:
    """The commits of a task, the newest first: those after its base, by first parents, up to where it ended.

    `earlier` are the commits at which other tasks had ended before: what those lead to is theirs. Without a base it is the last
    commit alone.
    """
    _refuse_missing(git, [oid for oid in (base_sha, commit_sha) if oid])
    if base_sha is None:
        return (commit_sha,)
    if git.line("merge-base", base_sha, commit_sha) != base_sha:
        raise _rewritten(base_sha)
    known = set(missing(git, earlier)) if earlier else set()
    without = [base_sha, *(oid for oid in earlier if oid not in known)]
    stdin = "".join([f"{commit_sha}\n", *(f"^{oid}\n" for oid in without)]).encode()
    words = ("rev-list", "--first-parent", "--topo-order", f"--max-count={MOST_COMMITS + 1}")
    found = tuple(git.ask(*words, "--stdin", stdin=stdin).decode().split())
    if len(found) > MOST_COMMITS:
        raise RepositoryProblem(
            f"the task has more than {MOST_COMMITS} commits", "revert them with `git revert`"
        )
    return found


def _refuse_missing(git: RepositoryReader, oids: Sequence[str]) -> None:
    gone = missing(git, oids)
    if gone:
        raise _rewritten(gone[0])


def _rewritten(oid: str) -> Stopped:
    return Stopped(
        "not_in_history",
        f"{oid[:12]}, between which and its end the task's commits were, is not in its history",
        "`git log` and `git reflog` show what became of it; revert that with `git revert`",
    )
