"""Call guard from runners written in Python: the same operations as the commands, as functions."""

import os
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from guard.context.invocation import Invocation
from guard.context.output import LoggedOutput
from guard.errors import WrongUsage
from guard.system.clock import make_clock

if TYPE_CHECKING:
    from datetime import datetime

    from guard.core.activity.report import ActivityReport
    from guard.core.agents.events import AgentStatus, Severity
    from guard.core.agents.report import AgentReport, AgentsReport, TaskStatus
    from guard.core.breaker.report import BreakerReport
    from guard.core.check.report import CheckReport
    from guard.core.classify import Classification
    from guard.core.coordinator.prompt import PromptRole
    from guard.core.coordinator.report import PlanChangeReport
    from guard.core.coordinator.run_report import PlanRunReport
    from guard.core.iteration.baseline import Baseline
    from guard.core.iteration.facts import Status
    from guard.core.landing.report import ForeseenConflict, LandingReport
    from guard.core.probe.report import ProbeReport
    from guard.core.prove.calibration import Calibration
    from guard.core.prove.hunks import Held
    from guard.core.prove.report import ProofReport
    from guard.core.report.document import NightReport
    from guard.core.rescue.report import RescueReport
    from guard.core.team.change import Kind, LeftBecause
    from guard.core.team.report import TeamReport
    from guard.prove.work import ProveTerms

Where = str | Path | None
"""The type of `workspace` and `repo`, which have the meaning of `--workspace` and `--repo` on the command line."""


def spawn_agent(
    task_id: str,
    agent_id: str,
    agent_type: str = "agent",
    message: str = "",
    *,
    tmux_session: str | None = None,
    tmux_socket: str | None = None,
    pid: int | None = None,
    workspace: Where = None,
    repo: Where = None,
) -> "AgentReport":
    """Register a started agent and return the report.

    With a tmux session or a process, guard notices the agent's end without a report.
    """
    from guard.agents import update as report

    place = report.PlaceOptions(tmux_session, tmux_socket, pid)
    guard = invocation(workspace, repo)
    return report.spawn_agent(guard, task_id, agent_id, agent_type, message, place)


def update_agent_progress(
    task_id: str,
    agent_id: str,
    status: "AgentStatus",
    message: str = "",
    progress: int | None = None,
    *,
    incarnation: int | None = None,
    strict: bool = False,
    workspace: Where = None,
    repo: Where = None,
) -> "AgentReport":
    """Record an agent's status and return the counts of its task and of all tasks.

    For a completion, the report also says how credible it is. A `strict` completion with blocking issues is refused:
    `recorded_as` says so, and the agent stays active.
    """
    from guard.agents.registry import AgentUpdate
    from guard.agents.update import update_agent

    update = AgentUpdate(task_id, agent_id, status, message, progress, incarnation)
    return update_agent(invocation(workspace, repo), update, strict=strict)


def record_finding(
    task_id: str,
    agent_id: str,
    text: str,
    *,
    severity: "Severity" = "info",
    file: str | None = None,
    incarnation: int | None = None,
    workspace: Where = None,
    repo: Where = None,
) -> "AgentReport":
    """Record a finding of an agent and return the report."""
    from guard.agents import update as report

    return report.record_finding(
        invocation(workspace, repo),
        task_id,
        agent_id,
        text,
        severity=severity,
        file=file,
        incarnation=incarnation,
    )


def get_real_task_status(
    task_id: str, *, workspace: Where = None, repo: Where = None
) -> "TaskStatus":
    """Return a task's agents and their counts, after marking agents whose session or process is gone."""
    from guard.agents.monitor import task_status

    return task_status(invocation(workspace, repo), task_id)


def kill_real_agent(
    task_id: str,
    agent_id: str,
    reason: str,
    *,
    grace: float | None = None,
    workspace: Where = None,
    repo: Where = None,
) -> "AgentReport":
    """End an agent's session or process, wait until it has ended, and record the reason."""
    from guard.agents.kill import kill_agent

    return kill_agent(invocation(workspace, repo), task_id, agent_id, reason, grace)


def agents_of(
    task_id: str | None = None, *, workspace: Where = None, repo: Where = None
) -> "AgentsReport":
    """Return the agents of a task or of all tasks, after marking agents whose session or process is gone."""
    from guard.agents.monitor import list_agents

    return list_agents(invocation(workspace, repo), task_id)


