"""Move the target to the commits of a landing, announced before and recorded after, so that a killed guard can be settled."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from guard.context.invocation import Invocation
from guard.coordinator.record import change_state, decision_terms
from guard.core.base.paths import spell
from guard.core.coordinator.landing_events import (
    LandingCommit,
    LandingFailed,
    LandingStarted,
    TaskLanded,
)
from guard.core.coordinator.requests import Draft
from guard.core.coordinator.state import Coordinator
from guard.core.coordinator.task_events import CoordinatorEvent
from guard.core.coordinator.upkeep_events import TaskCommitRecorded
from guard.core.rescue.settings import SnapshotLimits
from guard.core.snapshots.snapshot import Occasion
from guard.errors import RepositoryProblem
from guard.git.locate import repository_at
from guard.landing.branches import delete_branch, keep_tips
from guard.landing.chain import CommitChain
from guard.landing.target import HEADS, LandingTarget
from guard.rescue import move_branch
from guard.rescue.changes import list_changes
from guard.rollback.carry_out import BranchMove, move_checked_out, pin_commit, unpin_commit
from guard.rollback.merge import tree_of
from guard.rollback.order import checkouts_of
from guard.rollback.place import RollbackPlace
from guard.rollback.prepare import PreparedRevert, RollbackStopped, find_position, refuse_dirty
from guard.rollback.recover import has_revert
from guard.snapshots.shadow import scratch_folder
from guard.snapshots.take import take_and_prune


class TargetMoved(Exception):
    """The target, or the plan, is not what it was when the commits were made: they have to be made again."""


def move_target(
    guard: Invocation, place: RollbackPlace, target: LandingTarget, chain: CommitChain, lock: int
) -> None:
    """Move the target, and record that the tasks have landed; the caller has the lock of all rollbacks.

    Raises `RollbackStopped` if the target is checked out where its files are not as they were committed.
    """
    project = place.project()
    if project.commit_of(target.ref) != chain.head:
        raise TargetMoved
    where = checkouts_of(project, target.ref)
    if where and not target.is_named:
        raise RollbackStopped(
            "not_ready",
            f"{target.ref.removeprefix(HEADS)} is checked out in {where[0]}",
            f"say that you want that with `--target {target.ref.removeprefix(HEADS)}`,"
            " or check out another branch there",
        )
    pin_commit(project, chain.to_sha)
    try:
        if where:
            _move_with_files(
                guard, replace(place, repository=repository_at(where[0])), target, chain, lock
            )
        else:
            _announce(guard, target, chain)
            _move_ref(place, target, chain, lock)
    except BaseException:
        # Whether it has moved is looked at, not taken from the error.
        settle_announced(guard, place)
        raise
    settle_announced(guard, place)
    unpin_commit(project, chain.to_sha)


def _move_ref(place: RollbackPlace, target: LandingTarget, chain: CommitChain, lock: int) -> None:
    project = place.project()
    project.refuse_obstacles(target.ref)
    words = (target.ref, chain.to_sha, chain.head, _reason(chain))
    with move_branch.ref_update(project, place.shadow, *words) as command:
        trouble = move_branch.move_alone(project, command, (lock,))
    if trouble is not None:
        if project.commit_of(target.ref) != chain.head:
            raise TargetMoved
        raise RepositoryProblem(f"git could not move {target.ref}: {trouble}", "try again")


def _reason(chain: CommitChain) -> str:
    return f"guard: land {', '.join(each.task_id for each in chain.commits[:5])}"


def _move_with_files(
    guard: Invocation,
    place: RollbackPlace,
    target: LandingTarget,
    chain: CommitChain,
    lock: int,
) -> None:
    """Move a branch that is checked out, with index and files, if nothing of a person's is in the way."""
    project = place.project()
    position = find_position(project, target.ref)
    if position.head != chain.head:
        raise TargetMoved
    tree = tree_of(project, chain.to_sha)
    changed = list_changes(project, tree_of(project, chain.head), tree)
    with scratch_folder(place.workspace) as folder:
        own = project.with_index(folder / "index")
        own.call("read-tree", tree)
        refuse_dirty(project, own, changed)
    limits = SnapshotLimits(guard.config.settings.rescue)
    snapshot = take_and_prune(place, Occasion("landing", guard.clock.now()), limits=limits)
    move = BranchMove(chain.commits[0].task_id, _reason(chain), chain.to_sha, snapshot.id)
    ready = PreparedRevert(position, tree, changed)
    try:
        move_checked_out(place, move, ready, lock, lambda: _announce(guard, target, chain))
    except RollbackStopped as error:
        if error.why == "changed_meanwhile":
            raise TargetMoved from error
        raise


def _announce(guard: Invocation, target: LandingTarget, chain: CommitChain) -> None:
    terms = decision_terms(guard, None)
    started = partial(
        LandingStarted,
        target=target.ref,
        head=chain.head,
        to_sha=chain.to_sha,
        commits=chain.commits,
    )

    def start(state: Coordinator) -> tuple[CoordinatorEvent, ...]:
        if state.landing_in_progress is not None or state.rollback_in_progress is not None:
            raise TargetMoved
        for work in chain.works:
            commit = state.task_commits.get(work.task_id)
            passed = work.task_id in state.completed_tasks and commit is not None
            if not passed or has_landed(state, work.task_id, work.tip, target.ref):
                raise TargetMoved
        return terms.events([started])

    change_state(guard, terms, start, None)


def has_landed(state: Coordinator, task_id: str, tip: str, target: str) -> bool:
    landed = state.landed_tasks.get(task_id)
    return landed is not None and landed.target == target and tip in (landed.tip, landed.commit_sha)


def settle_announced(guard: Invocation, place: RollbackPlace) -> bool | None:
    """Record the end of a landing that was announced: whether its target has moved; None if there is none."""
    from guard.coordinator.record import find_state

    state = find_state(guard)
    under_way = state.landing_in_progress if state is not None else None
    if under_way is None:
        return None
    project = place.project()
    moved = has_revert(project, under_way.target, under_way.to_sha)
    if moved:
        keep_tips(project, under_way.commits)
    drafts = (
        landed_drafts(under_way.target, under_way.commits)
        if moved
        else [partial(LandingFailed, target=under_way.target, reason="interrupted")]
    )
    terms = decision_terms(guard, None)

    def end(now: Coordinator) -> tuple[CoordinatorEvent, ...]:
        is_same = now.landing_in_progress == under_way
        return terms.events(drafts) if is_same else ()

    change_state(guard, terms, end, None)
    if moved:
        for landed in under_way.commits:
            if landed.branch is not None:
                delete_branch(project, landed.branch, landed.tip)
    return moved


def landed_drafts(target: str, commits: Sequence[LandingCommit]) -> list[Draft]:
    drafts: list[Draft] = []
    for landed in commits:
        drafts.append(
            partial(
                TaskCommitRecorded,
                task_id=landed.task_id,
                commit_sha=landed.commit_sha,
                base_sha=landed.base_sha,
                files_modified=landed.files,
                branch=target.removeprefix(HEADS),
            )
        )
        drafts.append(
            partial(
                TaskLanded,
                task_id=landed.task_id,
                target=target,
                tip=landed.tip,
                commit_sha=landed.commit_sha,
                kept_ref=landed.kept_ref,
                mode=landed.mode,
            )
        )
    return drafts


def path_names(paths: Sequence[bytes], most: int = 100) -> tuple[str, ...]:
    return tuple(spell(path) for path in paths[:most])
