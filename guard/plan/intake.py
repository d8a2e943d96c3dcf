"""Take in what the processes in the slots have left: set-ups, audits, and the sessions of agents."""

from datetime import timedelta

from guard import breaker
from guard.coordinator.record import require_state
from guard.core.base.text import plural
from guard.core.check.report import CheckReport
from guard.core.coordinator.decide_tasks import pass_audit, submit_for_audit
from guard.core.prove.report import feedback
from guard.core.run.loop import after_iteration
from guard.errors import Refused
from guard.plan.run_state import PlanRunState
from guard.plan.slots import Slot, SlotWork
from guard.plan.tick import tick_plan
from guard.plan.worker import read_check, read_exit_code, read_tail

_MOST_REASON = 8000


class SlotIntake:
    """Takes in each process that has ended, once."""

    def __init__(self, run: PlanRunState) -> None:
        self._run = run
        self._limited = 0
        """How many sessions in a row met a usage limit."""
        self._orphans: set[int] = set()
        """Slots whose guard was killed while its agent may live on."""

    def take_in_ended(self) -> None:
        for slot, work in self._run.works():
            if self._run.workers.has_ended(slot, work):
                self._take_in(slot, work)

    @property
    def has_news(self) -> bool:
        """Tell whether a process has ended that was not taken in yet."""
        return any(
            slot.number not in self._orphans and self._run.workers.has_ended(slot, work)
            for slot, work in self._run.works()
        )

    def _take_in(self, slot: Slot, work: SlotWork) -> None:
        """Take in what the process in the slot has left, once."""
        if work.kind == "setup":
            self._end_setup(slot, work)
        elif work.kind in ("audit", "proof"):
            self._end_audit(slot, work)
        elif not self._end_session(slot, work):
            self._orphans.add(slot.number)
            return
        self._orphans.discard(slot.number)
        self._run.workers.forget(slot)

    def _end_setup(self, slot: Slot, work: SlotWork) -> None:
        code = read_exit_code(work)
        if code == 0:
            self._run.slots.finish_setup(slot)
        elif code is not None:
            self._run.lose(
                work, f"the set-up of slot {slot.number} ended with {code}: {read_tail(work)}"
            )
        else:
            self._lose_cut_short(slot, work)

    def _lose_cut_short(self, slot: Slot, work: SlotWork) -> None:
        """Count an audit or a set-up that this guard started, and did not end, and that left no result."""
        run = self._run
        code = run.workers.exit_code(slot)
        if code is not None and not run.signals:
            what = "set-up" if work.kind == "setup" else work.kind
            run.lose(work, f"its {what} came to no result ({code}): {read_tail(work)}")

    def _end_audit(self, slot: Slot, work: SlotWork) -> None:
        run = self._run
        verdict = run.auditor.verdict(work)
        if verdict is None:
            self._lose_cut_short(slot, work)
        if verdict is None or work.agent_id not in run.state.active_agents:
            return
        try:
            run.auditor.record(slot, verdict)
        except Refused as error:
            run.display.tell(f"the verdict of {work.agent_id} does not count: {error.message}")
        passed = "passed" if verdict.kind is pass_audit else "failed"
        run.display.tell(f"task {run.name_task(work)} {passed} its audit by {work.kind}")
        run.state = require_state(run.guard)

    def _end_session(self, slot: Slot, work: SlotWork) -> bool:
        """Take in how the session of an agent ended; return whether it has."""
        run = self._run
        report, code = read_check(work), run.workers.exit_code(slot)
        entry = run.entries().get(work.agent_id)
        if report is None and entry is not None:
            if entry.started_at is not None and not entry.has_ended:
                # Guard was killed. The registries tell whether its agent lives, and when it has ended.
                run.tell_events(tick_plan(run.guard, fills=False))
                return work.agent_id not in run.entries()
            if code is not None:
                run.lose(work, f"guard could not run it ({code}): {read_tail(work)}")
        if work.task_id is not None and work.kind == "developer":
            run.slots.bring_home(slot, work.task_id)
        if report is not None:
            run.reports.append(report)
            if run.costs.has_limit or report.usage.cost_usd is not None:
                run.costs.renew()
            run.state = require_state(run.guard)
            open_ones = run.state.pending_divine_questions
            asks = any(question.agent_id == work.agent_id for question in open_ones)
            run.display.tell(_end_line(run.name_task(work), work, report, asks=asks))
            self._rest(slot, report)
            run.notices.tell_session(run.name_task(work), report)
            run.notices.tell_budget(run.budget_report())
            if work.kind == "developer":
                self._submit(work, report)
                self._feed_breaker(work, report)
        run.state = require_state(run.guard)
        return True

    def _submit(self, work: SlotWork, report: CheckReport) -> None:
        """Call the task of a session that ended complete ready for its audit, unless its signals said so."""
        entry = self._run.state.active_agents.get(work.agent_id)
        is_at_work = entry is not None and entry.status == "working"
        if report.complete and is_at_work and work.task_id is not None:
            self._run.record(submit_for_audit(task_id=work.task_id, agent_id=work.agent_id))

    def _rest(self, slot: Slot, report: CheckReport) -> None:
        """Note when the agent goes on, and what its next prompt says."""
        is_limited = report.status == "limited" or report.retry_at is not None
        self._limited = self._limited + 1 if is_limited else 0
        now = self._run.guard.clock.now()
        step = after_iteration(report, now, self._limited, has_tasks=True)
        shown = report.proof if report.status == "refuted" else None
        news = {
            "rest_until": now + timedelta(seconds=step.seconds) if step.seconds else None,
            "is_limited": is_limited,
            "feedback": feedback(shown)[:_MOST_REASON] if shown is not None else "",
        }
        slot.write(slot.record().model_copy(update=news))
        if is_limited:
            self._run.display.tell(
                f"a usage limit: no agent is started before {news['rest_until']}"
            )

    def _feed_breaker(self, work: SlotWork, report: CheckReport) -> None:
        """Count a session for the breaker of the plan; work that is ready for its audit is no stall."""
        run = self._run
        run.state = require_state(run.guard)
        outcome = breaker.Outcome(report.status, report.reason, rescued=report.rescued)
        if work.task_id in run.state.pending_audit:
            outcome = breaker.Outcome("complete", "commits")
        with run.guard.writable_store.change() as change:
            after = breaker.record(change, run.breaker_key, outcome)
        if after.state == "open" and run.stops is None:
            run.stops, run.breaker_reason = "breaker_open", after.reason or "open"
            run.display.tell(f"the breaker of the plan opens: {run.breaker_reason}")
            run.notices.tell_breaker(run.breaker_reason)


def _end_line(task: str, work: SlotWork, report: CheckReport, *, asks: bool) -> str:
    commits = f", {plural(report.new_commits, 'commit')}" if report.new_commits else ""
    how = "it asks a person" if asks else f"{report.status}, {report.reason}"
    return f"task {task}: {work.agent_id} ended: {how}{commits}"
