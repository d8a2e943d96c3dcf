"""Where HEAD stands, and whether commits have come since."""

from guard.git.reader import RepositoryReader

UNBORN = "empty"


def head(git: RepositoryReader) -> str | None:
    """The commit that is checked out; `empty` before the first one; None if HEAD leads nowhere."""
    found = git.line("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    if found is not None:
        return found
    branch = git.line("symbolic-ref", "--quiet", "HEAD")
    known = branch and git.line("rev-parse", "--verify", "--quiet", branch)
    return UNBORN if branch and not known else None


def has_new_commits(git: RepositoryReader, since: str, now: str) -> bool:
    """Whether there are commits behind `now` that were not behind `since`; going back to an old commit brings none."""
    if UNBORN in (since, now):
        return since == UNBORN != now
    return git.line("rev-list", "--count", "--max-count=1", now, f"^{since}") == "1"
