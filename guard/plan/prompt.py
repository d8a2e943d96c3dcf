"""Write the prompt of an agent for its task, from the plan's state and from git."""

from dataclasses import replace
from hashlib import sha256

from guard.context.invocation import Invocation
from guard.coordinator.failures import task_warnings
from guard.coordinator.record import find_event, record, require_state
from guard.core.base.text import fit_line
from guard.core.coordinator.decide import issue_warnings
from guard.core.coordinator.entries import ActiveAgent
from guard.core.coordinator.prompt import (
    MOST_PATCH,
    ROLES,
    BranchWork,
    Briefing,
    PlanPromptReport,
    PromptRole,
    prompt_text,
)
from guard.core.coordinator.state import Coordinator
from guard.core.coordinator.upkeep_events import FailureWarningIssued
from guard.core.failures.pattern import FailureWarning
from guard.core.plan.model import PlanTask
from guard.errors import Refused, RepositoryProblem, WrongUsage
from guard.git.reader import RepositoryReader

TASK_BRANCHES = "refs/heads/guard/task/"
_MOST_SUBJECTS = 30
_MOST_FILES = 4000
_LISTING = ("diff-tree", "-r", "--no-renames", "--no-ext-diff", "--no-textconv")


def task_prompt(
    guard: Invocation,
    task_id: str | None,
    *,
    role: PromptRole | None = None,
    agent_id: str | None = None,
) -> str:
    """Return the prompt with which an agent begins, or goes on with, its task."""
    return prompt_report(guard, task_id, role=role, agent_id=agent_id).text


def prompt_report(
    guard: Invocation,
    task_name: str | None,
    *,
    role: PromptRole | None = None,
    agent_id: str | None = None,
    state: Coordinator | None = None,
    issues: bool = True,
) -> PlanPromptReport:
    """Return the prompt with its warnings; by default, the role and the task are what the agent was sent for.

    For a developer at work on the task the warnings count as issued: they are logged, once for each dispatch. Any other
    prompt is a preview, and logs nothing; so is every prompt without `issues`. A caller may give the state as it was at an
    earlier time.
    """
    state = state or require_state(guard)
    named = _find_task(state, task_name) if task_name is not None else None
    active = state.active_agents.get(agent_id or "")
    own_role, own_task = _place(state, active, agent_id)
    role = role or own_role or "developer"
    task_id = named.id if named is not None else own_task
    if task_id is None and role in ("developer", "auditor", "analyst"):
        hint = "name the task, or an agent that is at work: `guard plan show` lists both"
        raise WrongUsage(f"the prompt of a {role} needs a task", hint)
    task = _find_task(state, task_id) if task_id is not None else None
    issued = issues and role == "developer" and active is not None and active.task_id == task_id
    warnings: tuple[FailureWarning, ...] = ()
    if task is not None and role == "developer":
        warnings = task_warnings(state, task)
        if issued and warnings and active is not None and agent_id is not None:
            warnings = _issue(guard, task, agent_id, active, warnings)
    briefing = _from_git(guard, Briefing(state, role, task, agent_id, warnings=warnings))
    return PlanPromptReport(
        task_id=task_id,
        role=role,
        agent_id=agent_id,
        text=prompt_text(briefing),
        warnings=warnings,
        issued=issued,
    )


def _find_task(state: Coordinator, text: str) -> PlanTask:
    for task in state.tasks:
        if text in (task.id, task.name):
            return task
    raise Refused(f"the plan has no task {text[:200]}", "`guard plan show` lists the tasks")


def _place(
    state: Coordinator, active: ActiveAgent | None, agent_id: str | None
) -> tuple[PromptRole | None, str | None]:
    run = state.active_supporting_agents.get(agent_id or "")
    if run is not None:
        return "supporter", run.task_id
    return (ROLES[active.type], active.task_id) if active is not None else (None, None)


