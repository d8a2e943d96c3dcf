"""What `guard plan land` prints."""

from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import Field

from guard.core.base.fields import Count, Frozen, Id, Line, Oid, Report, Text
from guard.core.base.text import escape, plural

LandingOutcome = Literal[
    "landed",
    "already_landed",
    "nothing_to_land",
    "planned",
    "not_audited",
    "conflict",
    "refuted",
    "review",
    "unverifiable",
    "not_ready",
]
_EXIT = {
    "review": 14,
    "unverifiable": 14,
    "not_ready": 14,
    "refuted": 17,
    "conflict": 1,
    "not_audited": 1,
}
_ORDER = (14, 17, 1)


class TaskLanding(Frozen):
    """What became of one task."""

    task_id: Id
    outcome: LandingOutcome
    detail: Text
    """Why it did not land, for people and for the prompt of the agent that goes on."""
    paths: tuple[Line, ...]
    """Files that conflict, or that stand in the way; the first hundred of them."""
    commit: Oid | None
    """The commit on the target."""
    tip: Oid | None
    """The last of the task's own commits."""
    kept_ref: Line | None
    """Where the task's own commits are kept."""
    kept_branch: Line | None
    """The task's branch, where it is not deleted."""
    reopened: bool
    """Whether the task goes back to an agent."""
    asks_person: bool


class ForeseenConflict(Frozen):
    """Two tasks whose committed work conflicts, or one that conflicts with the target."""

    tasks: tuple[Id, ...]
    paths: tuple[Line, ...]
    """The first hundred of the files."""
    detail: Text


class LandingReport(Report):
    """Which tasks landed, and which did not and why."""

    schema_: Literal["guard/landing/1"] = Field("guard/landing/1", alias="schema")
    target: Line
    """The branch by its full name."""
    head: Oid | None
    """Its tip before; None if it does not exist."""
    to_sha: Oid | None
    """Its tip after."""
    dry_run: bool
    landed: Count
    tasks: tuple[TaskLanding, ...]
    foreseen: tuple[ForeseenConflict, ...] = ()
    """With a dry run: work that will conflict, also of tasks that agents still work on."""

    @property
    def exit_code(self) -> int:
        """14 if a person is needed, 17 if work was refuted, 1 if a task did not land for another reason, else 0."""
        codes = {14 if task.asks_person else _EXIT.get(task.outcome, 0) for task in self.tasks}
        return next((code for code in _ORDER if code in codes), 0)


_WORDS = {
    "landed": "landed",
    "already_landed": "had landed already",
    "nothing_to_land": "has no commits to land",
    "planned": "would land",
    "not_audited": "has not passed its audit",
    "conflict": "conflicts with the target",
    "refuted": "fails the project's own checks on the target",
    "review": "rewrites tests and waits for your acceptance",
    "unverifiable": "cannot be proven, and a proof is required",
    "not_ready": "cannot land now",
}


def landing_text(report: LandingReport, names: Mapping[str, str]) -> str:
    """Return the report for people; `names` are the tasks' names in the plan."""
    branch = report.target.removeprefix("refs/heads/")
    if not report.tasks:
        first = f"Nothing to land on {escape(branch)}."
        return "\n".join([first, *foreseen_lines(report.foreseen, names)])
    first = f"{plural(report.landed, 'task')} landed on {escape(branch)}"
    if report.dry_run:
        first = f"Nothing is changed: this is a dry run for {escape(branch)}"
    elif report.to_sha is not None:
        first += f", now at {report.to_sha[:10]}"
    lines = [f"{first}."]
    for task in report.tasks:
        lines.append(_task_line(task, names.get(task.task_id, task.task_id)))
        lines += [f"    {escape(line)}" for line in task.detail.splitlines()[:12]]
        if task.kept_branch:
            kept = task.kept_branch.removeprefix("refs/heads/")
            lines.append(f"    kept: {escape(kept)}")
        if task.reopened:
            lines.append("    The task is available again, and its next agent is told why.")
    return "\n".join([*lines, *foreseen_lines(report.foreseen, names)])


def foreseen_lines(foreseen: Sequence[ForeseenConflict], names: Mapping[str, str]) -> list[str]:
    """Return one line for each conflict that is to come."""
    lines = []
    for conflict in foreseen:
        who = " and ".join(escape(names.get(task_id, task_id)) for task_id in conflict.tasks)
        verb = "will conflict" if len(conflict.tasks) > 1 else "conflicts with the target"
        listed = ", ".join(escape(path) for path in conflict.paths[:5])
        more = len(conflict.paths) - 5
        lines.append(
            f"{who} {verb}"
            + (f" in {listed}" if listed else f": {escape(conflict.detail)}")
            + (f" and {more} more" if more > 0 else "")
        )
    return lines


def _task_line(task: TaskLanding, name: str) -> str:
    commit = f" as {task.commit[:10]}" if task.commit and task.outcome == "landed" else ""
    return f"  {escape(name)} {_WORDS[task.outcome]}{commit}"
