"""Take over what is done already, begin a plan anew, and let a task be tried again."""

from collections.abc import Sequence

from guard.context.invocation import Invocation
from guard.coordinator.plan import find_task_id
from guard.coordinator.record import RequestResult, find_event, record, require_state
from guard.core.base.paths import spell
from guard.core.coordinator.decide_restart import adopt_tasks, reset_plan, retry_task
from guard.core.coordinator.state import Coordinator
from guard.core.coordinator.upkeep_events import AdoptedTask, TasksAdopted
from guard.core.landing.message import TASK_TRAILER
from guard.git.reader import RepositoryReader

_MOST_COMMITS = 10_000
_MOST_FILES = 1000
_FORMAT = f"%H%x00%(trailers:key={TASK_TRAILER},valueonly,separator=%x01)"


def adopt(
    guard: Invocation, names: Sequence[str] = (), event_id: str | None = None
) -> RequestResult:
    """Record tasks as done without an audit: the named ones, by default those with a ticked box or a commit of their own.

    A commit is a task's if its trailer says so; then the task can be rolled back.
    """
    state = require_state(guard)
    earlier = find_event(guard, event_id) if event_id is not None else None
    if isinstance(earlier, TasksAdopted):
        # What is left to adopt now is not what was asked for then.
        return record(guard, adopt_tasks(tasks=earlier.tasks), event_id)
    commits = _commits_by_task(guard, state)
    if names:
        wanted = [find_task_id(guard, name) for name in names]
    else:
        places = state.places()
        free = [task for task in state.tasks if places[task.id] not in ("completed", "in_progress")]
        wanted = [task.id for task in free if task.ticked or task.id in commits]
    tasks = tuple(commits.get(task_id, AdoptedTask(task_id=task_id)) for task_id in wanted)
    return record(guard, adopt_tasks(tasks=tasks), event_id)


def reset(guard: Invocation, reason: str = "", event_id: str | None = None) -> RequestResult:
    """Forget what was done of the plan; nothing in the repository changes."""
    return record(guard, reset_plan(reason=reason or "a person reset the plan"), event_id)


def retry(guard: Invocation, name: str, event_id: str | None = None) -> RequestResult:
    """Close the questions about a task and forget its failures, so that it is given out again."""
    return record(guard, retry_task(task_id=find_task_id(guard, name)), event_id)


def _commits_by_task(guard: Invocation, state: Coordinator) -> dict[str, AdoptedTask]:
    """Return the newest commit in the history of HEAD whose trailer names a task, by task."""
    repository = guard.repository_if_any
    if repository is None:
        return {}
    limit = guard.users_config.settings.completion_check.git_timeout_seconds
    git = RepositoryReader(repository, guard.environ, limit)
    if git.line("rev-parse", "--verify", "--quiet", "HEAD^{commit}") is None:
        return {}
    ids = {word: task.id for task in state.tasks for word in (task.id, task.name)}
    words = ("log", "-z", f"--max-count={_MOST_COMMITS}", f"--format={_FORMAT}", "--first-parent")
    fields = git.ask(*words, f"--grep=^{TASK_TRAILER}:", "HEAD", "--").decode(errors="replace")
    found: dict[str, AdoptedTask] = {}
    pieces = fields.split("\0")
    branch = git.line("symbolic-ref", "--quiet", "--short", "HEAD")
    for oid, trailers in zip(pieces[::2], pieces[1::2], strict=False):
        for word in trailers.split("\x01"):
            task_id = ids.get(word.strip())
            if task_id is not None and task_id not in found:
                found[task_id] = _adopted(git, task_id, oid, branch)
    return found


def _adopted(git: RepositoryReader, task_id: str, oid: str, branch: str | None) -> AdoptedTask:
    parent = git.line("rev-parse", "--verify", "--quiet", f"{oid}^")
    listed = git.ask("diff-tree", "-r", "-z", "--root", "--name-only", "--no-commit-id", oid)
    names = [spell(name) for name in listed.split(b"\0") if name]
    return AdoptedTask(
        task_id=task_id,
        commit_sha=oid,
        base_sha=parent,
        files_modified=tuple(names[:_MOST_FILES]),
        branch=branch[:512] if branch else None,
    )
