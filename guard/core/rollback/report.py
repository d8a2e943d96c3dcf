"""What `guard rollback` prints."""

from typing import Literal

from pydantic import Field

from guard.core.base.fields import Frozen, Id, Line, Oid, Report


class RolledBackTask(Frozen):
    """One task, with what is taken back of it."""

    task_id: Id
    commit: Oid
    """The last of its commits."""
    commits: tuple[Oid, ...]
    """Its commits, the newest first; the first hundred of them."""
    files: tuple[Line, ...]
    """What it had changed; the first hundred of them."""
    to_sha: Oid | None
    """The revert; the commit before it if there was nothing to revert; none yet in a dry run."""
    snapshot: Id | None
    """The work tree as it was before."""


class RollbackReport(Report):
    """A rollback, or why there is none."""

    schema_: Literal["guard/rollback/1"] = Field("guard/rollback/1", alias="schema")
    task_id: Line
    done: bool
    dry_run: bool
    reason: Line
    """`rolled_back`, `finished` (one that was killed), `repeated`, `planned`, or the word for what stands against it."""
    detail: Line
    dependents: tuple[Id, ...]
    """Completed tasks that forbid it."""
    tasks: tuple[RolledBackTask, ...]
    """What was rolled back, in order: the task itself is the last."""
    aborted: tuple[Id, ...]
    """Tasks in progress that were built on it."""
    paths: tuple[Line, ...]
    """Files that change, or that stand against it."""
