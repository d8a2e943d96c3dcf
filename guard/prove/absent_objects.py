"""Tell whether the commits that a proof compares are here with all their files."""

from guard.core.base.text import plural
from guard.core.prove.judge_work import ProofJudgement
from guard.git.reader import RepositoryReader
from guard.git.refs import missing_commits
from guard.git.run import FETCH_ALL


def find_missing(git: RepositoryReader, head: str, *bases: str | None) -> ProofJudgement | None:
    """Return why the work cannot be judged for want of a commit or a file; None if all is here."""
    commits = list(dict.fromkeys(commit for commit in (*bases, head) if commit is not None))
    gone = missing_commits(git, commits)
    if gone:
        return ProofJudgement(
            "unverifiable",
            "history_missing",
            f"the commit {gone[0][:12]}, which the work is held against, is not here: "
            "`git fetch --deepen 50` gets more history, `--baseline` names another commit",
        )
    for commit in reversed(commits):
        count = _count_missing(git, commit)
        if count:
            return ProofJudgement(
                "unverifiable",
                "objects_missing",
                f"{plural(count, 'object')} of the commit {commit[:12]} not here, as in a partial clone: "
                f"`{FETCH_ALL}` brings them",
            )
    return None


def _count_missing(git: RepositoryReader, commit: str) -> int:
    words = ("rev-list", "--objects", "--no-object-names", "--missing=print")
    listed = git.ask(*words, f"{commit}^{{tree}}")
    return sum(line.startswith(b"?") for line in listed.splitlines())