def assess_agent_activity(
    agent_id: str,
    lookback_minutes: float | None = None,
    *,
    task_id: str | None = None,
    all_sources: bool = False,
    workspace: Where = None,
    repo: Where = None,
) -> "ActivityReport":
    """Return whether an agent is at work, with the confidence and the reasons."""
    from guard.activity.assess import assess_activity

    return assess_activity(
        invocation(workspace, repo),
        agent_id,
        task_id=task_id,
        lookback_minutes=lookback_minutes,
        all_sources=all_sources,
    )


def should_send_resume(
    agent_id: str,
    lookback_minutes: float | None = None,
    *,
    task_id: str | None = None,
    workspace: Where = None,
    repo: Where = None,
) -> tuple[bool, str]:
    """Return whether an agent needs a prompt to continue, and why.

    If guard cannot tell, the answer is yes, and the reason says so.
    """
    from guard.activity.assess import decide_resume

    guard = invocation(workspace, repo)
    decision = decide_resume(guard, agent_id, task_id=task_id, lookback_minutes=lookback_minutes)
    return decision.allowed, decision.reason


def generate_resume_prompt(
    agent_id: str,
    validate_activity: bool = True,
    *,
    task_id: str | None = None,
    lookback_minutes: float | None = None,
    claim_task: bool = True,
    workspace: Where = None,
    repo: Where = None,
) -> str | None:
    """Return the prompt that wakes a stalled agent, and send nothing; None if the agent is at work or has ended."""
    from guard.resume.send import ResumeRequest, resume

    request = ResumeRequest(task_id, lookback_minutes, claim_task, check_activity=validate_activity)
    return resume(invocation(workspace, repo), agent_id, request).prompt


def is_resumer_prompt(message: str) -> bool:
    """Tell whether a message is a prompt that tries to wake a stalled agent; a message that only quotes one is not."""
    from guard.core.activity.noise import is_resumer_prompt as is_prompt

    return isinstance(message, str) and is_prompt(message)


def is_meaningful_progress(event: Mapping[str, Any]) -> bool:
    """Tell whether an event is an agent's own work: not a heartbeat, a prompt to wake it, or its acknowledgement."""
    from guard.core.activity.noise import is_meaningful_progress as is_progress

    return isinstance(event, Mapping) and is_progress(event)


def baseline(*, workspace: Where = None, repo: Where = None) -> "Baseline":
    """Record the state of the repository at the start of an iteration, and return it."""
    from guard.iteration.begin import begin

    return begin(invocation(workspace, repo)).baseline


def check(
    *,
    baseline: str | None = None,
    spec: str | None = None,
    agent: str | None = None,
    session: str | None = None,
    probe: bool = True,
    wait: bool = True,
    rescue: bool = True,
    prove: bool = True,
    settings: Mapping[str, Any] | None = None,
    workspace: Where = None,
    repo: Where = None,
) -> "CheckReport":
    """Run the completion check and return its report.

    `settings` maps dotted keys to values, which override all other settings: `{"prove.command": "pytest -q"}` names what
    the work must pass.
    """
    from guard.check.verdict import check as check_now
    from guard.iteration.current import CheckTerms

    terms = CheckTerms(baseline, spec, agent, session, probe, wait, rescue, prove, settings or {})
    return check_now(invocation(workspace, repo), terms)


def prove(
    *,
    command: str | None = None,
    baseline: str | None = None,
    head: str | None = None,
    no_cache: bool = False,
    settings: Mapping[str, Any] | None = None,
    workspace: Where = None,
    repo: Where = None,
) -> "ProofReport":
    """Prove committed work by the project's own checks, and return what they prove.

    The `command` must succeed on a clean checkout; without it `prove.command` and the tables `prove.check` count.
    """
    from guard.prove.prove import prove as prove_now

    terms = _prove_terms(command, baseline, head, no_cache, settings)
    return prove_now(invocation(workspace, repo), terms)


