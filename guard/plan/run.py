"""Work a plan off: send agents to its tasks, audit what they commit, and land it, until a person is needed or all is done.

All that has to survive this process is in the log and in the slots, so that a run that was killed goes on when it is started
again: agents that are alive are found by the locks of their slots, and what they leave is taken in once.
"""

import os
import signal
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal, get_args

from guard import breaker
from guard.context.invocation import Invocation
from guard.context.lease import Lease, find_process
from guard.coordinator.outbox import take_parcels
from guard.coordinator.plan import load_file
from guard.coordinator.record import RequestResult, find_state, record, require_state
from guard.core.base.text import fit_line, plural, utf8_text
from guard.core.check.report import CheckReport
from guard.core.coordinator.decide_agents import crash_agent
from guard.core.coordinator.decide_tasks import fail_audit, pass_audit, submit_for_audit
from guard.core.coordinator.entries import ActiveAgent, Parcel, SupportRun
from guard.core.coordinator.from_registry import INFRASTRUCTURE
from guard.core.coordinator.requests import Request
from guard.core.coordinator.run_report import (
    EXIT_OF_RUN,
    PlanRunEnd,
    PlanRunReport,
    RunFacts,
    event_words,
    find_end,
    needs_of,
    run_tasks,
)
from guard.core.cost.budget import NO_BUDGET, BudgetEnd, BudgetReport, CostBudget, budget_report
from guard.core.cost.usage import Usage
from guard.core.prove.report import feedback
from guard.core.run.loop import after_iteration, count_spending
from guard.errors import (
    BreakerOpen,
    GuardError,
    Refused,
    RepositoryProblem,
    StateProblem,
    StoreUnavailable,
)
from guard.git.reader import RepositoryReader
from guard.landing.target import HEADS, open_target
from guard.plan.audit import NO_COMMITS, Auditor
from guard.plan.costs import TaskCosts
from guard.plan.display import Display
from guard.plan.lander import Lander
from guard.plan.notices import PlanNotices
from guard.plan.prompt import prompt_report
from guard.plan.slots import Slot, SlotRecord, Slots, SlotWork, WorkKind
from guard.plan.tick import tick_plan
from guard.plan.work_tree import slot_invocation, task_branch
from guard.plan.worker import Workers, read_check, read_exit_code, read_tail
from guard.run.order import PLACEHOLDER, check_program, read_prompt
from guard.snapshots.last_resort import add_snapshot
from guard.system.file_events import make_bell
from guard.system.private_files import Folder, close, try_lock
from guard.system.signals import handle_signals

_LOCK = "run.lock"
_AUDITS: tuple[WorkKind, ...] = ("auditor", "audit", "proof")
_WAKES = ("start", "rework", "guidance")
_ROUND_SECONDS = 2.0
"""How long news of the log waits for the next round, so that a lively log costs little."""
_IDLE_SECONDS = 15.0
_LOOK_SECONDS = 1.0
_SHORTEST_WAIT = 0.05
_MOST_REASON = 8000
_MOST_ARGUMENT = 120_000
"""Linux takes no longer word of a command line than 128 KiB."""
Entry = ActiveAgent | SupportRun


