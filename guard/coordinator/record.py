"""Read and change the coordinator's state: decide under the lock, and record events together with the registries."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace

from guard.context.ids import check_id, new_id
from guard.context.invalid_fields import refuse_invalid_fields
from guard.context.invocation import Invocation
from guard.coordinator.batch import EventBatch
from guard.coordinator.register_agents import Register, expect_agents
from guard.coordinator.registry_news import RegistryLook, look_at_agents
from guard.core.agents.baseline import Ground
from guard.core.agents.registry import GLOBAL_REGISTRY
from guard.core.base.first_use import dataclass
from guard.core.base.text import plural
from guard.core.coordinator.decide import decide, load_plan
from guard.core.coordinator.decide_restart import reset_plan
from guard.core.coordinator.decide_tasks import dispatch_developer, pass_audit
from guard.core.coordinator.entries import ActiveAgent, SupportRun
from guard.core.coordinator.report import describe_event
from guard.core.coordinator.requests import (
    AuditedCommit,
    DecisionTerms,
    Refusal,
    Request,
)
from guard.core.coordinator.state import COORDINATOR, Coordinator, empty_state
from guard.core.coordinator.task_events import CoordinatorEvent
from guard.core.coordinator.tick import due_agents, is_of_a_tick, tick
from guard.core.coordinator.upkeep_events import StateReconstructed, StateRecoveryNeeded
from guard.core.log.events import BaseEvent
from guard.core.log.view import unseal
from guard.errors import Refused, RepositoryProblem
from guard.git.reader import RepositoryReader
from guard.git.refs import UNBORN, missing_commits, read_head
from guard.store import Change

_MOST_KNOWN = 20


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


def _current_ground(guard: Invocation) -> Ground | None:
    # Few events give out tasks, and then these need not be loaded.
    from guard.claims.changes import current_ground

    return current_ground(guard)


def _audited_commit(guard: Invocation, state: Coordinator, task_id: str) -> AuditedCommit | None:
    git = _reader(guard)
    if git is None:
        return None
    try:
        from guard.coordinator.audited_commit import audited_commit

        return audited_commit(guard, git, state, task_id)
    except RepositoryProblem as error:
        name = state.task_name(task_id)
        guard.output.warn(f"the commits of {name} are not known: {error.message}")
        return None


@dataclass(frozen=True)
class RequestResult:
    """The events that were recorded for a request, and the state after them."""

    events: tuple[CoordinatorEvent, ...]
    state: Coordinator
    earlier: BaseEvent | None = None
    """The event that recorded the same request before under its id; then nothing is recorded now."""
    news: tuple[CoordinatorEvent, ...] = ()
    """What the registries told of agents in the same change."""

    @property
    def repeated(self) -> bool:
        return self.earlier is not None


def find_state(guard: Invocation) -> Coordinator | None:
    return guard.store.view(COORDINATOR)


def require_state(guard: Invocation) -> Coordinator:
    """Return the coordinator's state; raise Refused if no plan is loaded, or if it is that of another repository."""
    state = _require_plan(find_state(guard))
    _refuse_another_repository(guard, state)
    return state


def is_of_another_repository(guard: Invocation, state: Coordinator) -> bool:
    """Tell whether a repository was made anew at this path: it has none of the commits that the plan knows."""
    commits = list(state.task_commits.values())
    known = [commit.commit_sha for commit in commits[-_MOST_KNOWN:]]
    known += [work.base_sha for work in state.in_progress_tasks[-_MOST_KNOWN:] if work.base_sha]
    known += [state.plan_head] if state.plan_head else []
    git = _reader(guard) if known else None
    if git is None or not git.repository.git_dir_exists:
        return False
    try:
        return len(missing_commits(git, known)) == len(set(known))
    except RepositoryProblem:
        return False


def _refuse_another_repository(guard: Invocation, state: Coordinator) -> None:
    if is_of_another_repository(guard, state):
        raise Refused(
            f"the plan {state.plan_file} belongs to a repository that was here before: this one has none of its commits",
            "`guard plan load FILE` begins the plan of this repository",
        )


def _require_plan(state: Coordinator | None) -> Coordinator:
    if state is None or state.plan_file is None:
        raise Refused("no plan is loaded", "`guard plan load FILE` loads one")
    return state


def record(guard: Invocation, request: Request, event_id: str | None = None) -> RequestResult:
    if event_id is not None:
        check_id("an event id", event_id)
    state = find_state(guard)
    if state is not None and request.kind not in (load_plan, reset_plan):
        _refuse_another_repository(guard, state)
    look = look_at_agents(guard, state)
    begins = request.kind is dispatch_developer
    reads_head = begins or request.kind is load_plan
    terms = decision_terms(guard, event_id, reads_head=reads_head)
    ground = _current_ground(guard) if begins else None

    def decide_now(state: Coordinator) -> tuple[CoordinatorEvent, ...]:
        own = terms
        if request.kind is pass_audit:
            own = replace(terms, commit=_audited_commit(guard, state, request.fields["task_id"]))
        return unwrap_decision(decide(state, request, own))

    done = change_state(
        guard,
        terms,
        decide_now,
        event_id,
        is_repeat=request.is_recorded_as,
        ground=ground,
        look=look,
        names=_named_agent(request),
    )
    for event in done.news:
        guard.output.note(f"the registries tell of {describe_event(done.state, event)}")
    return done


