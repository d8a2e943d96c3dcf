"""Find the current iteration in the log, with its session, its last check and its processes."""

import os
from collections.abc import Mapping
from dataclasses import field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypedDict

from guard.context.ids import new_id
from guard.context.invocation import Invocation
from guard.context.lease import is_here, is_running
from guard.core.base.first_use import dataclass
from guard.core.config.settings import Settings
from guard.core.iteration.baseline import Baseline
from guard.core.iteration.events import SessionSeen
from guard.core.iteration.facts import Process
from guard.core.iteration.run import RUN, OpenIteration, Run
from guard.core.team.state import Scope
from guard.errors import GuardError, Refused, RepositoryProblem
from guard.git.reader import RepositoryReader
from guard.iteration import baseline as baselines
from guard.iteration.process_watch import ProcessMark, ProcessWatch
from guard.system.process_identity import is_alive

if TYPE_CHECKING:
    from guard.core.check.evidence import Policy
    from guard.core.check.last_check import LastCheck


@dataclass(frozen=True)
class CheckTerms:
    """What the caller asked for: how an iteration is to be checked."""

    baseline: str | None = None
    spec: str | None = None
    agent: str | None = None
    session: str | None = None
    probe: bool = True
    wait: bool = True
    rescue: bool = True
    prove: bool = True
    flags: Mapping[str, Any] = field(default_factory=dict)
    """Settings given on the command line, by their dotted keys."""

    def policy(self, settings: Settings) -> "Policy":
        from guard.core.check.evidence import Policy

        policy = Policy.model_validate(settings.completion_check, from_attributes=True)
        asked_for = {name: getattr(self, name) for name in ("probe", "wait", "rescue", "prove")}
        return policy.model_copy(update={**asked_for, "prove_required": settings.prove.required})


@dataclass(frozen=True)
class Iteration:
    """One iteration of one work tree, and the baseline it began with."""

    run: str
    number: int
    baseline: Baseline
    opened: OpenIteration | None
    """What the log knows of it while it is open."""
    frozen: Mapping[str, Any] | None = None
    """The project's settings when it began; None if that was not recorded."""

    trusted: str | None = None
    """The commit whose settings the user trusted when its run began."""

    @property
    def trusted_commits(self) -> tuple[str, ...]:
        """Return the commits that the keys may come from which only the user may set."""
        return tuple(commit for commit in (self.trusted, self.baseline.head) if commit)

    @property
    def mark(self) -> str:
        """Return the value of the variable by which its processes are known."""
        return f"{self.run}/{self.number}"


class IterationEventFields(TypedDict):
    at: datetime
    id: str
    run: str
    iteration: int
    worktree: str


def event_fields(guard: Invocation, iteration: Iteration, now: datetime) -> IterationEventFields:
    """Return the fields that every event of an iteration has."""
    return {
        "at": now,
        "id": new_id(),
        "run": iteration.run,
        "iteration": iteration.number,
        "worktree": guard.worktree_key,
    }


def team_scope(guard: Invocation, session: str | None = None) -> Scope:
    """Return the scope of a session's team; without a session, of the iteration that is open in the work tree."""
    key = guard.worktree_key
    run = guard.store.view(RUN, key)
    opened = run.open_iteration if run is not None else None
    if run is None or opened is None:
        return Scope(key, session)
    return Scope(key, session or opened.session, run.run, opened.number)


def refuse_beside_another(guard: Invocation, run: Run | None) -> None:
    """Raise if another guard watches over an iteration in this work tree."""
    opened = run.open_iteration if run is not None else None
    if opened is not None and is_other_guard_alive(guard, opened.supervisor):
        assert opened.supervisor is not None
        raise Refused(
            f"iteration {opened.number} is running already in this work tree "
            f"(guard is pid {opened.supervisor.pid})",
            "wait for it, or give the other agent a work tree of its own: `git worktree add`",
        )


def is_other_guard_alive(guard: Invocation, supervisor: Process | None) -> bool:
    if supervisor is None or (supervisor.pid == os.getpid() and is_here(supervisor)):
        return False
    return is_running(supervisor, guard.store)


def has_agent_ended(guard: Invocation, iteration: Iteration) -> bool:
    """Tell whether the agent that guard started is known to have ended; False for an agent that guard did not start."""
    opened = iteration.opened
    if opened is None or opened.supervisor is None:
        return False
    if opened.process is None or not is_here(opened.process):
        return not is_other_guard_alive(guard, opened.supervisor)
    return not is_alive(opened.process.pid, opened.process.start)


