"""Make the commits by which tasks land, one upon the other; no ref names them yet."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from guard.context.invocation import Invocation
from guard.core.base.paths import spell
from guard.core.coordinator.landing_events import LandingCommit
from guard.core.landing.message import landing_message
from guard.landing.merge import MergedTask, MergeRules, merge_task
from guard.landing.work import KEPT_REFS, TaskWork, subjects_of
from guard.rescue.changes import list_changes
from guard.rescue.commits import Committer
from guard.rollback.merge import tree_of
from guard.rollback.place import RollbackPlace
from guard.snapshots.project import Project
from guard.snapshots.shadow import scratch_folder

_MOST_FILES = 1000
_MOST_SUBJECTS = 60


@dataclass(frozen=True)
class MergeRefusal:
    """A task that cannot be merged with the target as it stands."""

    work: TaskWork
    merged: MergedTask


@dataclass(frozen=True)
class CommitChain:
    """What was made of some tasks: commits upon the target's tip, and the tasks that are not among them."""

    head: str
    commits: tuple[LandingCommit, ...] = ()
    works: tuple[TaskWork, ...] = ()
    found: tuple[TaskWork, ...] = ()
    """Those whose work the target has already."""
    refused: tuple[MergeRefusal, ...] = ()
    deferred: tuple[TaskWork, ...] = ()
    """Those that conflict with another task of the chain: they are tried again once that has landed."""
    unsigned: str = ""

    @property
    def to_sha(self) -> str:
        return self.commits[-1].commit_sha if self.commits else self.head


class ChainMaker:
    """Makes commits for a landing; in a dry run not even an object is written to the repository."""

    def __init__(
        self, guard: Invocation, place: RollbackPlace, rules: MergeRules, *, dry: bool
    ) -> None:
        self._guard, self._place, self._rules, self._dry = guard, place, rules, dry

    def make(self, head: str, works: Sequence[TaskWork]) -> CommitChain:
        chain = CommitChain(head)
        with self._project() as (project, scratch):
            for work in works:
                # Each task has the time that git is given for one rollback.
                own = replace(project, deadline=self._place.project().deadline)
                chain = self._add(own, scratch, chain, work)
        return chain

    @contextmanager
    def _project(self) -> Iterator[tuple[Project, Path]]:
        with scratch_folder(self._place.workspace) as folder:
            own = self._place.project().with_index(folder / "index")
            yield own.with_object_folder(folder / "objects") if self._dry else own, folder

    def _add(
        self, project: Project, scratch: Path, chain: CommitChain, work: TaskWork
    ) -> CommitChain:
        onto = chain.to_sha
        merged = merge_task(self._guard, project, scratch, work, onto, chain.head, self._rules)
        if merged.tree is None or merged.base is None:
            if chain.commits:
                return replace(chain, deferred=(*chain.deferred, work))
            return replace(chain, refused=(*chain.refused, MergeRefusal(work, merged)))
        before = tree_of(project, onto)
        if merged.tree == before:
            if chain.commits:
                return replace(chain, deferred=(*chain.deferred, work))
            return replace(chain, found=(*chain.found, work))
        names = [spell(change.path) for change in list_changes(project, before, merged.tree)]
        subjects = subjects_of(project, work, merged.base, _MOST_SUBJECTS)
        message = landing_message(work.task_id, work.title, work.tip, subjects, names)
        mode = "squash" if merged.is_part else self._rules.settings.mode
        committer = Committer(project, self._place.shadow, work.task_id, 0)
        parents = (onto, work.tip) if mode == "merge" else (onto,)
        made = committer.commit(merged.tree, parents, message)
        landing = LandingCommit(
            task_id=work.task_id,
            tip=work.tip,
            commit_sha=made,
            base_sha=onto,
            kept_ref=f"{KEPT_REFS}{work.task_id}/{work.tip[:12]}",
            branch=work.branch,
            mode=mode,
            files=tuple(names[:_MOST_FILES]),
        )
        return replace(
            chain,
            commits=(*chain.commits, landing),
            works=(*chain.works, work),
            unsigned=chain.unsigned or committer.unsigned,
        )
