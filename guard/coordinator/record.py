"""Read and change the coordinator's state: decide under the lock, and record events together with the registries."""

import os
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from guard.claims.changes import current_ground
from guard.context.ids import check_id, new_id
from guard.context.invalid_fields import refuse_invalid_fields
from guard.context.invocation import Invocation
from guard.coordinator.register_agents import Register
from guard.core.agents.baseline import Ground
from guard.core.base.paths import spell
from guard.core.base.text import plural
from guard.core.coordinator.decide import decide
from guard.core.coordinator.decide_tasks import base_of, dispatch_developer, pass_audit
from guard.core.coordinator.entries import ActiveAgent
from guard.core.coordinator.requests import (
    AuditedCommit,
    DecisionTerms,
    Refusal,
    Request,
)
from guard.core.coordinator.state import COORDINATOR, Coordinator, empty_state, fold_onto
from guard.core.coordinator.task_events import CoordinatorEvent
from guard.core.coordinator.tick import is_due, is_of_a_tick, tick
from guard.core.coordinator.upkeep_events import StateReconstructed, StateRecoveryNeeded
from guard.core.log.events import BaseEvent
from guard.core.log.view import unseal
from guard.errors import Refused, RepositoryProblem
from guard.git.reader import RepositoryReader
from guard.git.refs import UNBORN, read_head
from guard.store import Change

_MOST_FILES = 1000
_HEADS = "refs/heads/"


def decision_terms(
    guard: Invocation, event_id: str | None, *, reads_head: bool = False
) -> DecisionTerms:
    moment = guard.clock.moment()
    return DecisionTerms(
        moment.now,
        event_id or new_id(),
        guard.users_config.settings.coordinator,
        _head(guard) if reads_head else None,
        boot_seconds=moment.boot_seconds,
        boot_id=moment.boot_id,
    )


def _reader(guard: Invocation) -> RepositoryReader | None:
    repository = guard.repository_if_any
    if repository is None:
        return None
    limit = guard.users_config.settings.completion_check.git_timeout_seconds
    return RepositoryReader(repository, guard.environ, limit)


def _head(guard: Invocation) -> str | None:
    git = _reader(guard)
    try:
        found = read_head(git) if git is not None else None
    except RepositoryProblem as error:
        guard.output.warn(f"cannot read the commit of HEAD: {error.message}")
        return None
    return None if found == UNBORN else found


def audited_commit(guard: Invocation, state: Coordinator, task_id: str) -> AuditedCommit | None:
    """Return the commit, files and branch of a task that passes its audit now; None without a commit."""
    git, now = _reader(guard), _head(guard)
    if git is None or now is None:
        return None
    try:
        branch = git.line("symbolic-ref", "--quiet", "HEAD")
        base = base_of(state, task_id)
        names = git.ask("diff-tree", "-r", "-z", "--name-only", base, now) if base else b""
    except RepositoryProblem as error:
        guard.output.warn(f"the files of {state.task_name(task_id)} are not known: {error.message}")
        return AuditedCommit(now)
    files = [spell(name) for name in names.split(b"\0") if name]
    own = branch.removeprefix(_HEADS) if branch else None
    return AuditedCommit(now, tuple(files[:_MOST_FILES]), own[:512] if own else None)


@dataclass(frozen=True)
class RequestResult:
    """The events that were recorded for a request, and the state after them."""

    events: tuple[CoordinatorEvent, ...]
    state: Coordinator
    earlier: BaseEvent | None = None
    """The event that recorded the same request before under its id; then nothing is recorded now."""

    @property
    def repeated(self) -> bool:
        return self.earlier is not None


def find_state(guard: Invocation) -> Coordinator | None:
    return guard.store.view(COORDINATOR)


def require_state(guard: Invocation) -> Coordinator:
    """Return the coordinator's state; raise Refused if no plan is loaded."""
    return _require_plan(find_state(guard))


def _require_plan(state: Coordinator | None) -> Coordinator:
    if state is None or state.plan_file is None:
        raise Refused("no plan is loaded", "`guard plan load FILE` loads one")
    return state


def record(guard: Invocation, request: Request, event_id: str | None = None) -> RequestResult:
    if event_id is not None:
        check_id("an event id", event_id)
    begins = request.kind is dispatch_developer
    terms = decision_terms(guard, event_id, reads_head=begins)
    ground = current_ground(guard) if begins else None

    def decide_now(state: Coordinator) -> tuple[CoordinatorEvent, ...]:
        own = terms
        if request.kind is pass_audit:
            own = replace(terms, commit=audited_commit(guard, state, request.fields["task_id"]))
        return unwrap_decision(decide(state, request, own))

    return change_state(
        guard, terms, decide_now, event_id, is_repeat=request.is_recorded_as, ground=ground
    )


