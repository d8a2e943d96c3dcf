"""Fold events of landings into the board."""

from guard.core.base.fast_models import entry_from
from guard.core.coordinator import entries, landing_events
from guard.core.coordinator.builder import Board, Changes, on


def _choose_target(board: Board, event: landing_events.LandingTargetChosen) -> None:
    board.landing_target = event.target


def _start(board: Board, event: landing_events.LandingStarted) -> None:
    board.landing_in_progress = entry_from(entries.Landing, event, started_at=event.at)


def _fail(board: Board, _event: landing_events.LandingFailed) -> None:
    board.landing_in_progress = None


def _land(board: Board, event: landing_events.TaskLanded) -> None:
    landed = entry_from(entries.LandedTask, event, landed_at=event.at)
    board.landed_tasks[event.task_id] = landed
    board.landing_setbacks.pop(event.task_id, None)
    board.reverted_tasks.pop(event.task_id, None)
    under_way = board.landing_in_progress
    # The landing ends with the last of its tasks; all of them are recorded in one append.
    if under_way is not None and under_way.commits[-1].task_id == event.task_id:
        board.landing_in_progress = None


def _refuse(board: Board, event: landing_events.LandingRefused) -> None:
    before = board.landing_setbacks.get(event.task_id)
    attempts = before.attempts + 1 if before is not None else 1
    commit = board.task_commits.pop(event.task_id, None)
    base = commit.base_sha if commit is not None else None
    setback = entry_from(entries.LandingSetback, event, attempts=attempts, base_sha=base)
    board.landing_setbacks[event.task_id] = setback
    board.rework_reasons[event.task_id] = _reason(event)
    board.reopen(event.task_id)


def _reason(event: landing_events.LandingRefused) -> str:
    branch = event.target.removeprefix("refs/heads/")
    if event.reason == "conflict":
        return (
            f"The task passed its audit, but its work cannot be merged into {branch}: {event.detail}\n"
            f"Merge {branch} into the branch of the task, resolve the conflicts, and commit."
        )
    return (
        f"The task passed its audit, but merged into {branch} it fails the project's own checks:\n{event.detail}\n"
        f"Merge {branch} into the branch of the task, repair what fails, and commit."
    )


CHANGES: Changes = dict(
    (
        on(landing_events.LandingTargetChosen, _choose_target),
        on(landing_events.LandingStarted, _start),
        on(landing_events.LandingFailed, _fail),
        on(landing_events.TaskLanded, _land),
        on(landing_events.LandingRefused, _refuse),
    )
)
