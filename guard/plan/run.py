"""Work a plan off: send agents to its tasks, audit what they commit, and land it, until a person is needed or all is done.

All that has to survive this process is in the log and in the slots, so that a run that was killed goes on when it is started
again: agents that are alive are found by the locks of their slots, and what they leave is taken in once.
"""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from guard import breaker
from guard.context.account import account_free_at
from guard.context.invocation import Invocation
from guard.context.lease import Lease, find_process
from guard.coordinator.plan import load_file
from guard.coordinator.record import find_state, require_state
from guard.core.base.text import fit_line
from guard.core.coordinator.decide_agents import crash_agent
from guard.core.coordinator.run_report import (
    EXIT_OF_RUN,
    PlanRunEnd,
    PlanRunReport,
    find_end,
    needs_of,
    run_tasks,
)
from guard.core.cost.budget import BudgetEnd
from guard.core.run.loop import count_spending
from guard.errors import BreakerOpen, GuardError, Refused, StateProblem, StoreUnavailable
from guard.git.reader import RepositoryReader
from guard.plan.dispatch import Dispatch
from guard.plan.display import Display
from guard.plan.intake import SlotIntake
from guard.plan.run_state import PlanRunState, PlanRunTerms
from guard.plan.slots import Slots
from guard.plan.tick import tick_plan
from guard.plan.work_tree import slot_invocation
from guard.run.late_verdict import record_late_verdicts
from guard.run.order import check_program, read_prompt
from guard.snapshots.last_resort import add_snapshot
from guard.system.file_events import make_bell
from guard.system.private_files import Folder, close, try_lock
from guard.system.signals import handle_signals

_LOCK = "run.lock"
_ROUND_SECONDS = 2.0
"""How long news of the log waits for the next round, so that a lively log costs little."""
_IDLE_SECONDS = 15.0
_LOOK_SECONDS = 1.0
_SHORTEST_WAIT = 0.05


def run_plan(
    guard: Invocation, terms: PlanRunTerms, display: Display | None = None
) -> PlanRunReport:
    """Work the plan off, and report; one process at a time does so for a workspace."""
    check_program(terms.argv, guard.environ)
    if terms.prompt_file is not None:
        read_prompt(terms.prompt_file)
    display = display or Display(guard.output)
    guard = replace(_with_agents(guard, terms.agents), output=display.output)
    _load(guard, terms.plan_file)
    with _alone(Slots(guard)) as slots:
        record_late_verdicts(guard)
        return PlanRun(PlanRunState(guard, terms, slots, display)).run()


def _with_agents(guard: Invocation, agents: int | None) -> Invocation:
    # As a variable, so that guard in the slots decides by the same number.
    if agents is None:
        return guard
    named = {"GUARD_COORDINATOR__ACTIVE_DEVELOPERS": str(agents)}
    return replace(guard, environ={**guard.environ, **named})


def _load(guard: Invocation, file: Path | None) -> None:
    state = find_state(guard)
    if file is None and state is not None and state.plan_file is not None:
        return
    if file is not None:
        root = guard.repository.root
        full = Path(os.path.abspath(file))
        if full.is_relative_to(root) and Path.cwd() == root:
            file = full.relative_to(root)
    load_file(guard, file, None)


@contextmanager
def _alone(slots: Slots) -> Iterator[Slots]:
    with Folder.make(slots.home) as folder:
        descriptor = folder.open_file(_LOCK, os.O_RDWR | os.O_CREAT)
    try:
        if not try_lock(descriptor):
            raise Refused(
                "another `guard plan run` works this plan off",
                "wait for it, or end it; `guard plan show` shows how far it is",
            )
        yield slots
    finally:
        close(descriptor)