def calibrate(
    commits: int,
    *,
    command: str | None = None,
    head: str | None = None,
    max_time: float | None = None,
    no_cache: bool = False,
    settings: Mapping[str, Any] | None = None,
    workspace: Where = None,
    repo: Where = None,
) -> "Calibration":
    """Replay the newest commits through the proof, each against its first parent, and return what it would have said.

    Nothing is recorded. It ends after `max_time` seconds or by Ctrl-C with the part that is done: `ended` says so.
    """
    from guard.prove.calibrate import calibrate as calibrate_now

    terms = _prove_terms(command, None, head, no_cache, settings)
    return calibrate_now(invocation(workspace, repo), terms, commits, max_time)


def _prove_terms(
    command: str | None,
    baseline: str | None,
    head: str | None,
    no_cache: bool,
    settings: Mapping[str, Any] | None,
) -> "ProveTerms":
    from guard.prove.work import ProveTerms

    named = {} if command is None else {"prove.command": command, "prove.check": ()}
    flags = {**(settings or {}), **named}
    return ProveTerms(baseline=baseline, head=head, no_cache=no_cache, flags=flags)


def find_held(
    *,
    command: str | None = None,
    baseline: str | None = None,
    head: str | None = None,
    max_time: float | None = None,
    no_cache: bool = False,
    settings: Mapping[str, Any] | None = None,
    workspace: Where = None,
    repo: Where = None,
) -> "Held":
    """Take back each part of committed work on its own, and return which of its lines a test holds.

    Nothing is recorded. It ends after `max_time` seconds or by Ctrl-C with the part that is done: `ended` says so.
    """
    from guard.prove.take_back import find_held as find_held_now

    terms = _prove_terms(command, baseline, head, no_cache, settings)
    return find_held_now(invocation(workspace, repo), terms, max_time)


def run(
    command: Sequence[str],
    *,
    prompt: bytes | None = None,
    task: str | None = None,
    agent_id: str | None = None,
    agent_type: str | None = None,
    max_time: float | None = None,
    workspace: Where = None,
    repo: Where = None,
    **terms: Any,
) -> "CheckReport":
    """Run one iteration of an agent and return the report of its check.

    The agent is ended after `max_time` seconds; `terms` are the arguments of `check`. Raises `BreakerOpen` if the breaker
    allows no iteration.
    """
    from guard.iteration.current import CheckTerms
    from guard.run.order import RunOrder
    from guard.run.run import run_iteration

    flags = terms.pop("settings", None) or {}
    order = RunOrder(
        tuple(command),
        CheckTerms(**terms, flags=flags),
        prompt=prompt,
        task=task,
        agent_id=agent_id,
        agent_type=agent_type,
        max_seconds=max_time,
    )
    return run_iteration(invocation(workspace, repo), order)


def probe(
    session: str | None = None,
    *,
    agent: str | None = None,
    settings: Mapping[str, Any] | None = None,
    workspace: Where = None,
    repo: Where = None,
) -> "ProbeReport":
    """Ask an agent's session about its state, once, and return the answer or the reason why there is none."""
    from guard.probe import probe_session

    flags = {"completion_check.agent": agent, **(settings or {})}
    return probe_session(invocation(workspace, repo), session, flags)


def rescue(
    *,
    spec: str | None = None,
    dry_run: bool = False,
    on_branch: bool = False,
    settings: Mapping[str, Any] | None = None,
    workspace: Where = None,
    repo: Where = None,
) -> "RescueReport":
    """Commit the work that the iteration left uncommitted, and return what was done.

    With `on_branch` the commits go to a branch of their own; with `dry_run` nothing is committed.
    """
    from guard.check.verdict import rescue as rescue_now
    from guard.iteration.current import CheckTerms

    terms = CheckTerms(spec=spec, flags=settings or {})
    return rescue_now(invocation(workspace, repo), terms, dry=dry_run, on_branch=on_branch)


def report(
    run: str | None = None,
    *,
    since: "datetime | None" = None,
    workspace: Where = None,
    repo: Where = None,
) -> "NightReport":
    """Return the report of a run, or of all that happened since a time, without secrets.

    Without a range it is about the newest run, or about all since the last 24 hours if that is more.
    """
    from guard.report.gather import make_report

    if run is not None and since is not None:
        raise WrongUsage("`run` and `since` exclude each other", "give one of them")
    if since is not None and since.tzinfo is None:
        raise WrongUsage("`since` has no time zone", "give a moment such as datetime.now(UTC)")
    return make_report(invocation(workspace, repo), run=run, since=since)


