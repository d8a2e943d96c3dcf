"""What a decision of the coordinator needs beside its state: the limits, and where the repository stands."""

from datetime import timedelta

from guard.context.ids import new_id
from guard.context.invocation import Invocation
from guard.core.base.paths import spelled
from guard.core.coordinator.decide_tasks import base_of
from guard.core.coordinator.requests import AuditedCommit, CoordinatorLimits, DecisionTerms
from guard.core.coordinator.state import Coordinator
from guard.errors import RepositoryProblem
from guard.git.head import UNBORN, head
from guard.git.reader import RepositoryReader

_MOST_FILES = 1000
_HEADS = "refs/heads/"


def limits_of(guard: Invocation) -> CoordinatorLimits:
    """The knobs, from the user's own settings."""
    told = guard.users_config.settings.coordinator
    return CoordinatorLimits(
        active_developers=told.active_developers,
        remediation_attempts=told.remediation_attempts,
        agent_timeout=timedelta(minutes=told.agent_timeout_minutes),
        redispatch_limit=told.redispatch_limit,
        max_concurrent_per_agent=told.max_concurrent_per_agent,
    )


def terms_of(guard: Invocation, event_id: str | None, *, looks: bool = False) -> DecisionTerms:
    """The terms of a decision that is made now; one about a task's start `looks` where the repository stands."""
    where = _head(guard) if looks else None
    moment = guard.clock.moment()
    return DecisionTerms(
        moment.now,
        event_id or new_id(),
        limits_of(guard),
        where,
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
        found = head(git) if git is not None else None
    except RepositoryProblem as error:
        guard.output.warn(f"where the repository stands is not known: {error.message}")
        return None
    return None if found == UNBORN else found


def commit_of(guard: Invocation, state: Coordinator, task_id: str) -> AuditedCommit | None:
    """What git says of a task that passes its audit now; None without a commit."""
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
    files = [spelled(name) for name in names.split(b"\0") if name]
    own = branch.removeprefix(_HEADS) if branch else None
    return AuditedCommit(now, tuple(files[:_MOST_FILES]), own[:512] if own else None)