class PlanRun:
    """Works a plan off round by round: takes in what has ended, lands it, sends agents, waits."""

    def __init__(self, run: PlanRunState) -> None:
        self._run = run
        self._intake, self._dispatch = SlotIntake(run), Dispatch(run)
        self._asked: set[str] = set()
        self._is_settled = False
        """Whether the last round changed nothing."""
        self._told_to_end = False
        # Renewed round by round and not by a thread, because a process with threads cannot be forked.
        seconds = run.guard.users_config.settings.fleet.lease_seconds
        self._lease = Lease(run.guard.writable_store, seconds)

    def run(self) -> PlanRunReport:
        run = self._run
        self._lease.renew()
        try:
            self._ask_breaker()
            run.display.show(run)
            with handle_signals((signal.SIGINT, signal.SIGTERM, signal.SIGHUP), self._on_signal):
                while (end := self._round()) is None:
                    if run.facts().is_busy or self._is_settled:
                        self._wait()
        except (StateProblem, StoreUnavailable) as error:
            raise self._save_slots(error) from None
        finally:
            run.display.close()
            self._lease.end()
        report = self._report(end)
        run.notices.tell_end(report)
        return report

    def _save_slots(self, error: GuardError) -> GuardError:
        """Save the work trees in which agents were at work before a broken state ends the run; the error says where."""
        if not error.tells_of_snapshot:
            with suppress(GuardError, OSError):
                for slot, _ in self._run.works():
                    error.tells_of_snapshot = False
                    add_snapshot(slot_invocation(self._run.guard, slot.path), error)
        return error

    def _on_signal(self, _number: int, _frame: object) -> None:
        self._run.signals += 1

    def _ask_breaker(self) -> None:
        run = self._run
        store, holder = run.guard.writable_store, find_process(os.getpid())
        found = breaker.allow(store, run.breaker_key, holder=holder)
        if not found.allowed:
            why = breaker.load(store, run.breaker_key.worktree).reason or found.reason
            raise BreakerOpen(
                f"the breaker of the plan is open: {why}",
                "look at what its agents printed, then `guard breaker reset --plan`",
            )

    def _round(self) -> PlanRunEnd | None:
        """Take in what has ended, land it, and send agents; return why the run ends, once nothing goes on."""
        run = self._run
        self._lease.renew()
        run.account_until = account_free_at(run.guard)
        run.state = require_state(run.guard)
        before = run.state.events_folded
        self._intake.take_in_ended()
        self._look_at_limits()
        run.state = run.lander.land(run.state)
        may_send = (run.stops is None or run.is_budget_spent) and run.limited_until is None
        self._release_costly()
        run.tell_events(
            tick_plan(
                run.guard,
                fills=may_send,
                audits_only=run.stops is not None,
                # A command asks no person: what is ready is audited and lands while a person is asked.
                audits_go_on=run.auditor.kind in ("audit", "proof"),
                target_tip=run.target_tip(),
                withheld=self._withheld(),
            )
        )
        self._dispatch.deliver()
        run.state = require_state(run.guard)
        self._tell_questions()
        run.display.show(run)
        facts = run.facts()
        if run.signals > 1 and facts.is_busy:
            return "stopped"
        self._is_settled = run.state.events_folded == before
        if facts.is_busy or not self._is_settled:
            return None
        if run.stops in ("stopped", "breaker_open", "fault"):
            return run.stops
        return find_end(run.state, facts)

    def _look_at_limits(self) -> None:
        run = self._run
        if run.signals:
            run.stops = "stopped"
        elif run.is_time_up and run.stops is None:
            run.stops = "max_time"
            run.display.tell("the time is up: no agent is started any more")
        elif run.stops is None and (spent := self._spent_limit()) is not None:
            run.stops = spent
            run.display.tell(f"{spent} is reached: no agent is started any more")
        if run.stops == "stopped" and not self._told_to_end:
            self._told_to_end = True
            for _, work in run.works():
                run.workers.end(work)
                run.display.tell(f"{work.agent_id} is ended, and what it left is saved")

    def _withheld(self) -> frozenset[str]:
        """Return the tasks that may cost no more; a command still audits what is there, because it costs nothing."""
        run = self._run
        if run.auditor.kind == "auditor":
            return run.used_up
        return run.used_up.difference(run.state.pending_audit)

    def _release_costly(self) -> None:
        """Take tasks that may cost no more from their agents, so that these need no place."""
        run = self._run
        at_work = {work.agent_id for _, work in run.works()}
        for agent_id, entry in run.state.active_agents.items():
            task_id = entry.task_id
            if entry.type == "developer" and task_id in run.used_up and agent_id not in at_work:
                assert task_id is not None
                why = fit_line(run.costs.words(task_id))
                run.record(crash_agent(agent_id=agent_id, reason=why))
                name = run.state.task_name(task_id)
                run.display.tell(f"task {name}: no more agents are sent to it: {why}")

    def _spent_limit(self) -> BudgetEnd | None:
        return self._run.terms.budget.find_end(count_spending(self._run.reports))

    def _wait(self) -> None:
        """Wait for the end of a process, or for news."""
        run = self._run
        log, begun, signals = run.guard.store.bell(), time.monotonic(), run.signals
        before = log.stamp()
        bell = make_bell([], run.workers.pids)
        try:
            while run.signals == signals:
                time.sleep(_SHORTEST_WAIT)
                self._lease.renew()
                if self._intake.has_news or run.lander.has_ended:
                    return
                passed = time.monotonic() - begun
                if passed >= _ROUND_SECONDS and (log.stamp() != before or run.is_rest_over()):
                    return
                if passed >= _IDLE_SECONDS or (run.is_time_up and run.stops is None):
                    return
                run.display.show(run)
                bell.wait(min(_LOOK_SECONDS, bell.patience))
        finally:
            bell.close()
            log.close()

    def _tell_questions(self) -> None:
        run = self._run
        for question in run.state.pending_divine_questions:
            if question.question_id not in self._asked and question.response is None:
                self._asked.add(question.question_id)
                run.display.tell(f"a person is asked ({question.question_id}): {question.question}")
                task = run.state.task_name(question.task_id) if question.task_id else None
                run.notices.tell_question(question, task)

    def _report(self, end: PlanRunEnd) -> PlanRunReport:
        run = self._run
        facts = run.facts()
        git = RepositoryReader(run.guard.repository, run.guard.environ)
        tasks = tuple(run_tasks(run.state, run.sessions, run.costs.costs))
        return PlanRunReport(
            ended=end,
            exit_code=EXIT_OF_RUN[end],
            detail=run.breaker_reason or run.fault or self._costly_text(end),
            target=run.target.ref,
            head=git.line("rev-parse", "--verify", "--quiet", f"{run.target.ref}^{{commit}}"),
            total_tasks=len(tasks),
            landed=sum(task.place == "landed" for task in tasks),
            sessions=run.sessions.total(),
            tasks=tasks,
            needs_you=needs_of(run.state, facts, end),
            still_working=tuple(work.agent_id for _, work in run.works()),
            usage=count_spending(run.reports).usage,
            budget=run.budget_report(),
            elapsed_seconds=round(run.elapsed_seconds, 3),
        )

    def _costly_text(self, end: PlanRunEnd) -> str:
        run = self._run
        if end != "max_cost_per_task":
            return ""
        names = sorted(run.used_up.difference(run.state.completed_tasks))
        return "; ".join(
            f"task {run.state.task_name(name)}: {run.costs.words(name)}" for name in names
        )
