"""Start the agents and audits that the plan has sent, each in a slot, with its prompt and its share of the budget."""

import os
from collections.abc import Iterator, Sequence

from guard.coordinator.outbox import take_parcels
from guard.coordinator.record import require_state
from guard.core.base.text import utf8_text
from guard.core.coordinator.decide_tasks import fail_audit
from guard.core.coordinator.entries import ActiveAgent, Parcel
from guard.core.coordinator.from_registry import INFRASTRUCTURE
from guard.core.run.loop import count_spending
from guard.errors import Refused, RepositoryProblem, StoreUnavailable
from guard.git.reader import RepositoryReader
from guard.plan.audit import NO_COMMITS
from guard.plan.prompt import prompt_report
from guard.plan.run_state import Entry, PlanRunState
from guard.plan.slots import Slot, SlotWork, WorkKind
from guard.plan.work_tree import task_branch
from guard.run.order import PLACEHOLDER, read_prompt
from guard.system.private_files import close

_AUDITS: tuple[WorkKind, ...] = ("auditor", "audit", "proof")
_WAKES = ("start", "rework", "guidance")
_MOST_ARGUMENT = 120_000
"""Linux takes no longer word of a command line than 128 KiB."""


class Dispatch:
    """Starts what is due, ends what was aborted, and takes what it delivered from the outbox."""

    def __init__(self, run: PlanRunState) -> None:
        self._run = run

    def deliver(self) -> None:
        """Start the agents that the plan has sent, and those that go on; deliver what the outbox has for them."""
        run = self._run
        run.state = require_state(run.guard)
        done: list[str] = []
        for agent_id, entry in run.entries().items():
            own = [parcel for parcel in run.state.outbox if parcel.agent_id == agent_id]
            working = [slot for slot, work in run.works() if work.agent_id == agent_id]
            if working or self._start_if_due(agent_id, entry, own):
                done += [parcel.item_id for parcel in own if parcel.kind in _WAKES]
        done += list(self._end_aborted())
        gone = [item for item in run.state.outbox if item.agent_id not in run.entries()]
        done += [item.item_id for item in gone if item.item_id not in done]
        if done:
            take_parcels(run.guard, None, None, tuple(done))

    def _end_aborted(self) -> Iterator[str]:
        run = self._run
        for parcel in run.state.outbox:
            if parcel.kind == "abort":
                for _, work in run.works():
                    if work.agent_id == parcel.agent_id:
                        run.workers.end(work)
                        run.display.tell(f"{work.agent_id} is ended: {parcel.text}")
                yield parcel.item_id

    def _start_if_due(self, agent_id: str, entry: Entry, parcels: Sequence[Parcel]) -> bool:
        run = self._run
        if run.limited_until is not None:
            return False
        if run.stops is not None and not (
            run.is_budget_spent and run.kind_of(entry) in ("audit", "proof")
        ):
            return False
        if isinstance(entry, ActiveAgent) and entry.status != "working":
            return False
        wakes = [parcel for parcel in parcels if parcel.kind in _WAKES]
        own = [found for _, found in run.records() if found.agent_id == agent_id]
        if not wakes and (not own or run.is_ahead(own[0].rest_until)):
            return False
        if any(work.task_id == entry.task_id is not None for _, work in run.works()):
            return False
        try:
            run.slots.refuse_full_disk()
        except StoreUnavailable as error:
            # Those at work go on to their end, and what they finish is taken in.
            run.stops, run.fault = "fault", f"{error.message}; {error.hint}"
            run.display.tell(f"no agent is started any more: {error.message}")
            return False
        return self._start(agent_id, entry, parcels)

    def _start(self, agent_id: str, entry: Entry, parcels: Sequence[Parcel]) -> bool:
        run = self._run
        kind = run.kind_of(entry)
        if kind in _AUDITS and entry.task_id and not run.auditor.has_commits(entry.task_id):
            run.record(fail_audit(task_id=entry.task_id, agent_id=agent_id, reason=NO_COMMITS))
            return True
        slot, lock = self._take_slot(entry.task_id)
        work = SlotWork(kind=kind, agent_id=agent_id, task_id=entry.task_id, stem="none")
        try:
            branch = entry.task_id if kind in ("developer", *_AUDITS) else None
            if run.slots.prepare(slot, branch, self._base(kind, entry.task_id)):
                work = run.workers.new_work(work.model_copy(update={"kind": "setup"}))
                command = run.guard.users_config.settings.plan.setup
                run.workers.start_command(slot, lock, work, command)
                return False
            work = run.workers.new_work(work)
            if kind in ("audit", "proof"):
                run.auditor.start(run.workers, slot, lock, work)
            else:
                self._start_session(slot, lock, work, entry, parcels)
        except (Refused, RepositoryProblem) as error:
            run.lose(work, error.message)
            return True
        finally:
            close(lock)
        run.sessions[entry.task_id or ""] += 1
        run.display.tell(f"task {run.name_task(work)}: {agent_id} begins in slot {slot.number}")
        return True

    def _base(self, kind: WorkKind, task_id: str | None) -> str:
        """Return the commit at which a new branch begins: the target's tip; a helper sees what its task has so far."""
        run = self._run
        git = RepositoryReader(run.guard.repository, run.guard.environ)
        if kind == "helper" and task_id is not None:
            tip = git.line("rev-parse", "--verify", "--quiet", f"{task_branch(task_id)}^{{commit}}")
            if tip is not None:
                return tip
        return run.target_tip()

    def _take_slot(self, task_id: str | None) -> tuple[Slot, int]:
        """Return a free slot with its lock: the one that has the task, else one that no task in progress needs."""
        run = self._run
        entries, records = run.entries(), run.records()
        in_progress = {work.task_id for work in run.state.in_progress_tasks}
        free = [(slot, found) for slot, found in records if found.work is None]
        own = [slot for slot, found in free if task_id and found.task_id == task_id]
        idle = [(slot, found) for slot, found in free if found.agent_id not in entries]
        spare = [slot for slot, found in idle if found.task_id not in in_progress]
        most = run.guard.users_config.settings.coordinator.active_developers
        others = [slot for slot, _ in idle] if len(records) >= most else []
        for slot in (*own, *spare, *others):
            lock = slot.acquire()
            if lock is not None:
                return slot, lock
        slot = run.slots.slot(max((slot.number for slot, _ in records), default=0) + 1)
        lock = slot.acquire()
        assert lock is not None, "a slot that was never made is free"
        return slot, lock

    def _start_session(
        self, slot: Slot, lock: int, work: SlotWork, entry: Entry, parcels: Sequence[Parcel]
    ) -> None:
        run = self._run
        if work.kind == "developer" and any(parcel.kind == "start" for parcel in parcels):
            run.slots.reset_breaker(slot)
        self._write_prompt(slot, work, parcels)
        words = ["run", "--task", work.task_id or INFRASTRUCTURE, "--agent-id", work.agent_id]
        words += ["--type", entry.type if isinstance(entry, ActiveAgent) else entry.agent_id]
        # The run of the plan sends the notices for all its agents.
        words += ["--format", "json", "--no-notify", "--prompt-file", os.fspath(work.prompt)]
        if work.kind != "developer":
            # It changes nothing: an answer of the session could tell no more than its signals.
            words += ["--no-probe", "--no-rescue"]
        if run.seconds_left is not None:
            words += ["--max-time", f"{max(1.0, run.seconds_left):.0f}"]
        words += self._allowance_words(work.task_id)
        run.workers.start_guard(slot, lock, work, [*words, "--", *run.terms.argv])

    def _allowance_words(self, task_id: str | None) -> list[str]:
        # Agents that work at the same time may each use up what is left.
        run = self._run
        left = run.terms.budget.allow(count_spending(run.reports))
        costs = [cost for cost in (left.cost_usd, run.costs.left(task_id)) if cost is not None]
        cost = ["--max-cost", f"{max(min(costs), 1e-6):.6f}"] if costs else []
        tokens = [] if left.tokens is None else ["--max-tokens", str(max(left.tokens, 1))]
        return [*cost, *tokens]

    def _write_prompt(self, slot: Slot, work: SlotWork, parcels: Sequence[Parcel]) -> None:
        run = self._run
        own = prompt_report(run.guard, work.task_id, agent_id=work.agent_id).text
        said = [parcel.text for parcel in parcels if parcel.kind == "support"]
        before = run.terms.prompt_file
        first = read_prompt(before).decode(errors="replace").rstrip() if before is not None else ""
        sections = [first, own, slot.record().feedback, *said]
        data = utf8_text("\n\n".join(section for section in sections if section)).encode()
        if PLACEHOLDER in run.terms.argv and len(data) > _MOST_ARGUMENT:
            raise Refused(
                f"the prompt of {work.agent_id} is too long for {PLACEHOLDER} in the command",
                "shorten --prompt-file, or leave {prompt} out: then the agent reads it on stdin",
            )
        work.prompt.write_bytes(data)