def find_event(guard: Invocation, event_id: str) -> BaseEvent | None:
    with guard.writable_store.change() as change:
        return change.find_event(event_id)


def change_state(
    guard: Invocation,
    terms: DecisionTerms,
    decide_now: Callable[[Coordinator], tuple[CoordinatorEvent, ...]],
    event_id: str | None,
    *,
    is_repeat: Callable[[BaseEvent], bool] = lambda _earlier: False,
    ground: Ground | None = None,
) -> RequestResult:
    """Record the events that `decide_now` returns under the lock, unless the id has an earlier event.

    The request is refused if `is_repeat` does not recognise that event as its own.
    """
    keep = guard.config.settings.registry.keep_finished
    with guard.writable_store.change() as change, reject_invalid():
        state = _recover_state(change, terms)
        earlier = change.find_event(event_id) if event_id is not None else None
        if earlier is not None:
            if not is_repeat(earlier):
                raise reused_id_error(earlier, earlier.id)
            return RequestResult((), state, earlier)
        events = decide_now(state)
        register = Register(change, terms.now, ground, keep)
        # One append, so that a crash leaves either all events or none.
        change.append(*_with_registry_events(state, events, register))
        return RequestResult(events, change.view(COORDINATOR) or state)


def _with_registry_events(
    state: Coordinator, events: Iterable[CoordinatorEvent], register: Register
) -> list[BaseEvent]:
    whole: list[BaseEvent] = []
    for event in events:
        after = fold_onto(state, event)
        whole += [event, *register.events(state, event, after)]
        state = after
    return whole


def _recover_state(change: Change, terms: DecisionTerms) -> Coordinator:
    # The first command that may write records that the state file could not be used.
    state = change.view(COORDINATOR)
    if state is None:
        return empty_state()
    reason = change.recovery_reason(COORDINATOR)
    if reason is None:
        return state
    replayed = state.events_folded
    change.append(
        StateRecoveryNeeded(at=terms.now, id=new_id(), reason=reason),
        StateReconstructed(at=terms.now, id=new_id(), events_replayed=replayed),
    )
    return change.view(COORDINATOR) or state


def reused_id_error(known: BaseEvent, event_id: str) -> Refused:
    return Refused(
        f"the id {event_id} was used for another {known.type}", "give each request an id of its own"
    )


def unwrap_decision(
    decision: tuple[CoordinatorEvent, ...] | Refusal,
) -> tuple[CoordinatorEvent, ...]:
    if isinstance(decision, Refusal):
        raise Refused(decision.message, decision.hint)
    return decision


def reject_invalid() -> AbstractContextManager[None]:
    """Raise WrongUsage for fields that do not validate."""
    return refuse_invalid_fields("texts are valid and bounded: a line has at most 512 characters")


def run_tick(
    guard: Invocation,
    is_at_work: Callable[[str, ActiveAgent], bool],
    *,
    fills: bool = True,
    event_id: str | None = None,
) -> RequestResult:
    """Record what is due: end or extend the time of agents, and with `fills` send agents to free places."""
    guard.store.refuse_lost_log()
    if not guard.workspace.path.exists():
        _require_plan(None)
    terms = decision_terms(guard, event_id, reads_head=fills)
    ground = current_ground(guard) if fills else None
    at_work: dict[str, bool] = {}
    unseen: dict[str, ActiveAgent] = {}

    def decide_now(state: Coordinator) -> tuple[CoordinatorEvent, ...]:
        agents = _require_plan(state).active_agents.items()
        due = {
            name: active for name, active in agents if is_due(active, terms) and not active.checked
        }
        unseen.update({name: active for name, active in due.items() if name not in at_work})
        return (
            () if unseen else tick(state, terms, lambda name: at_work.get(name, False), fills=fills)
        )

    # It takes time to find out whether an agent is at work, so the lock is released meanwhile.
    while True:
        unseen.clear()
        result = change_state(
            guard, terms, decide_now, event_id, is_repeat=is_of_a_tick, ground=ground
        )
        if not unseen:
            return result
        at_work |= {agent_id: is_at_work(agent_id, agent) for agent_id, agent in unseen.items()}


def explain_origin(guard: Invocation, state: Coordinator) -> str:
    stored = _stored_state(guard)
    if stored is None:
        count = plural(state.events_folded, "event")
        return f"{COORDINATOR.file} cannot be used: folded from the log alone, {count}"
    count, later = plural(stored.events_folded, "event"), state.events_folded - stored.events_folded
    news = f"{plural(later, 'event')} came after it" if later else "no event came after it"
    return f"{COORDINATOR.file} is at record {stored.seq}, with {count}; {news}"


def _stored_state(guard: Invocation) -> Coordinator | None:
    path = os.fspath(guard.workspace.path / COORDINATOR.file)
    try:
        with open(path, "rb") as file:
            return unseal(file.read(), Coordinator)
    except (OSError, ValueError):
        return None