def show_breaker(*, workspace: Where = None, repo: Where = None) -> "BreakerReport":
    """Return the state of the breaker, and whether an iteration may begin."""
    from guard.breaker import show

    return show(invocation(workspace, repo))


def allow_iteration(
    pid: int | None = None, *, workspace: Where = None, repo: Where = None
) -> "BreakerReport":
    """Return whether an iteration may begin; an open breaker's trial is claimed for this process, or for `pid`."""
    from guard.breaker import claim_trial

    return claim_trial(invocation(workspace, repo), pid or os.getpid())


def record_iteration(
    status: "Status",
    reason: str = "",
    *,
    fingerprint: str = "",
    denied: bool = False,
    rescued: bool = False,
    workspace: Where = None,
    repo: Where = None,
) -> "BreakerReport":
    """Tell the breaker how an iteration of a loop of your own ended, and return its state; `run` does it by itself."""
    from guard import breaker

    guard = invocation(workspace, repo)
    outcome = breaker.Outcome(status, reason, fingerprint, denied, rescued)
    breaker.record_outcome(guard, outcome)
    return breaker.show(guard)


def trip_breaker(
    reason: str = "tripped", *, workspace: Where = None, repo: Where = None
) -> "BreakerReport":
    """Open the breaker, and return its state."""
    from guard import breaker

    guard = invocation(workspace, repo)
    breaker.trip(guard, reason)
    return breaker.show(guard)


def reset_breaker(
    reason: str = "reset", *, workspace: Where = None, repo: Where = None
) -> "BreakerReport":
    """Close the breaker, set every count to zero, and return its state."""
    from guard import breaker

    guard = invocation(workspace, repo)
    breaker.reset(guard, reason)
    return breaker.show(guard)


def spawn_teammate(
    member: str,
    team: str | None = None,
    kind: "Kind" = "teammate",
    description: str = "",
    *,
    lease_seconds: float | None = None,
    session: str | None = None,
    workspace: Where = None,
    repo: Where = None,
) -> "TeamReport":
    """Count a helper of the agent, before it is started, and return the team."""
    from guard.core.team.change import Joined
    from guard.team import spawn_member

    joined = Joined(member, kind, description, team, told_by="command")
    return spawn_member(invocation(workspace, repo), joined, session, lease_seconds)


def leave_team(
    member: str,
    because: "LeftBecause" = "ended",
    *,
    incarnation: int | None = None,
    session: str | None = None,
    workspace: Where = None,
    repo: Where = None,
) -> "TeamReport":
    """Stop counting a helper, and return the team."""
    from guard.core.team.change import MemberLeft
    from guard.team import report_member

    left = MemberLeft(member, because=because, incarnation=incarnation)
    return report_member(invocation(workspace, repo), left, session)


def clear_team(
    reason: str = "", *, session: str | None = None, workspace: Where = None, repo: Where = None
) -> "TeamReport":
    """Stop counting all helpers, forget the team's name, and return the empty team."""
    from guard.core.team.report import team_report
    from guard.team import clear_session

    scope, state = clear_session(invocation(workspace, repo), session, reason)
    return team_report(scope, state, "cleared")


def show_team(
    *, session: str | None = None, workspace: Where = None, repo: Where = None
) -> "TeamReport":
    """Return the team of a session: its name, its members, and whether guard holds back a completion."""
    from guard.core.team.report import team_report
    from guard.hooks.ingest import ingest_hooks
    from guard.team import team_of

    guard = invocation(workspace, repo)
    ingest_hooks(guard)
    return team_report(*team_of(guard, session))


def plan_prompt(
    task: str | None = None,
    *,
    role: "PromptRole | None" = None,
    agent_id: str | None = None,
    workspace: Where = None,
    repo: Where = None,
) -> str:
    """Return the prompt of an agent of the plan; by default, role and task are what the agent was sent for."""
    from guard.plan.prompt import task_prompt

    return task_prompt(invocation(workspace, repo), task, role=role, agent_id=agent_id)