def current_iteration(guard: Invocation, terms: CheckTerms) -> Iteration:
    """Return the newest iteration of the work tree; `--baseline REV` makes a recorded baseline unnecessary."""
    store, key = guard.store, guard.worktree_key
    recorded = baselines.load(store, key)
    if terms.baseline is not None:
        limit = guard.settings(None, terms.flags).completion_check.git_timeout_seconds
        git = RepositoryReader(guard.repository, guard.environ, limit)
        named = baselines.from_revision(git, terms.baseline)
        recorded = named if recorded is None else baselines.move_to_revision(recorded, named)
    if recorded is None:
        raise RepositoryProblem(
            "no baseline has been recorded for this work tree",
            "run `guard baseline` before the agent, or name a revision with --baseline",
        )
    run = store.view(RUN, key)
    known = [run.open_iteration, run.last_iteration] if run and run.run == recorded.run else []
    this = next(
        (iteration for iteration in known if iteration and iteration.number == recorded.iteration),
        None,
    )
    return Iteration(
        recorded.run,
        recorded.iteration,
        recorded,
        opened=this if isinstance(this, OpenIteration) else None,
        frozen=this.frozen if this else None,
        trusted=this.trusted if this else None,
    )


def describe_after_interrupt(guard: Invocation) -> str | None:
    """Say what is safe after Ctrl-C in a check or a run; None if the state cannot be read."""
    try:
        run = guard.store.view(RUN, guard.worktree_key)
    except (GuardError, OSError):
        return None
    kept = "all that was recorded and saved is kept, and `guard snapshots` lists what was saved"
    if run is None or run.open_iteration is None:
        return f"nothing is lost: no iteration is open; {kept}"
    stays = f"iteration {run.open_iteration.number} stays open, with its baseline"
    return f"nothing is lost: {stays}, and `guard check` judges it; {kept}"


def recorded_agent(guard: Invocation) -> tuple[str | None, str | None]:
    """Return the agent and the session of the open iteration; None for what is not known."""
    run = guard.store.view(RUN, guard.worktree_key)
    opened = run.open_iteration if run else None
    return (opened.agent, opened.session) if opened else (None, None)


def record_session(
    guard: Invocation,
    iteration: Iteration,
    agent: str | None,
    session: str | None,
    process: Process | None,
) -> Iteration:
    """Record the agent's process or session, so that after a crash the next guard can ask it and wait for it."""
    fields = event_fields(guard, iteration, guard.clock.now())
    event = SessionSeen(**fields, agent=agent, session=session, process=process)
    try:
        with guard.writable_store.change() as change:
            change.append(event)
    except GuardError as error:
        # An agent is at work: nothing stops for this.
        guard.output.warn(f"guard could not record the agent's session: {error.message}")
    opened = iteration.opened
    return replace(iteration, opened=opened.with_session(event)) if opened else iteration


def note_session(
    guard: Invocation,
    agent: str,
    session: str,
    *,
    mark: str | None = None,
    process: Process | None = None,
) -> None:
    """Record the session of the open iteration, if none is recorded, and the process that the session lives in now.

    An iteration that a guard watches over takes a session only from a caller with its mark and its agent.
    """
    run = guard.store.view(RUN, guard.worktree_key)
    opened = run.open_iteration if run is not None else None
    if run is None or opened is None:
        return
    news = opened.session is None
    if opened.supervisor is not None:
        process = None  # A guard that watches knows the process itself.
        news = news and mark == f"{run.run}/{opened.number}" and opened.agent in (None, agent)
    elif opened.session == session:
        news = process not in (None, opened.process)
    if news:
        record_session(guard, current_iteration(guard, CheckTerms()), agent, session, process)


def recorded_session(guard: Invocation, iteration: Iteration) -> str | None:
    run = guard.store.view(RUN, guard.worktree_key)
    opened = run.find_open(iteration.run, iteration.number) if run is not None else None
    return opened.session if opened is not None else None


def last_check(guard: Invocation, iteration: Iteration) -> "LastCheck | None":
    from guard.core.check.last_check import LAST_CHECK

    last = guard.store.view(LAST_CHECK, guard.worktree_key)
    ours = last is not None and (last.run, last.iteration) == (iteration.run, iteration.number)
    return last if ours else None


def process_mark(guard: Invocation, iteration: Iteration) -> ProcessMark:
    opened = iteration.opened
    if opened is not None and opened.supervisor is not None:
        return ProcessMark(value=iteration.mark, agent=opened.process)
    since = iteration.baseline.at.timestamp() if iteration.baseline.at else 0.0
    return ProcessMark(root=guard.repository.root, since=since)


def watch_processes(guard: Invocation, iteration: Iteration) -> ProcessWatch:
    from guard.core.check.evidence import Living

    # The watch goes on from what an earlier check saw.
    watch = ProcessWatch(process_mark(guard, iteration))
    last = last_check(guard, iteration)
    if last is not None:
        ago = (guard.clock.now() - last.at).total_seconds()
        watch.recall((Living.model_validate(living, strict=False) for living in last.living), ago)
    return watch
