"""What `guard rollback` prints."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from guard.core.base.fields import Frozen, Id, Line, Oid, Report
from guard.core.base.text import fit_line
from guard.core.coordinator.entries import TaskCommit
from guard.core.coordinator.state import Coordinator
from guard.core.coordinator.upkeep_events import RollbackStarted
from guard.core.rollback.journal import SettledRollback
from guard.core.snapshots.snapshot import MOST_NAMED


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
    """The work tree as it was before; null where no work tree was touched."""
    reverted: bool = False
    """Whether there was something to revert, so that `to_sha` is a commit of the rollback's own."""


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


def report_refusal(
    state: Coordinator, fields: Mapping[str, object], *, dry: bool
) -> RollbackReport:
    """Report what the plan does not allow, from the event that says so."""
    dependents = fields.get("dependents", ())
    return make_report(
        str(fields["task_id"])[:128],
        str(fields["reason"]),
        _sentence(state, fields),
        done=False,
        dry=dry,
        dependents=dependents if isinstance(dependents, tuple) else (),
    )


def make_report(
    task_id: str, reason: str, detail: str = "", *, done: bool, dry: bool, **lists: tuple[Any, ...]
) -> RollbackReport:
    """Make a report in which the lists that are not given are empty."""
    empty = {"dependents": (), "tasks": (), "aborted": (), "paths": ()}
    fields = {"task_id": task_id, "done": done, "dry_run": dry, "reason": reason, "detail": detail}
    return RollbackReport.model_validate({**empty, **lists, **fields})


def _sentence(state: Coordinator, fields: Mapping[str, object]) -> str:
    task, dependents = state.task_name(str(fields["task_id"])), fields.get("dependents", ())
    words = {
        "unknown_task": f"the plan has no task {task}",
        "not_completed": f"{task} is not completed, so there is nothing to roll back",
        "no_commit_recorded": f"no commit of {task} was recorded when it passed its audit",
    }
    first = dependents[:10] if isinstance(dependents, tuple) else ()
    named = ", ".join(state.task_name(dependent) for dependent in first)
    built = f"completed tasks depend on {task}: {named}; --cascade rolls them back first"
    return fit_line(words.get(str(fields["reason"]), built))


def task_entry(
    task_id: str,
    commit: TaskCommit,
    commits: Sequence[str],
    to_sha: str | None = None,
    snapshot: str | None = None,
    *,
    reverted: bool = False,
) -> RolledBackTask:
    return RolledBackTask(
        task_id=task_id,
        commit=commit.commit_sha,
        commits=tuple(commits[:MOST_NAMED]),
        files=tuple(fit_line(path) for path in commit.files_modified[:MOST_NAMED]),
        to_sha=to_sha,
        snapshot=snapshot,
        reverted=reverted,
    )


def report_finished(
    before: Coordinator, now: Coordinator, found: SettledRollback, *, dry: bool
) -> RollbackReport:
    """Report a killed rollback that is finished now: the user who asks for it again gets it."""
    commit, begun = before.task_commits.get(found.task_id), before.rollback_in_progress
    commits = begun.commits if begun is not None else ()
    reverted = found.to_sha != found.head
    tasks = (
        (
            task_entry(
                found.task_id, commit, commits, found.to_sha, found.snapshot, reverted=reverted
            ),
        )
        if commit is not None
        else ()
    )
    detail = "guard has finished an earlier rollback that was killed"
    aborted = aborted_tasks(before, now)
    return make_report(
        found.task_id, "finished", detail, done=True, dry=dry, tasks=tasks, aborted=aborted
    )


def report_repeated(begun: RollbackStarted, *, dry: bool) -> RollbackReport:
    detail = f"rolled back before under this id, at {begun.at:%Y-%m-%d %H:%M} UTC"
    return make_report(begun.task_id, "repeated", detail, done=True, dry=dry)


def aborted_tasks(before: Coordinator, now: Coordinator | None) -> tuple[str, ...]:
    """Tasks that were in progress, and are not any more because what they were built on is gone."""
    still = {work.task_id for work in now.in_progress_tasks} if now else set()
    return tuple(work.task_id for work in before.in_progress_tasks if work.task_id not in still)
