"""What `guard baseline` prints."""

from typing import Literal

from pydantic import Field

from guard.core.base.fields import Count, Report


class BaselineReport(Report):
    """Where the repository stands as an iteration begins."""

    schema_: Literal["guard/baseline-report/1"] = Field("guard/baseline-report/1", alias="schema")
    baseline: str
    run: str
    iteration: Count
    worktree: str
    head: str
    """The commit, or `empty` before the first one."""
    branch: str | None
    """The ref that HEAD names; null if it is detached."""
    refs: Count
    stashes: Count
    shallow: bool
    dirty: Count
    """Files that differ from the last commit, untracked ones too."""
    left_by_iterations: Count
    """Those of them that an earlier iteration left uncommitted; the others are the user's."""
    pin: str | None
    """The ref that keeps these commits from git's garbage collection."""
    warnings: tuple[str, ...]
