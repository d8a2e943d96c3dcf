"""Land tasks that passed their audit: merged, proven, and put on the target branch."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from guard.context.invocation import Invocation
from guard.coordinator.plan import plan_path
from guard.coordinator.record import change_state, decision_terms, require_state
from guard.core.base.paths import path_line
from guard.core.base.text import is_id, utf8_text
from guard.core.coordinator.landing_events import LandingRefusalReason, LandingRefused, TaskLanded
from guard.core.coordinator.requests import Draft
from guard.core.coordinator.state import Coordinator
from guard.core.coordinator.task_events import AgentSeeksGuidance, CoordinatorEvent
from guard.core.landing.report import LandingOutcome, LandingReport, TaskLanding
from guard.errors import Refused, StoreUnavailable
from guard.landing.branches import delete_branch
from guard.landing.chain import ChainMaker, CommitChain
from guard.landing.foresee import foresee
from guard.landing.merge import MergeRules
from guard.landing.move import TargetMoved, has_landed, move_target, path_names, settle_announced
from guard.landing.proof import LandingProof, prove_chain
from guard.landing.target import HEADS, LandingTarget, find_target, open_target
from guard.landing.work import TaskWork, find_work, has_commits
from guard.rollback.place import RollbackPlace, lock_rollbacks
from guard.rollback.prepare import RollbackStopped
from guard.rollback.recover import settle_all
from guard.rollback.rollback import rollback_place

_ATTEMPTS = 20
_MOST_DETAIL = 20_000
_MOST_PATHS = 100


def land(
    guard: Invocation,
    tasks: Sequence[str] | None = None,
    target: str | None = None,
    *,
    dry: bool = False,
) -> LandingReport:
    """Land the named tasks, by default all that passed their audit, in the order in which they passed.

    A task that conflicts with the target, or whose merge is refuted, goes back to an agent; what a person has to decide
    stays as it is, and the report says so. Nothing lands twice, also when guard is killed in the middle.
    """
    require_state(guard)
    place = rollback_place(guard)
    with lock_rollbacks(place.workspace):
        settle_all(place)
        settle_announced(guard, place)
    report = _Lander(guard, place, _open(guard, place, target, dry=dry), dry=dry).land(tasks)
    return report.model_copy(update={"foreseen": foresee(guard, target)}) if dry else report


def _open(
    guard: Invocation, place: RollbackPlace, target: str | None, *, dry: bool
) -> LandingTarget:
    if not dry:
        return open_target(guard, target)
    project = place.project()
    found = find_target(guard, target, project)
    return LandingTarget(found.ref, found.head or project.commit_of("HEAD"), found.is_named)


@dataclass
class _Lander:
    """Lands tasks one batch after the other."""

    guard: Invocation
    place: RollbackPlace
    target: LandingTarget
    dry: bool
    tasks: dict[str, TaskLanding] = field(default_factory=dict)

    def land(self, names: Sequence[str] | None) -> LandingReport:
        head = self.target.head
        works = self._choose(names)
        if works and head is not None:
            state = require_state(self.guard)
            settings = self.guard.users_config.settings.landing
            rules = MergeRules(settings, plan_path(self.guard, state.plan_file))
            self._maker = ChainMaker(self.guard, self.place, rules, dry=self.dry)
            self._land(works)
        after = head if self.dry else self.place.project().commit_of(self.target.ref)
        landed = sum(task.outcome == "landed" for task in self.tasks.values())
        return LandingReport(
            target=self.target.ref,
            head=head,
            to_sha=after,
            dry_run=self.dry,
            landed=landed,
            tasks=tuple(self.tasks.values()),
        )

    def _choose(self, names: Sequence[str] | None) -> list[TaskWork]:
        """Return what is to land; tasks that cannot are reported at once."""
        state = require_state(self.guard)
        if names is None:
            ids = [task_id for task_id in state.completed_tasks if task_id in state.task_commits]
        else:
            wanted = {_id_of(state, name) for name in names}
            ids = [task_id for task_id in state.completed_tasks if task_id in wanted]
            for task_id in sorted(wanted - set(ids)):
                self._tell(task_id, "not_audited", _place_text(state, task_id))
        works: list[TaskWork] = []
        for task_id in ids:
            work = find_work(state, task_id)
            if work is None:
                self._tell(task_id, "nothing_to_land")
            elif has_landed(state, task_id, work.tip, self.target.ref):
                if names is not None:
                    self._tell_landed_before(state, task_id)
                self._clean_up(state, task_id)
            elif state.task_commits[task_id].shared_with and not self._has_tip(work):
                self._tell_shared(state, work)
            else:
                works.append(work)
        return works

    def _has_tip(self, work: TaskWork) -> bool:
        head = self.target.head
        return head is not None and has_commits(self.place.project(), head, [work.tip])

    def _tell_shared(self, state: Coordinator, work: TaskWork) -> None:
        others = state.task_commits[work.task_id].shared_with
        named = ", ".join(state.task_name(task_id) for task_id in others[:_MOST_PATHS])
        detail = f"its commits lie among those of {named}, and nothing tells whose they are; merge them yourself"
        self._tell(work.task_id, "not_ready", detail, tip=work.tip, asks_person=True)

    def _tell_landed_before(self, state: Coordinator, task_id: str) -> None:
        landed = state.landed_tasks[task_id]
        more: dict[str, Any] = {
            "commit": landed.commit_sha,
            "tip": landed.tip,
            "kept_ref": landed.kept_ref,
        }
        self._tell(task_id, "already_landed", **more)

    def _clean_up(self, state: Coordinator, task_id: str) -> None:
        """Delete the branch of a task that landed before: it may have been checked out then."""
        landed = state.landed_tasks[task_id]
        if landed.kept_ref is None or self.dry:
            return
        branch = f"{HEADS}guard/task/{task_id}"
        why = delete_branch(self.place.project(), branch, landed.tip)
        if why and task_id in self.tasks:
            kept = {"kept_branch": branch, "detail": why}
            self.tasks[task_id] = self.tasks[task_id].model_copy(update=kept)

    def _land(self, works: Sequence[TaskWork]) -> None:
        """Land these tasks as one batch, halved if it is refuted; those that conflict within it come after it."""
        for _ in range(_ATTEMPTS):
            chain = self._maker.make(self._head(), works)
            try:
                self._land_chain(chain)
            except TargetMoved:
                works = self._still_to_land(works)
                if not works:
                    return
                continue
            if chain.deferred:
                self._land(chain.deferred)
            return
        raise StoreUnavailable(f"{self.target.ref} keeps moving, so nothing can land", "try again")

    def _head(self) -> str:
        head = self.target.head if self.dry else self.place.project().commit_of(self.target.ref)
        assert head is not None
        return head

    def _still_to_land(self, works: Sequence[TaskWork]) -> list[TaskWork]:
        """Return those that no other process has landed or taken back meanwhile."""
        state = require_state(self.guard)
        left: list[TaskWork] = []
        for work in works:
            now = find_work(state, work.task_id)
            if work.task_id not in state.completed_tasks or now is None:
                self._tell(work.task_id, "not_audited", _place_text(state, work.task_id))
            elif has_landed(state, work.task_id, now.tip, self.target.ref):
                self._tell_landed_before(state, work.task_id)
            elif work.task_id not in self.tasks:
                left.append(now)
        return left

    def _land_chain(self, chain: CommitChain) -> None:
        for refusal in chain.refused:
            merged = refusal.merged
            paths = merged.conflicts
            detail = merged.detail or "the merge failed"
            self._refuse(refusal.work, "conflict", detail, paths, chain.head)
        for work in chain.found:
            self._record_found(work, chain.head)
        if not chain.commits:
            return
        if self.dry:
            for landing in chain.commits:
                self._tell(landing.task_id, "planned", tip=landing.tip)
            return
        proof = prove_chain(self.guard, chain)
        if proof.lands:
            self._move(chain)
        elif len(chain.works) > 1:
            self._land_halves(chain.works)
        else:
            self._report_unproven(chain.works[0], proof, chain.head)

    def _land_halves(self, works: Sequence[TaskWork]) -> None:
        middle = len(works) // 2
        self._land(works[:middle])
        self._land(works[middle:])

    def _report_unproven(self, work: TaskWork, proof: LandingProof, head: str) -> None:
        if proof.result == "refuted":
            self._refuse(work, "refuted", proof.detail, (), head)
        elif proof.result == "review":
            self._tell(work.task_id, "review", proof.detail, tip=work.tip, asks_person=True)
        else:
            self._tell(work.task_id, "unverifiable", proof.detail, tip=work.tip, asks_person=True)

    def _move(self, chain: CommitChain) -> None:
        try:
            with lock_rollbacks(self.place.workspace) as lock:
                settle_all(self.place)
                settle_announced(self.guard, self.place)
                move_target(self.guard, self.place, self.target, chain, lock)
        except RollbackStopped as error:
            if error.paths and len(chain.works) > 1:
                # A file of a person's is in the way of some of them, and no reason to hold back the others.
                self._land_halves(chain.works)
                return
            detail = f"{error.message} ({error.hint})" if error.hint else error.message
            for work in chain.works:
                more: dict[str, Any] = {"tip": work.tip, "paths": error.paths, "asks_person": True}
                self._tell(work.task_id, "not_ready", detail, **more)
            return
        if chain.unsigned:
            self.guard.output.warn(f"the commits are not signed: {chain.unsigned}")
        project = self.place.project()
        for landing in chain.commits:
            branch = f"{HEADS}guard/task/{landing.task_id}"
            kept = project.commit_of(branch) is not None
            why = delete_branch(project, branch, landing.tip) if kept else ""
            self._tell(
                landing.task_id,
                "landed",
                why or "",
                commit=landing.commit_sha,
                tip=landing.tip,
                kept_ref=landing.kept_ref,
                kept_branch=branch if why else None,
            )

    def _record_found(self, work: TaskWork, head: str) -> None:
        """Record a task whose work the target has: it is in the history there, or a person has brought it."""
        if not self.dry:
            terms = decision_terms(self.guard, None)
            landed = partial(
                TaskLanded,
                task_id=work.task_id,
                target=self.target.ref,
                tip=work.tip,
                commit_sha=head,
                kept_ref=None,
                mode="found",
            )

            def record(state: Coordinator) -> tuple[CoordinatorEvent, ...]:
                return terms.events([landed]) if work.task_id in state.completed_tasks else ()

            change_state(self.guard, terms, record, None)
        self._tell(work.task_id, "already_landed", commit=head, tip=work.tip)

    def _refuse(
        self,
        work: TaskWork,
        reason: LandingRefusalReason,
        detail: str,
        paths: Sequence[bytes],
        head: str,
    ) -> None:
        """Send the task back to an agent; after several times ask a person as well."""
        asks = False
        limit = self.guard.users_config.settings.landing.attempts
        refused = partial(
            LandingRefused,
            task_id=work.task_id,
            target=self.target.ref,
            reason=reason,
            detail=utf8_text(detail)[:_MOST_DETAIL],
            paths=path_names(paths),
            head=head,
        )
        terms = decision_terms(self.guard, None)

        def refuse(state: Coordinator) -> tuple[CoordinatorEvent, ...]:
            nonlocal asks
            if work.task_id not in state.completed_tasks:
                return ()
            drafts: list[Draft] = [refused]
            before = state.landing_setbacks.get(work.task_id)
            asks = (before.attempts if before else 0) >= limit
            if asks:
                drafts.append(_question(state, work, reason, detail, self.target.ref))
            return terms.events(drafts)

        if not self.dry:
            change_state(self.guard, terms, refuse, None)
        self._tell(
            work.task_id,
            reason,
            detail,
            tip=work.tip,
            paths=tuple(path_line(path) for path in paths[:_MOST_PATHS]),
            reopened=not self.dry,
            asks_person=asks,
        )

    def _tell(self, task_id: str, outcome: LandingOutcome, detail: str = "", **more: Any) -> None:
        fields = {
            "task_id": task_id,
            "outcome": outcome,
            "detail": utf8_text(detail)[:_MOST_DETAIL],
            "paths": (),
            "commit": None,
            "tip": None,
            "kept_ref": None,
            "kept_branch": None,
            "reopened": False,
            "asks_person": False,
            **more,
        }
        self.tasks[task_id] = TaskLanding.model_validate(fields)


def _question(
    state: Coordinator, work: TaskWork, reason: LandingRefusalReason, detail: str, target: str
) -> Draft:
    branch = target.removeprefix(HEADS)
    words = "conflicts with" if reason == "conflict" else "fails the project's own checks on"
    text = f"Task {work.name} {words} {branch} again and again. What is to be done? {detail}"
    return partial(
        AgentSeeksGuidance,
        question_id=state.new_name("question"),
        agent_id=None,
        task_id=work.task_id,
        question=utf8_text(text)[:_MOST_DETAIL],
        about="landing",
    )


def _id_of(state: Coordinator, word: str) -> str:
    found = next((task.id for task in state.tasks if word in (task.id, task.name)), word)
    if not is_id(found) or (state.task(found) is None and found not in state.completed_tasks):
        hint = "`guard plan show` lists the tasks"
        raise Refused(f"the plan has no task {utf8_text(word)[:200]}", hint)
    return found


def _place_text(state: Coordinator, task_id: str) -> str:
    place = state.place(task_id)
    return f"it is {place.replace('_', ' ')}" if place else "it is not in the plan"
