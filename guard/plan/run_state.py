"""Hold what a run of the plan knows while it goes on: its parts, what is at work, and why it starts no more agents."""

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal, get_args

from guard import breaker
from guard.context.invocation import Invocation
from guard.coordinator.record import RequestResult, record, require_state
from guard.core.base.text import fit_line
from guard.core.check.report import CheckReport
from guard.core.coordinator.decide_agents import crash_agent
from guard.core.coordinator.entries import ActiveAgent, SupportRun
from guard.core.coordinator.requests import Request
from guard.core.coordinator.run_report import (
    RunFacts,
    event_words,
)
from guard.core.cost.budget import NO_BUDGET, BudgetEnd, BudgetReport, CostBudget, budget_report
from guard.core.cost.usage import Usage
from guard.core.run.loop import count_spending
from guard.errors import Refused, RepositoryProblem
from guard.git.reader import RepositoryReader
from guard.landing.target import HEADS, open_target
from guard.plan.audit import Auditor
from guard.plan.costs import TaskCosts
from guard.plan.display import Display
from guard.plan.lander import Lander
from guard.plan.notices import PlanNotices
from guard.plan.slots import Slot, SlotRecord, Slots, SlotWork, WorkKind
from guard.plan.worker import Workers

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


class PlanRunState:
    """A run of the plan while it goes on; what has to survive its process is in the log and in the slots."""

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
        self.notices = PlanNotices(guard)
        self.breaker_key = breaker.BreakerKey.of(guard, of_plan=True)
        self.sessions: Counter[str] = Counter()
        """How many agents and audits were started for each task."""
        self.reports: list[CheckReport] = []
        """The verdicts on the sessions of this run, for the budget."""
        self.stops: Literal["max_time", "stopped", "breaker_open", "fault", BudgetEnd] | None = None
        """Why no agent is started any more."""
        self.breaker_reason: str | None = None
        self.fault = ""
        """Why guard cannot start agents."""
        self.account_until: datetime | None = None
        """Until when all who share the account pause."""
        self.signals = 0
        """How often the user has asked the run to end."""
        self._begun = time.monotonic()

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
        return count_spending(self.reports).usage

    def budget_report(self) -> BudgetReport | None:
        return budget_report(self.terms.budget, count_spending(self.reports))

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
        ends.append(self.account_until)
        return max((end for end in ends if self.is_ahead(end)), default=None, key=_as_time)

    def is_ahead(self, until: datetime | None) -> bool:
        return until is not None and until > self.guard.clock.now()

    def is_rest_over(self) -> bool:
        rests = [found.rest_until for _, found in self.records() if found.rest_until is not None]
        return any(not self.is_ahead(until) for until in rests)

    def facts(self) -> RunFacts:
        ours, rests = set[str](), False
        entries = self.entries()
        for _, found in self.records():
            ours |= {found.agent_id} if found.agent_id else set()
            rests = rests or (self.is_ahead(found.rest_until) and found.agent_id in entries)
        rests = rests or self.limited_until is not None
        return RunFacts(
            limit=self.limit(),
            is_busy=bool(self.works() or self.lander.is_at_work) or (rests and self.stops is None),
            waiting=tuple(self.lander.waiting.values()),
            breaker=self.breaker_reason,
            others=tuple(name for name in entries if name not in ours),
            used_up=self.used_up,
            hold=self.guard.users_config.settings.coordinator.hold_on_question,
        )

    def limit(self) -> Literal["max_time", BudgetEnd] | None:
        match self.stops:
            case "stopped" | "breaker_open" | "fault":
                return None
            case limit:
                return limit

    @property
    def is_budget_spent(self) -> bool:
        """Tell whether only audits may begin that cost nothing: work that is ready still lands."""
        is_spent = self.stops in get_args(BudgetEnd)
        return is_spent and self.auditor.kind in ("audit", "proof")

    def name_task(self, work: SlotWork) -> str:
        return self.state.task_name(work.task_id) if work.task_id else "the infrastructure"

    def kind_of(self, entry: Entry) -> WorkKind:
        if isinstance(entry, SupportRun):
            return "helper"
        if entry.type == "auditor":
            return self.auditor.kind
        return "developer" if entry.type == "developer" else "helper"

    def target_tip(self) -> str:
        git = RepositoryReader(self.guard.repository, self.guard.environ)
        tip = git.line("rev-parse", "--verify", "--quiet", f"{self.target.ref}^{{commit}}")
        if tip is None:
            raise RepositoryProblem(
                f"the branch {self.target.ref.removeprefix(HEADS)} is gone", "name another --target"
            )
        return tip

    def tell_events(self, done: RequestResult) -> None:
        self.state = done.state
        for event in done.events:
            words = event_words(done.state, event)
            if words is not None:
                self.display.tell(words)

    def record(self, request: Request) -> None:
        try:
            self.state = record(self.guard, request).state
        except Refused as error:
            self.display.tell(f"the plan does not take this in: {error.message}")

    def lose(self, work: SlotWork, why: str) -> None:
        if work.agent_id in self.entries():
            self.record(crash_agent(agent_id=work.agent_id, reason=fit_line(" ".join(why.split()))))
            self.display.tell(f"{work.agent_id} is lost: {why}")


def _as_time(moment: datetime | None) -> float:
    return moment.timestamp() if moment is not None else 0.0