def _issue(
    guard: Invocation,
    task: PlanTask,
    agent_id: str,
    active: ActiveAgent,
    warnings: tuple[FailureWarning, ...],
) -> tuple[FailureWarning, ...]:
    # The id is that of the dispatch, so that the prompt can be printed again without a second event.
    begun = f"{task.id}\n{agent_id}\n{active.dispatched_at.isoformat()}"
    event_id = f"warned-{sha256(begun.encode()).hexdigest()[:24]}"
    known = find_event(guard, event_id)
    if isinstance(known, FailureWarningIssued):
        return known.warnings
    record(guard, issue_warnings(task_id=task.id, warnings=warnings), event_id)
    return warnings


def _from_git(guard: Invocation, briefing: Briefing) -> Briefing:
    # Without git the prompt has less in it; that is no reason to give none.
    repository = guard.repository_if_any
    if repository is None or briefing.task is None:
        return briefing
    limit = guard.users_config.settings.completion_check.git_timeout_seconds
    git = RepositoryReader(repository, guard.environ, limit)
    subjects: dict[str, tuple[str, ...]] = {}
    for task_id in briefing.task.depends:
        commit = briefing.state.task_commits.get(task_id)
        if commit is not None:
            subjects[task_id] = _subjects(guard, git, commit.base_sha, commit.commit_sha)
    work = None
    if briefing.role in ("developer", "auditor"):
        work = _committed_work(guard, git, briefing)
    return replace(briefing, subjects=subjects, work=work)


def _subjects(
    guard: Invocation, git: RepositoryReader, base: str | None, tip: str
) -> tuple[str, ...]:
    since = [f"^{base}"] if base else []
    most = f"--max-count={_MOST_SUBJECTS if base else 1}"
    try:
        listed = git.ask("log", most, "--format=%h %s", "--no-show-signature", tip, *since, "--")
    except RepositoryProblem as error:
        guard.output.note(f"cannot read the commits up to {tip}: {error.message}")
        return ()
    return tuple(fit_line(line) for line in listed.decode(errors="replace").splitlines())


def _committed_work(
    guard: Invocation, git: RepositoryReader, briefing: Briefing
) -> BranchWork | None:
    assert briefing.task is not None
    branch = f"{TASK_BRANCHES}{briefing.task.id}"
    work = briefing.state.work(briefing.task.id)
    try:
        tip = git.line("rev-parse", "--verify", "--quiet", f"{branch}^{{commit}}")
        if tip is None and briefing.role == "auditor" and work is not None and work.base_sha:
            # Without a branch of its own the task was worked on where this work tree stands.
            branch, tip = "HEAD", git.line("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        if tip is None:
            return None
        # What the target has is not the task's own work; without a target HEAD stands for it.
        given = briefing.state.landing_target
        has_target = given and git.line("rev-parse", "--verify", "--quiet", f"{given}^{{commit}}")
        starts = (given if has_target else "HEAD", work.base_sha if work is not None else None)
        base = _base(git, tip, [start for start in starts if start not in (None, branch)])
        if base is None:
            return None
        return BranchWork(
            branch=branch.removeprefix("refs/heads/"),
            base=base,
            subjects=_subjects(guard, git, base, tip),
            files=_text(git.ask(*_LISTING, "--stat=120", base, tip))[:_MOST_FILES],
            patch=_text(git.ask(*_LISTING, "-p", base, tip))[: 2 * MOST_PATCH],
        )
    except RepositoryProblem as error:
        guard.output.warn(f"cannot read the commits of {branch}: {error.message}")
        return None


def _base(git: RepositoryReader, tip: str, starts: list[str]) -> str | None:
    # The commit from which the branch has the fewest commits of its own: it may have been brought up to date since.
    found = [git.line("merge-base", tip, start) for start in starts]
    bases = [base for base in dict.fromkeys(found) if base not in (None, tip)]
    return min(bases, key=lambda base: _distance(git, base, tip), default=None)


def _distance(git: RepositoryReader, base: str, tip: str) -> int:
    return int(git.line("rev-list", "--count", tip, f"^{base}", "--") or 0)


def _text(answer: bytes) -> str:
    return answer.decode(errors="replace")
