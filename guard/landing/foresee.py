"""Foresee which tasks will conflict, while agents still work on them: by merging what they have committed so far."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, islice
from pathlib import Path

from guard.context.invocation import Invocation
from guard.coordinator.plan import plan_path
from guard.coordinator.record import find_state
from guard.core.base.paths import path_line
from guard.core.coordinator.state import Coordinator
from guard.core.landing.report import ForeseenConflict
from guard.landing.merge import MergedTask, MergeRules, merge_task
from guard.landing.target import find_target
from guard.landing.work import TASK_BRANCHES, TaskWork
from guard.rescue.changes import list_changes
from guard.rollback.place import RollbackPlace
from guard.rollback.rollback import rollback_place
from guard.snapshots.project import Project
from guard.snapshots.shadow import scratch_folder

_MOST_WORKS = 50
_MOST_PAIRS = 200
_MOST_PATHS = 100


def foresee(guard: Invocation, target: str | None = None) -> tuple[ForeseenConflict, ...]:
    """Return the pairs of tasks whose committed work conflicts, and the tasks that conflict with the target as it is.

    Nothing is written to the repository, and no command runs.
    """
    state = find_state(guard)
    if state is None or guard.repository_if_any is None:
        return ()
    place = rollback_place(guard)
    with scratch_folder(place.workspace) as folder:
        project = (
            place.project().with_index(folder / "index").with_object_folder(folder / "objects")
        )
        works = list(islice(_works(project, state), _MOST_WORKS))
        found = find_target(guard, target, project)
        head = found.head or project.commit_of("HEAD")
        if not works or head is None:
            return ()
        settings = guard.users_config.settings.landing
        rules = MergeRules(settings, plan_path(guard, state.plan_file), runs_commands=False)
        return tuple(_Foresight(guard, place, project, folder, head, rules).all(works))


def _works(project: Project, state: Coordinator) -> Iterator[TaskWork]:
    """Yield what is on the tasks' own branches and has not landed."""
    words = ("for-each-ref", "--format=%(refname) %(objectname)", TASK_BRANCHES)
    rows = (row.rpartition(" ") for row in project.line(*words).splitlines())
    tips = {ref.removeprefix(TASK_BRANCHES): tip for ref, _, tip in rows}
    for task in state.tasks:
        tip = tips.get(task.id)
        landed = state.landed_tasks.get(task.id)
        if tip is not None and (landed is None or landed.tip != tip):
            yield TaskWork(task.id, task.name, task.title, tip, ())


class _Foresight:
    def __init__(
        self,
        guard: Invocation,
        place: RollbackPlace,
        project: Project,
        scratch: Path,
        head: str,
        rules: MergeRules,
    ) -> None:
        self._guard, self._place, self._project = guard, place, project
        self._scratch, self._head, self._rules = scratch, head, rules

    def all(self, works: Sequence[TaskWork]) -> Iterator[ForeseenConflict]:
        trees: dict[str, str] = {}
        changed: dict[str, frozenset[bytes]] = {}
        for work in works:
            merged = self._merge(work, self._head)
            if merged.tree is None:
                yield _conflict((work,), merged)
            else:
                trees[work.task_id] = merged.tree
                changes = list_changes(self._project, self._head, merged.tree)
                changed[work.task_id] = frozenset(change.path for change in changes)
        pairs = (
            pair
            for pair in combinations([work for work in works if work.task_id in trees], 2)
            if _meet(changed[pair[0].task_id], changed[pair[1].task_id])
        )
        for one, other in islice(pairs, _MOST_PAIRS):
            merged = self._merge(other, trees[one.task_id])
            if merged.tree is None:
                yield _conflict((one, other), merged)

    def _merge(self, work: TaskWork, onto: str) -> MergedTask:
        # Each merge has the time that git is given for one rollback.
        project = replace(self._project, deadline=self._place.project().deadline)
        return merge_task(self._guard, project, self._scratch, work, onto, self._head, self._rules)


def _meet(these: frozenset[bytes], others: frozenset[bytes]) -> bool:
    """Tell whether two changes have a path in common, or one has a file where the other has a folder."""
    if not these.isdisjoint(others):
        return True
    return any(
        path.startswith(other + b"/") or other.startswith(path + b"/")
        for path in these
        for other in others
    )


def _conflict(works: Sequence[TaskWork], merged: MergedTask) -> ForeseenConflict:
    return ForeseenConflict(
        tasks=tuple(work.task_id for work in works),
        paths=tuple(path_line(path) for path in merged.conflicts[:_MOST_PATHS]),
        detail=merged.detail,
    )