def plan_run(
    command: Sequence[str],
    *,
    plan_file: str | Path | None = None,
    agents: int | None = None,
    prompt_file: str | Path | None = None,
    audit: str | None = None,
    target: str | None = None,
    max_seconds: float | None = None,
    max_cost: float | None = None,
    max_tokens: int | None = None,
    max_cost_without_progress: float | None = None,
    max_cost_per_task: float | None = None,
    workspace: Where = None,
    repo: Where = None,
) -> "PlanRunReport":
    """Work the plan off with agents started by this command, until it is complete or a person is needed.

    What is not given of the budget is as the user's settings say.
    """
    from guard.core.cost.budget import CostBudget
    from guard.plan.run import run_plan
    from guard.plan.run_state import PlanRunTerms

    guard = invocation(workspace, repo)
    settings = guard.users_config.settings.run
    budget = CostBudget(
        settings.max_cost if max_cost is None else max_cost,
        settings.max_tokens if max_tokens is None else max_tokens,
        settings.max_cost_without_progress
        if max_cost_without_progress is None
        else max_cost_without_progress,
    )
    terms = PlanRunTerms(
        tuple(command),
        Path(plan_file) if plan_file is not None else None,
        agents,
        Path(prompt_file) if prompt_file is not None else None,
        audit,
        target,
        max_seconds,
        budget,
        max_cost_per_task,
    )
    return run_plan(guard, terms)


def plan_land(
    *tasks: str,
    target: str | None = None,
    dry_run: bool = False,
    workspace: Where = None,
    repo: Where = None,
) -> "LandingReport":
    """Land tasks that passed their audit on the target branch, by default all of them, and return the report."""
    from guard.landing.land import land

    return land(invocation(workspace, repo), tasks or None, target, dry=dry_run)


def plan_conflicts(
    *, target: str | None = None, workspace: Where = None, repo: Where = None
) -> "tuple[ForeseenConflict, ...]":
    """Return the tasks whose work will conflict, also while agents still work on them."""
    from guard.landing.foresee import foresee

    return foresee(invocation(workspace, repo), target)


def plan_adopt(
    *tasks: str, event_id: str | None = None, workspace: Where = None, repo: Where = None
) -> "PlanChangeReport":
    """Take over tasks that are done already: those named, or those with a ticked box or a commit of their own."""
    from guard.coordinator.restart import adopt
    from guard.core.coordinator.report import change_report

    done = adopt(invocation(workspace, repo), tasks, event_id)
    return change_report(done.events, done.state, repeated=done.repeated)


def plan_reset(
    reason: str = "",
    *,
    event_id: str | None = None,
    workspace: Where = None,
    repo: Where = None,
) -> "PlanChangeReport":
    """Begin the plan anew: forget what is done, asked and landed."""
    from guard.coordinator.restart import reset
    from guard.core.coordinator.report import change_report

    done = reset(invocation(workspace, repo), reason, event_id)
    return change_report(done.events, done.state, repeated=done.repeated)


def plan_retry(
    task: str, *, event_id: str | None = None, workspace: Where = None, repo: Where = None
) -> "PlanChangeReport":
    """Let a task that waits for a person be worked on again."""
    from guard.coordinator.restart import retry
    from guard.core.coordinator.report import change_report

    done = retry(invocation(workspace, repo), task, event_id)
    return change_report(done.events, done.state, repeated=done.repeated)


def classify(
    stdout: bytes, stderr: bytes = b"", *, agent: str | None = None, exit_code: int | None = None
) -> "Classification":
    """Return the meaning of an agent's output and exit status."""
    from guard.core.classify import classify as classified

    return classified(stdout, stderr, agent, exit_code, make_clock().now())


def invocation(workspace: Where, repo: Where) -> Invocation:
    """Return what a command would be given in this place; one process keeps it."""
    folder_option = os.fspath(workspace) if workspace is not None else None
    place = os.path.abspath(repo) if repo is not None else None
    try:
        folder = os.getcwd()
    except FileNotFoundError:
        folder = ""  # A caller that names a repository or a workspace needs no current folder.
    return _cached_invocation(
        folder_option, place, folder, os.environ.get("GUARD_WORKSPACE"), os.getpid()
    )


@cache
def _cached_invocation(workspace: str | None, repo: str | None, *_around: object) -> Invocation:
    # A process that calls often keeps what it has read, and reads only what is new. There is one invocation per process, folder
    # and environment, so that a forked child does not use what its parent has read.
    place = Path(repo) if repo is not None else None
    return Invocation(
        repo=place, workspace_option=workspace, clock=make_clock(), output=LoggedOutput()
    )
