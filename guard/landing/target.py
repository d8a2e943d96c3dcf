"""Find or make the branch that the tasks of a plan land on."""

from dataclasses import dataclass
from functools import partial
from pathlib import PurePath

from guard.context.invocation import Invocation
from guard.coordinator.record import change_state, decision_terms, require_state
from guard.core.coordinator.landing_events import LandingTargetChosen
from guard.core.coordinator.state import Coordinator
from guard.core.coordinator.task_events import CoordinatorEvent
from guard.core.plan.task_ids import make_id
from guard.errors import GuardError, Refused, RepositoryProblem
from guard.snapshots.project import Project
from guard.snapshots.take import prepare_site

HEADS = "refs/heads/"
_OWN_BRANCHES = "guard/plan/"
_MOST_NAME = 500


@dataclass(frozen=True)
class LandingTarget:
    """The branch by its full name, and its tip; None before the branch exists."""

    ref: str
    head: str | None
    is_named: bool
    """Whether a person named it: only then guard lands on it while it is checked out."""


def find_target(guard: Invocation, named: str | None, project: Project) -> LandingTarget:
    """Return the branch that was named, else the plan's own; one that was named and does not exist is refused."""
    state = require_state(guard)
    own = _own_branch(state)
    ref = _full_name(named) if named is not None else state.landing_target or own
    if not _is_valid(project, ref):
        raise Refused(f"{named!r} is not the name of a branch", "`git branch` lists the branches")
    head = project.commit_of(ref)
    if head is None and ref != own:
        raise Refused(
            f"there is no branch {ref.removeprefix(HEADS)}",
            "make it with `git branch`, or leave out --target for a branch of the plan's own",
        )
    return LandingTarget(ref, head, named is not None or ref != own)


def open_target(guard: Invocation, named: str | None = None) -> LandingTarget:
    """Return the target, made from HEAD if it does not exist, and record which it is."""
    project = prepare_site(guard).project()
    found = find_target(guard, named, project)
    if found.head is None:
        begin = project.commit_of("HEAD")
        if begin is None:
            raise RepositoryProblem(
                "there is no commit yet, so nothing can land",
                "make the first one with `git commit`",
            )
        _make_branch(project, found.ref, begin)
        found = LandingTarget(found.ref, begin, found.is_named)
    _record(guard, found)
    return found


def _record(guard: Invocation, found: LandingTarget) -> None:
    if require_state(guard).landing_target == found.ref:
        return
    terms = decision_terms(guard, None)
    draft = partial(LandingTargetChosen, target=found.ref)

    def choose(state: Coordinator) -> tuple[CoordinatorEvent, ...]:
        return () if state.landing_target == found.ref else terms.events([draft])

    change_state(guard, terms, choose, None)


def _make_branch(project: Project, ref: str, commit: str) -> None:
    words = ("update-ref", "-m", "guard: begin the plan", ref, commit, "0" * len(commit))
    try:
        project.call(*words)
    except GuardError:
        # Another guard may have made it at the same moment.
        if project.commit_of(ref) is None:
            raise


def _is_valid(project: Project, ref: str) -> bool:
    try:
        project.call("check-ref-format", ref)
    except RepositoryProblem:
        return False
    return True


def _full_name(branch: str) -> str:
    return branch if branch.startswith("refs/") else f"{HEADS}{branch}"[:_MOST_NAME]


def _own_branch(state: Coordinator) -> str:
    stem = PurePath(state.plan_file or "plan").stem
    return f"{HEADS}{_OWN_BRANCHES}{make_id(stem)}"