def _named_agent(request: Request) -> Iterator[tuple[str, str]]:
    named = [request.fields.get(field) for field in ("task_id", "agent_id")]
    if all(isinstance(name, str) for name in named):
        yield str(named[0]), str(named[1])


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
    look: RegistryLook | None = None,
    news_first: bool = False,
    names: Iterable[tuple[str, str]] = (),
) -> RequestResult:
    """Record the events that `decide_now` returns under the lock, unless the id has an earlier event.

    The request is refused if `is_repeat` does not recognise that event as its own. With a `look`, what the registries tell
    of agents is recorded, too: after the decision, unless it comes first or the state refuses the request without it.
    `names` are the agents, after their tasks, that the decision is likely to be about.
    """
    keep = guard.config.settings.registry.keep_finished
    with guard.writable_store.change() as change, reject_invalid():
        change.expect(COORDINATOR)
        change.expect(GLOBAL_REGISTRY)
        expect_agents(change, names, ground)
        if event_id is not None:
            change.expect_event(event_id)
        # What is recorded after a damaged record would be lost with a salvage.
        change.refuse_damage()
        state = _recover_state(change, terms)
        earlier = change.find_event(event_id) if event_id is not None else None
        if earlier is not None:
            if not is_repeat(earlier):
                raise reused_id_error(earlier, earlier.id)
            return RequestResult((), state, earlier)
        batch = EventBatch(change, state, Register(change, terms.now, ground, keep))
        if look is not None and news_first:
            batch.add_news(look, terms)
        try:
            events = decide_now(batch.state)
        except Refused:
            if look is None:
                raise
            batch.add_news(look, terms)
            batch.append()
            if not batch.news:
                raise
            events = decide_now(batch.state)
        events = batch.add(events)
        if look is not None and not batch.news:
            # The registries are looked at as they are after the decision: an answer ends what an agent was blocked by.
            batch.append()
            batch.add_news(look, terms)
        batch.append()
        return RequestResult(events, change.view(COORDINATOR) or state, news=tuple(batch.news))


def _recover_state(change: Change, terms: DecisionTerms) -> Coordinator:
    # The first command that may write records that the state file could not be used.
    state = change.view(COORDINATOR)
    if state is None:
        return empty_state()
    reason = change.recovery_reason(COORDINATOR)
    if reason is None:
        return state
    needed = StateRecoveryNeeded(at=terms.now, id=new_id(), reason=reason)
    if reason == "temp_file_exists":
        change.append(needed)
    else:
        replayed = state.events_folded
        again = StateReconstructed(at=terms.now, id=new_id(), events_replayed=replayed)
        change.append(needed, again)
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
    is_at_work: Callable[[str, ActiveAgent | SupportRun], bool],
    *,
    fills: bool = True,
    audits_only: bool = False,
    audits_go_on: bool = False,
    target_tip: str | None = None,
    withheld: frozenset[str] = frozenset(),
    event_id: str | None = None,
) -> RequestResult:
    """Record what is due: end or extend the time of agents, and with `fills` send agents to free places.

    With `audits_only` only auditors are sent; `audits_go_on` says that an open question does not hold them back. With the
    tip of the target, a task begins there, and only when the work
    that it depends on has landed. No agent is sent to tasks that are `withheld`.
    """
    guard.store.refuse_lost_log()
    if not guard.store.exists():
        _require_plan(None)
    terms = decision_terms(guard, event_id, reads_head=fills and target_tip is None)
    terms = terms if target_tip is None else replace(terms, head=target_tip)
    ground = _current_ground(guard) if fills else None
    look, news = look_at_agents(guard, find_state(guard)), list[CoordinatorEvent]()
    at_work: dict[str, bool] = {}
    unseen: dict[str, ActiveAgent | SupportRun] = {}

    def decide_now(state: Coordinator) -> tuple[CoordinatorEvent, ...]:
        due = due_agents(_require_plan(state), terms)
        unseen.update({name: timed for name, timed in due.items() if name not in at_work})
        if unseen:
            return ()

        def is_proven(name: str) -> bool:
            return at_work.get(name, False)

        return tick(
            state,
            terms,
            is_proven,
            fills=fills,
            audits_only=audits_only,
            audits_go_on=audits_go_on,
            landed_only=target_tip is not None,
            withheld=withheld,
        )

    # It takes time to find out whether an agent is at work, so the lock is released meanwhile.
    while True:
        unseen.clear()
        result = change_state(
            guard,
            terms,
            decide_now,
            event_id,
            is_repeat=is_of_a_tick,
            ground=ground,
            look=look,
            news_first=True,
        )
        news += result.news
        if not unseen:
            return replace(result, events=(*news, *result.events), news=tuple(news))
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
