"""Roll back a task: what the plan allows, carried out in the repository, and recorded."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from guard.context.invocation import Invocation
from guard.coordinator import record
from guard.coordinator.plan import plan_path
from guard.core.base.paths import path_line
from guard.core.base.text import fit_line, is_id, utf8_text
from guard.core.coordinator.decide import rollback_order
from guard.core.coordinator.requests import Draft
from guard.core.coordinator.state import Coordinator
from guard.core.coordinator.upkeep_events import RollbackFailed, RollbackStarted, TaskRolledBack
from guard.core.rescue.settings import SnapshotLimits
from guard.core.rollback import report as reports
from guard.core.rollback.journal import SettledRollback
from guard.core.rollback.report import RollbackReport, RolledBackTask
from guard.core.snapshots.snapshot import MOST_NAMED, Occasion, Snapshot
from guard.errors import GuardError, Refused
from guard.rollback.carry_out import RolledBack, roll_back
from guard.rollback.history import end_event, find_attempts, outcome
from guard.rollback.journals import find_announced
from guard.rollback.order import HEADS, find_order, place_of_order
from guard.rollback.place import RollbackPlace, lock_rollbacks
from guard.rollback.prepare import RevertOrder, RollbackStopped, prepare_revert
from guard.rollback.recover import settle_all
from guard.rollback.revert import RevertRules
from guard.snapshots.take import keep, prepare_site, take_and_prune

_LONGEST_REASON = 60_000
Tell = Callable[[RolledBackTask], None]
"""Called with each task before guard rolls it back."""


def rollback(
    guard: Invocation,
    task_id: str,
    reason: str,
    *,
    cascade: bool,
    dry: bool,
    tell: Tell,
    event_id: str | None = None,
) -> RollbackReport:
    """Roll a completed task back, and with `cascade` those that were built on it, the latest first.

    Under an id by which it was rolled back before, nothing is done, whatever became of the task since.
    """
    record.require_state(guard)
    place = rollback_place(guard)
    with lock_rollbacks(place.workspace) as lock:
        before = record.require_state(guard)
        settled = _settle(guard, place)
        state = record.require_state(guard)
        task_id = _id_of(state, task_id)
        tried = find_attempts(guard.store, task_id, event_id) if event_id is not None else None
        finished = next(
            (attempt for attempt in settled if attempt.moved and attempt.task_id == task_id), None
        )
        if finished is not None and task_id not in state.completed_tasks:
            return reports.report_finished(before, state, finished, dry=dry)
        if tried is not None and tried.done is not None:
            return reports.report_repeated(tried.done, dry=dry)
        order = rollback_order(state, task_id, cascade=cascade)
        if order.refusal is not None:
            return _refuse(guard, state, order.refusal, dry=dry)
        own = tried.next_id if tried is not None else None
        run = _Run(guard, place, lock, utf8_text(reason)[:_LONGEST_REASON], dry, own)
        return run.all(state, order.tasks, tell)


def finish_or_undo(guard: Invocation) -> None:
    """Settle a rollback that was killed; `journals` knows whether there is one."""
    place = rollback_place(guard)
    with lock_rollbacks(place.workspace):
        _settle(guard, place)


def rollback_place(guard: Invocation) -> RollbackPlace:
    site = prepare_site(guard)
    return RollbackPlace(site.repository, site.workspace, site.environ, site.time_limit)


def _id_of(state: Coordinator, word: str) -> str:
    """Find a task by the name that the plan spells, or by its id, which the plan may not have any more."""
    found = next((task.id for task in state.tasks if word in (task.id, task.name)), word)
    if not is_id(found):
        hint = "`guard plan show` lists the tasks"
        raise Refused(f"the plan has no task {utf8_text(word)[:200]}", hint)
    return found


def _settle(guard: Invocation, place: RollbackPlace) -> list[SettledRollback]:
    settled = settle_all(place)
    state = record.find_state(guard)
    landing = state.landing_in_progress if state is not None else None
    for attempt in settled:
        if landing is None or landing.to_sha != attempt.to_sha:
            _tell_killed(guard, attempt.task_id, moved=attempt.moved)
        for line in attempt.left:
            guard.output.warn(f"guard left this file as it is: {line}")
    begun = find_announced(guard)
    if begun is not None:
        found = outcome(place, begun, settled)
        _append(guard, end_event(begun, found))
        if found not in settled:
            _tell_killed(guard, found.task_id, moved=found.moved)
            settled.append(found)
    return settled


def _tell_killed(guard: Invocation, task_id: str, *, moved: bool) -> None:
    word = "finished" if moved else "undone"
    state = record.find_state(guard)
    name = state.task_name(task_id) if state is not None else task_id
    guard.output.warn(f"guard has {word} a killed rollback of {name}")


def _append(guard: Invocation, draft: Draft, event_id: str | None = None) -> None:
    terms = record.decision_terms(guard, event_id)
    record.change_state(guard, terms, lambda _state: terms.events([draft]), event_id)


def _refuse(
    guard: Invocation, state: Coordinator, draft: partial[Any], *, dry: bool
) -> RollbackReport:
    """Report what the plan does not allow; it is recorded, unless this is a dry run."""
    if not dry:
        _append(guard, draft)
    return reports.report_refusal(state, draft.keywords, dry=dry)


@dataclass
class _Run:
    """Rolls back one or several tasks, one after the other."""

    guard: Invocation
    place: RollbackPlace
    lock: int
    reason: str
    dry: bool
    event_id: str | None
    """What the beginning is recorded under of the task that was asked for."""
    done: list[RolledBackTask] = field(default_factory=list)

    def all(self, state: Coordinator, tasks: Sequence[str], tell: Tell) -> RollbackReport:
        """Roll back all of them, or begin with none."""
        orders: list[RevertOrder] = []
        try:
            orders += [self._order(state, task) for task in tasks]
            place = place_of_order(self.place, orders[0])
            with prepare_revert(place, orders, dry=True) as ready:
                changed = tuple(path_line(change.path) for change in ready.changed[:MOST_NAMED])
        except GuardError as error:
            return self._report_stopped(tasks[-1], tasks[-1], error)
        for order in orders:
            tell(_entry(state, order))
            if self.dry:
                self.done.append(_entry(state, order))
                continue
            try:
                self._roll_back_task(state, order, self.event_id if order is orders[-1] else None)
            except GuardError as error:
                return self._report_stopped(tasks[-1], order.task_id, error)
        return self._report(state, tasks[-1], "planned" if self.dry else "rolled_back", changed)

    def _order(self, state: Coordinator, task_id: str) -> RevertOrder:
        order = find_order(self.place, state, task_id)
        union = self.guard.users_config.settings.landing.union
        rules = RevertRules(union, plan_path(self.guard, state.plan_file), order.name)
        return replace(order, rules=rules)

    def _roll_back_task(self, state: Coordinator, order: RevertOrder, event_id: str | None) -> None:
        def announce(head: str, to_sha: str) -> None:
            draft = partial(
                RollbackStarted,
                task_id=order.task_id,
                reason=self.reason,
                head=head,
                to_sha=to_sha,
                commits=order.commits,
                branch=order.branch,
            )
            _append(self.guard, draft, event_id)

        place = place_of_order(self.place, order)

        def keep_work_tree() -> Snapshot:
            occasion = Occasion("rollback", self.guard.clock.now())
            if place is self.place:
                return keep(self.guard, occasion)
            limits = SnapshotLimits(self.guard.config.settings.rescue)
            return take_and_prune(place, occasion, limits=limits)

        made = roll_back(place, order, self.lock, keep_work_tree, announce)
        ended = partial(
            TaskRolledBack,
            task_id=order.task_id,
            reason=self.reason,
            from_sha=made.head,
            to_sha=made.to_sha,
        )
        _append(self.guard, ended)
        if made.unsigned:
            self.guard.output.warn(f"the revert is not signed: {made.unsigned}")
        if order.also_on:
            names = ", ".join(ref.removeprefix(HEADS) for ref in order.also_on[:5])
            self.guard.output.warn(
                f"task {order.name} is also on {names}, where it stays until"
                f" {(order.branch or 'HEAD').removeprefix(HEADS)} is merged there"
            )
        self.done.append(_entry(state, order, made))

    def _report_stopped(self, task_id: str, at: str, error: GuardError) -> RollbackReport:
        """Report why the repository stopped it; anything else is an error, once it is recorded.

        After an error in the middle the branch may have moved: the next command looks, and records the end.
        """
        if not isinstance(error, RollbackStopped) and find_announced(self.guard):
            raise error
        why = error.why if isinstance(error, RollbackStopped) else "error"
        if not self.dry:
            _append(self.guard, partial(RollbackFailed, task_id=at, reason=why))
        if not isinstance(error, RollbackStopped):
            raise error
        report = self._report(None, task_id, why, error.paths)
        detail = f"{error.message} ({error.hint})" if error.hint else error.message
        return report.model_copy(update={"detail": fit_line(detail)})

    def _report(
        self, state: Coordinator | None, task_id: str, reason: str, paths: Sequence[str]
    ) -> RollbackReport:
        before = state if not self.dry else None
        return reports.make_report(
            task_id,
            reason,
            done=before is not None,
            dry=self.dry,
            tasks=tuple(self.done),
            aborted=reports.aborted_tasks(before, record.find_state(self.guard))
            if before is not None
            else (),
            paths=tuple(paths),
        )


def _entry(
    state: Coordinator, order: RevertOrder, made: RolledBack | None = None
) -> RolledBackTask:
    commit = state.task_commits[order.task_id]
    if made is None:
        return reports.task_entry(order.task_id, commit, order.commits)
    return reports.task_entry(
        order.task_id,
        commit,
        order.commits,
        made.to_sha,
        made.snapshot,
        reverted=made.to_sha != made.head,
    )