@dataclass(frozen=True)
class PlanRunTerms:
    """What to work off, with what, and until when."""

    argv: tuple[str, ...]
    """The command that starts an agent."""
    plan_file: Path | None = None
    agents: int | None = None
    prompt_file: Path | None = None
    audit: str | None = None
    target: str | None = None
    max_seconds: float | None = None
    budget: CostBudget = NO_BUDGET
    max_cost_per_task: float | None = None
    """By default as the settings say."""


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
        return PlanRun(guard, terms, slots, display).run()


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
    """A run of the plan while it goes on."""

    def __init__(
        self, guard: Invocation, terms: PlanRunTerms, slots: Slots, display: Display
    ) -> None:
        self.guard, self.terms, self.slots, self.display = guard, terms, slots, display
        self.workers = Workers(guard, slots)
        self.target = open_target(guard, terms.target)
        self.auditor = Auditor(guard, terms.audit, self.target.ref)
        self.state = require_state(guard)
        self.lander = Lander(guard, slots, self.workers, terms.target, display.tell)
        most = guard.users_config.settings.plan.max_cost_per_task
        limit = most if terms.max_cost_per_task is None else terms.max_cost_per_task
        self.costs = TaskCosts(guard, limit or None)
        self.sessions: Counter[str] = Counter()
        """How many agents and audits were started for each task."""
        self.stops: Literal["max_time", "stopped", "breaker_open", "fault", BudgetEnd] | None = None
        """Why no agent is started any more."""
        self._asked: set[str] = set()
        self._begun = time.monotonic()
        self._limited = 0
        self._orphans: set[int] = set()
        """Slots whose guard was killed while its agent may live on."""
        self._is_settled = False
        """Whether the last round changed nothing."""
        self._reports: list[CheckReport] = []
        """The verdicts on the sessions of this run, for the budget."""
        self._signals = 0
        self._told_to_end = 0
        self._notices = PlanNotices(guard)
        self._breaker = breaker.BreakerKey.of(guard, of_plan=True)
        self._breaker_reason: str | None = None
        self._fault = ""
        """Why guard cannot start agents."""
        # Renewed round by round and not by a thread, because a process with threads cannot be forked.
        self._lease = Lease(guard.writable_store, guard.users_config.settings.fleet.lease_seconds)

    def run(self) -> PlanRunReport:
        self._lease.renew()
        try:
            self._ask_breaker()
            self.display.show(self)
            with handle_signals((signal.SIGINT, signal.SIGTERM, signal.SIGHUP), self._on_signal):
                while (end := self._round()) is None:
                    if self.facts().is_busy or self._is_settled:
                        self._wait()
        except (StateProblem, StoreUnavailable) as error:
            raise self._save_slots(error) from None
        finally:
            self.display.close()
            self._lease.end()
        report = self._report(end)
        self._notices.tell_end(report)
        return report

    def _save_slots(self, error: GuardError) -> GuardError:
        """Save the work trees in which agents were at work before a broken state ends the run; the error says where."""
        if not error.tells_of_snapshot:
            with suppress(GuardError, OSError):
                for slot, _ in self.works():
                    error.tells_of_snapshot = False
                    add_snapshot(slot_invocation(self.guard, slot.path), error)
        return error

    def _on_signal(self, _number: int, _frame: object) -> None:
        self._signals += 1

    def _ask_breaker(self) -> None:
        store, holder = self.guard.writable_store, find_process(os.getpid())
        found = breaker.allow(store, self._breaker, holder=holder)
        if not found.allowed:
            why = breaker.load(store, self._breaker.worktree).reason or found.reason
            raise BreakerOpen(
                f"the breaker of the plan is open: {why}",
                "look at what its agents printed, then `guard breaker reset --plan`",
            )

    def _round(self) -> PlanRunEnd | None:
        """Take in what has ended, land it, and send agents; return why the run ends, once nothing goes on."""
        self._lease.renew()
        self.state = require_state(self.guard)
        before = self.state.events_folded
        for slot, work in self.works():
            if self.workers.has_ended(slot, work):
                self._take_in(slot, work)
        self._look_at_limits()
        self.state = self.lander.land(self.state)
        may_send = (self.stops is None or self._is_budget_spent) and self.limited_until is None
        self._release_costly()
        self._tell(
            tick_plan(
                self.guard,
                fills=may_send,
                audits_only=self.stops is not None,
                # A command asks no person: what is ready is audited and lands while a person is asked.
                audits_go_on=self.auditor.kind in ("audit", "proof"),
                target_tip=self._target_tip(),
                withheld=self._withheld(),
            )
        )
        self._deliver()
        self.state = require_state(self.guard)
        self._tell_questions()
        self.display.show(self)
        facts = self.facts()
        if self._signals > 1 and facts.is_busy:
            return "stopped"
        self._is_settled = self.state.events_folded == before
        if facts.is_busy or not self._is_settled:
            return None
        if self.stops in ("stopped", "breaker_open", "fault"):
            return self.stops
        return find_end(self.state, facts)

    def _look_at_limits(self) -> None:
        if self._signals:
            self.stops = "stopped"
        elif self.is_time_up and self.stops is None:
            self.stops = "max_time"
            self.display.tell("the time is up: no agent is started any more")
        elif self.stops is None and (spent := self._spent_limit()) is not None:
            self.stops = spent
            self.display.tell(f"{spent} is reached: no agent is started any more")
        if self.stops == "stopped" and self._told_to_end == 0:
            self._told_to_end = 1
            for _, work in self.works():
                self.workers.end(work)
                self.display.tell(f"{work.agent_id} is ended, and what it left is saved")

    def _withheld(self) -> frozenset[str]:
        """Return the tasks that may cost no more; a command still audits what is there, because it costs nothing."""
        if self.auditor.kind == "auditor":
            return self.used_up
        return self.used_up.difference(self.state.pending_audit)

    def _release_costly(self) -> None:
        """Take tasks that may cost no more from their agents, so that these need no place."""
        at_work = {work.agent_id for _, work in self.works()}
        for agent_id, entry in self.state.active_agents.items():
            task_id = entry.task_id
            if entry.type == "developer" and task_id in self.used_up and agent_id not in at_work:
                assert task_id is not None
                why = fit_line(self.costs.words(task_id))
                self._record(crash_agent(agent_id=agent_id, reason=why))
                name = self.state.task_name(task_id)
                self.display.tell(f"task {name}: no more agents are sent to it: {why}")

    def _limit(self) -> Literal["max_time", BudgetEnd] | None:
        match self.stops:
            case "stopped" | "breaker_open" | "fault":
                return None
            case limit:
                return limit

    @property
    def _is_budget_spent(self) -> bool:
        """Tell whether only audits may begin that cost nothing: work that is ready still lands."""
        is_spent = self.stops in get_args(BudgetEnd)
        return is_spent and self.auditor.kind in ("audit", "proof")

    def _spent_limit(self) -> BudgetEnd | None:
        return self.terms.budget.find_end(count_spending(self._reports))

    def _budget_report(self) -> BudgetReport | None:
        return budget_report(self.terms.budget, count_spending(self._reports))

    def _wait(self) -> None:
        """Wait for the end of a process, or for news."""
        log, begun, signals = self.guard.store.bell(), time.monotonic(), self._signals
        before = log.stamp()
        bell = make_bell([], self.workers.pids)
        try:
            while self._signals == signals:
                time.sleep(_SHORTEST_WAIT)
                self._lease.renew()
                for slot, work in self.works():
                    if slot.number not in self._orphans and self.workers.has_ended(slot, work):
                        return
                if self.lander.has_ended:
                    return
                passed = time.monotonic() - begun
                if passed >= _ROUND_SECONDS and (log.stamp() != before or self._is_rest_over()):
                    return
                if passed >= _IDLE_SECONDS or (self.is_time_up and self.stops is None):
                    return
                self.display.show(self)
                bell.wait(min(_LOOK_SECONDS, bell.patience))
        finally:
            bell.close()
            log.close()

    # What is there

    def records(self) -> list[tuple[Slot, SlotRecord]]:
        return [(slot, slot.record()) for slot in self.slots.existing()]

    def works(self) -> list[tuple[Slot, SlotWork]]:
        return [(slot, record.work) for slot, record in self.records() if record.work is not None]

    def entries(self) -> Mapping[str, Entry]:
        return {**self.state.active_agents, **self.state.active_supporting_agents}

    @property
    def used_up(self) -> frozenset[str]:
        """The tasks that may cost no more."""
        return self.costs.used_up.intersection(task.id for task in self.state.tasks)

    @property
    def usage(self) -> Usage:
        """What the sessions of this run have used."""
        return count_spending(self._reports).usage

    @property
    def elapsed_seconds(self) -> float:
        return time.monotonic() - self._begun

    @property
    def is_time_up(self) -> bool:
        return self.seconds_left is not None and self.seconds_left <= 0

    @property
    def seconds_left(self) -> float | None:
        limit = self.terms.max_seconds
        return None if limit is None else limit - self.elapsed_seconds

    @property
    def limited_until(self) -> datetime | None:
        """Until when a usage limit keeps guard from starting agents."""
        ends = [found.rest_until for _, found in self.records() if found.is_limited]
        return max((end for end in ends if self._is_ahead(end)), default=None, key=_as_time)

    def _is_ahead(self, until: datetime | None) -> bool:
        return until is not None and until > self.guard.clock.now()

    def _is_rest_over(self) -> bool:
        rests = [found.rest_until for _, found in self.records() if found.rest_until is not None]
        return any(not self._is_ahead(until) for until in rests)

    def facts(self) -> RunFacts:
        ours, rests = set[str](), False
        entries = self.entries()
        for _, found in self.records():
            ours |= {found.agent_id} if found.agent_id else set()
            rests = rests or (self._is_ahead(found.rest_until) and found.agent_id in entries)
        rests = rests or self.limited_until is not None
        return RunFacts(
            limit=self._limit(),
            is_busy=bool(self.works() or self.lander.is_at_work) or (rests and self.stops is None),
            waiting=tuple(self.lander.waiting.values()),
            breaker=self._breaker_reason,
            others=tuple(name for name in entries if name not in ours),
            used_up=self.used_up,
            hold=self.guard.users_config.settings.coordinator.hold_on_question,
        )

    def _tell(self, done: RequestResult) -> None:
        self.state = done.state
        for event in done.events:
            words = event_words(done.state, event)
            if words is not None:
                self.display.tell(words)

    def _tell_questions(self) -> None:
        for question in self.state.pending_divine_questions:
            if question.question_id not in self._asked and question.response is None:
                self._asked.add(question.question_id)
                self.display.tell(
                    f"a person is asked ({question.question_id}): {question.question}"
                )
                task = self.state.task_name(question.task_id) if question.task_id else None
                self._notices.tell_question(question, task)

    # What has ended

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
        self.workers.forget(slot)

    def _end_setup(self, slot: Slot, work: SlotWork) -> None:
        code = read_exit_code(work)
        if code == 0:
            self.slots.finish_setup(slot)
        elif code is not None:
            self._lose(
                work, f"the set-up of slot {slot.number} ended with {code}: {read_tail(work)}"
            )
        else:
            self._lose_cut_short(slot, work)

    def _lose_cut_short(self, slot: Slot, work: SlotWork) -> None:
        """Count an audit or a set-up that this guard started, and did not end, and that left no result."""
        code = self.workers.exit_code(slot)
        if code is not None and not self._signals:
            what = "set-up" if work.kind == "setup" else work.kind
            self._lose(work, f"its {what} came to no result ({code}): {read_tail(work)}")

    def _end_audit(self, slot: Slot, work: SlotWork) -> None:
        verdict = self.auditor.verdict(work)
        if verdict is None:
            self._lose_cut_short(slot, work)
        if verdict is None or work.agent_id not in self.state.active_agents:
            return
        try:
            self.auditor.record(slot, verdict)
        except Refused as error:
            self.display.tell(f"the verdict of {work.agent_id} does not count: {error.message}")
        passed = "passed" if verdict.kind is pass_audit else "failed"
        self.display.tell(f"task {self._name(work)} {passed} its audit by {work.kind}")
        self.state = require_state(self.guard)

    def _end_session(self, slot: Slot, work: SlotWork) -> bool:
        """Take in how the session of an agent ended; return whether it has."""
        report, code = read_check(work), self.workers.exit_code(slot)
        entry = self.entries().get(work.agent_id)
        if report is None and entry is not None:
            if entry.started_at is not None and not entry.has_ended:
                # Guard was killed. The registries tell whether its agent lives, and when it has ended.
                self._tell(tick_plan(self.guard, fills=False))
                return work.agent_id not in self.entries()
            if code is not None:
                self._lose(work, f"guard could not run it ({code}): {read_tail(work)}")
        if work.task_id is not None and work.kind == "developer":
            self.slots.bring_home(slot, work.task_id)
        if report is not None:
            self._reports.append(report)
            if self.costs.has_limit or report.usage.cost_usd is not None:
                self.costs.renew()
            self.state = require_state(self.guard)
            open_ones = self.state.pending_divine_questions
            asks = any(question.agent_id == work.agent_id for question in open_ones)
            self.display.tell(_end_line(self._name(work), work, report, asks=asks))
            self._rest(slot, report)
            self._notices.tell_session(self._name(work), report)
            self._notices.tell_budget(self._budget_report())
            if work.kind == "developer":
                self._submit(work, report)
                self._feed_breaker(work, report)
        self.state = require_state(self.guard)
        return True

    def _submit(self, work: SlotWork, report: CheckReport) -> None:
        """Call the task of a session that ended complete ready for its audit, unless its signals said so."""
        entry = self.state.active_agents.get(work.agent_id)
        is_at_work = entry is not None and entry.status == "working"
        if report.complete and is_at_work and work.task_id is not None:
            self._record(submit_for_audit(task_id=work.task_id, agent_id=work.agent_id))

    def _rest(self, slot: Slot, report: CheckReport) -> None:
        """Note when the agent goes on, and what its next prompt says."""
        is_limited = report.status == "limited" or report.retry_at is not None
        self._limited = self._limited + 1 if is_limited else 0
        now = self.guard.clock.now()
        step = after_iteration(report, now, self._limited, has_tasks=True)
        shown = report.proof if report.status == "refuted" else None
        news = {
            "rest_until": now + timedelta(seconds=step.seconds) if step.seconds else None,
            "is_limited": is_limited,
            "feedback": feedback(shown)[:_MOST_REASON] if shown is not None else "",
        }
        slot.write(slot.record().model_copy(update=news))
        if is_limited:
            self.display.tell(f"a usage limit: no agent is started before {news['rest_until']}")

    def _feed_breaker(self, work: SlotWork, report: CheckReport) -> None:
        """Count a session for the breaker of the plan; work that is ready for its audit is no stall."""
        self.state = require_state(self.guard)
        outcome = breaker.Outcome(report.status, report.reason, rescued=report.rescued)
        if work.task_id in self.state.pending_audit:
            outcome = breaker.Outcome("complete", "commits")
        with self.guard.writable_store.change() as change:
            after = breaker.record(change, self._breaker, outcome)
        if after.state == "open" and self.stops is None:
            self.stops, self._breaker_reason = "breaker_open", after.reason or "open"
            self.display.tell(f"the breaker of the plan opens: {self._breaker_reason}")
            self._notices.tell_breaker(self._breaker_reason)

    def _lose(self, work: SlotWork, why: str) -> None:
        if work.agent_id in self.entries():
            self._record(
                crash_agent(agent_id=work.agent_id, reason=fit_line(" ".join(why.split())))
            )
            self.display.tell(f"{work.agent_id} is lost: {why}")

    def _record(self, request: Request) -> None:
        try:
            self.state = record(self.guard, request).state
        except Refused as error:
            self.display.tell(f"the plan does not take this in: {error.message}")

    def _name(self, work: SlotWork) -> str:
        return self.state.task_name(work.task_id) if work.task_id else "the infrastructure"

    # Agents to start

    def _deliver(self) -> None:
        """Start the agents that the plan has sent, and those that go on; deliver what the outbox has for them."""
        self.state = require_state(self.guard)
        done: list[str] = []
        for agent_id, entry in self.entries().items():
            own = [parcel for parcel in self.state.outbox if parcel.agent_id == agent_id]
            working = [slot for slot, work in self.works() if work.agent_id == agent_id]
            if working or self._start_if_due(agent_id, entry, own):
                done += [parcel.item_id for parcel in own if parcel.kind in _WAKES]
        done += list(self._end_aborted())
        gone = [item for item in self.state.outbox if item.agent_id not in self.entries()]
        done += [item.item_id for item in gone if item.item_id not in done]
        if done:
            take_parcels(self.guard, None, None, tuple(done))

    def _end_aborted(self) -> Iterator[str]:
        for parcel in self.state.outbox:
            if parcel.kind == "abort":
                for _, work in self.works():
                    if work.agent_id == parcel.agent_id:
                        self.workers.end(work)
                        self.display.tell(f"{work.agent_id} is ended: {parcel.text}")
                yield parcel.item_id

    def _start_if_due(self, agent_id: str, entry: Entry, parcels: Sequence[Parcel]) -> bool:
        if self.limited_until is not None:
            return False
        if self.stops is not None and not (
            self._is_budget_spent and self._kind_of(entry) in ("audit", "proof")
        ):
            return False
        if isinstance(entry, ActiveAgent) and entry.status != "working":
            return False
        wakes = [parcel for parcel in parcels if parcel.kind in _WAKES]
        own = [found for _, found in self.records() if found.agent_id == agent_id]
        if not wakes and (not own or self._is_ahead(own[0].rest_until)):
            return False
        if any(work.task_id == entry.task_id is not None for _, work in self.works()):
            return False
        try:
            self.slots.refuse_full_disk()
        except StoreUnavailable as error:
            # Those at work go on to their end, and what they finish is taken in.
            self.stops, self._fault = "fault", f"{error.message}; {error.hint}"
            self.display.tell(f"no agent is started any more: {error.message}")
            return False
        return self._start(agent_id, entry, parcels)

    def _start(self, agent_id: str, entry: Entry, parcels: Sequence[Parcel]) -> bool:
        kind = self._kind_of(entry)
        if kind in _AUDITS and entry.task_id and not self.auditor.has_commits(entry.task_id):
            self._record(fail_audit(task_id=entry.task_id, agent_id=agent_id, reason=NO_COMMITS))
            return True
        slot, lock = self._take_slot(entry.task_id)
        work = SlotWork(kind=kind, agent_id=agent_id, task_id=entry.task_id, stem="none")
        try:
            branch = entry.task_id if kind in ("developer", *_AUDITS) else None
            if self.slots.prepare(slot, branch, self._base(kind, entry.task_id)):
                work = self.workers.new_work(work.model_copy(update={"kind": "setup"}))
                command = self.guard.users_config.settings.plan.setup
                self.workers.start_command(slot, lock, work, command)
                return False
            work = self.workers.new_work(work)
            if kind in ("audit", "proof"):
                self.auditor.start(self.workers, slot, lock, work)
            else:
                self._start_session(slot, lock, work, entry, parcels)
        except (Refused, RepositoryProblem) as error:
            self._lose(work, error.message)
            return True
        finally:
            close(lock)
        self.sessions[entry.task_id or ""] += 1
        self.display.tell(f"task {self._name(work)}: {agent_id} begins in slot {slot.number}")
        return True

    def _kind_of(self, entry: Entry) -> WorkKind:
        if isinstance(entry, SupportRun):
            return "helper"
        if entry.type == "auditor":
            return self.auditor.kind
        return "developer" if entry.type == "developer" else "helper"

    def _base(self, kind: WorkKind, task_id: str | None) -> str:
        """Return the commit at which a new branch begins: the target's tip; a helper sees what its task has so far."""
        git = RepositoryReader(self.guard.repository, self.guard.environ)
        if kind == "helper" and task_id is not None:
            tip = git.line("rev-parse", "--verify", "--quiet", f"{task_branch(task_id)}^{{commit}}")
            if tip is not None:
                return tip
        return self._target_tip()

    def _target_tip(self) -> str:
        git = RepositoryReader(self.guard.repository, self.guard.environ)
        tip = git.line("rev-parse", "--verify", "--quiet", f"{self.target.ref}^{{commit}}")
        if tip is None:
            raise RepositoryProblem(
                f"the branch {self.target.ref.removeprefix(HEADS)} is gone", "name another --target"
            )
        return tip

    def _take_slot(self, task_id: str | None) -> tuple[Slot, int]:
        """Return a free slot with its lock: the one that has the task, else one that no task in progress needs."""
        entries, records = self.entries(), self.records()
        in_progress = {work.task_id for work in self.state.in_progress_tasks}
        free = [(slot, found) for slot, found in records if found.work is None]
        own = [slot for slot, found in free if task_id and found.task_id == task_id]
        idle = [(slot, found) for slot, found in free if found.agent_id not in entries]
        spare = [slot for slot, found in idle if found.task_id not in in_progress]
        most = self.guard.users_config.settings.coordinator.active_developers
        others = [slot for slot, _ in idle] if len(records) >= most else []
        for slot in (*own, *spare, *others):
            lock = slot.acquire()
            if lock is not None:
                return slot, lock
        slot = self.slots.slot(max((slot.number for slot, _ in records), default=0) + 1)
        lock = slot.acquire()
        assert lock is not None, "a slot that was never made is free"
        return slot, lock

    def _start_session(
        self, slot: Slot, lock: int, work: SlotWork, entry: Entry, parcels: Sequence[Parcel]
    ) -> None:
        if work.kind == "developer" and any(parcel.kind == "start" for parcel in parcels):
            self.slots.reset_breaker(slot)
        self._write_prompt(slot, work, parcels)
        words = ["run", "--task", work.task_id or INFRASTRUCTURE, "--agent-id", work.agent_id]
        words += ["--type", entry.type if isinstance(entry, ActiveAgent) else entry.agent_id]
        # The run of the plan sends the notices for all its agents.
        words += ["--format", "json", "--no-notify", "--prompt-file", os.fspath(work.prompt)]
        if work.kind != "developer":
            # It changes nothing: an answer of the session could tell no more than its signals.
            words += ["--no-probe", "--no-rescue"]
        if self.seconds_left is not None:
            words += ["--max-time", f"{max(1.0, self.seconds_left):.0f}"]
        words += self._allowance_words(work.task_id)
        self.workers.start_guard(slot, lock, work, [*words, "--", *self.terms.argv])

    def _allowance_words(self, task_id: str | None) -> list[str]:
        # Agents that work at the same time may each use up what is left.
        left = self.terms.budget.allow(count_spending(self._reports))
        costs = [cost for cost in (left.cost_usd, self.costs.left(task_id)) if cost is not None]
        cost = ["--max-cost", f"{max(min(costs), 1e-6):.6f}"] if costs else []
        tokens = [] if left.tokens is None else ["--max-tokens", str(max(left.tokens, 1))]
        return [*cost, *tokens]

    def _write_prompt(self, slot: Slot, work: SlotWork, parcels: Sequence[Parcel]) -> None:
        own = prompt_report(self.guard, work.task_id, agent_id=work.agent_id).text
        said = [parcel.text for parcel in parcels if parcel.kind == "support"]
        before = self.terms.prompt_file
        first = read_prompt(before).decode(errors="replace").rstrip() if before is not None else ""
        sections = [first, own, slot.record().feedback, *said]
        data = utf8_text("\n\n".join(section for section in sections if section)).encode()
        if PLACEHOLDER in self.terms.argv and len(data) > _MOST_ARGUMENT:
            raise Refused(
                f"the prompt of {work.agent_id} is too long for {PLACEHOLDER} in the command",
                "shorten --prompt-file, or leave {prompt} out: then the agent reads it on stdin",
            )
        work.prompt.write_bytes(data)

    # The end

    def _report(self, end: PlanRunEnd) -> PlanRunReport:
        facts = self.facts()
        git = RepositoryReader(self.guard.repository, self.guard.environ)
        tasks = tuple(run_tasks(self.state, self.sessions, self.costs.costs))
        return PlanRunReport(
            ended=end,
            exit_code=EXIT_OF_RUN[end],
            detail=self._breaker_reason or self._fault or self._costly_text(end),
            target=self.target.ref,
            head=git.line("rev-parse", "--verify", "--quiet", f"{self.target.ref}^{{commit}}"),
            total_tasks=len(tasks),
            landed=sum(task.place == "landed" for task in tasks),
            sessions=self.sessions.total(),
            tasks=tasks,
            needs_you=needs_of(self.state, facts, end),
            still_working=tuple(work.agent_id for _, work in self.works()),
            usage=count_spending(self._reports).usage,
            budget=self._budget_report(),
            elapsed_seconds=round(self.elapsed_seconds, 3),
        )

    def _costly_text(self, end: PlanRunEnd) -> str:
        if end != "max_cost_per_task":
            return ""
        names = sorted(self.used_up.difference(self.state.completed_tasks))
        return "; ".join(
            f"task {self.state.task_name(name)}: {self.costs.words(name)}" for name in names
        )


def _end_line(task: str, work: SlotWork, report: CheckReport, *, asks: bool) -> str:
    commits = f", {plural(report.new_commits, 'commit')}" if report.new_commits else ""
    how = "it asks a person" if asks else f"{report.status}, {report.reason}"
    return f"task {task}: {work.agent_id} ended: {how}{commits}"


def _as_time(moment: datetime | None) -> float:
    return moment.timestamp() if moment is not None else 0.0
