"""Make the review queue: what to look at, what to look at first, and how to take it back."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from itertools import islice
from shlex import quote
from typing import Literal

from guard.core.base.text import plural
from guard.core.coordinator.state import Coordinator
from guard.core.prove.file_roles import FileRoles
from guard.core.prove.summary import ProofSummary
from guard.core.report.document import ChangedTests, CommitEntry, DiffStat, ReviewItem
from guard.core.report.needs import WorktreePaths
from guard.core.report.night import IterationFacts

_MOST_NAMES = 20
_SHORT = 12
_SIGNS = {"added": "+", "changed": "~", "removed": "-"}


@dataclass(frozen=True, slots=True)
class FileStat:
    """What a commit does to one file; the lines of a file that is no text are not counted."""

    path: str
    kind: Literal["added", "changed", "removed"]
    insertions: int = 0
    deletions: int = 0


@dataclass(frozen=True, slots=True)
class CommitFacts:
    """What git tells of a commit."""

    oid: str
    parents: tuple[str, ...]
    author: str
    at: datetime
    subject: str
    files: tuple[FileStat, ...]

    @property
    def is_merge(self) -> bool:
        return len(self.parents) > 1


def list_commits(
    iterations: Iterable[IterationFacts], known: Mapping[str, CommitFacts]
) -> tuple[CommitEntry, ...]:
    """Return the commits that the checks counted and the rescues made, each once, in order."""
    found: dict[str, CommitEntry] = {}
    for each in iterations:
        made = {line.oid: line for line in reversed(each.mentions)}
        for oid in dict.fromkeys((*made, *each.rescued)):
            if oid in found:
                continue
            line, facts = made.get(oid), known.get(oid)
            subject = line.subject if line is not None else ""
            found[oid] = CommitEntry(
                oid=oid,
                subject=facts.subject if facts is not None else subject,
                author=facts.author if facts is not None else None,
                at=facts.at if facts is not None else None,
                branch=line.branch if line is not None else None,
                run=each.run,
                iteration=each.number,
                task_id=each.task,
                by="rescue" if oid in each.rescued else "agent",
                diff=diff_stat((facts,)) if facts is not None and not facts.is_merge else None,
            )
    return tuple(found.values())


def diff_stat(commits: Sequence[CommitFacts]) -> DiffStat:
    """Return what the commits change together; a file that several change counts once."""
    files = {change.path: change for each in commits for change in each.files}
    tests = [(path, change.kind) for path, change in files.items() if _is_test(path)]
    kinds = Counter(kind for _, kind in tests)
    return DiffStat(
        files=len(files),
        insertions=sum(change.insertions for each in commits for change in each.files),
        deletions=sum(change.deletions for each in commits for change in each.files),
        tests=ChangedTests(
            added=kinds["added"],
            changed=kinds["changed"],
            removed=kinds["removed"],
            names=tuple(f"{_SIGNS[kind]} {path}" for path, kind in islice(tests, _MOST_NAMES)),
        ),
    )


_ROLES = FileRoles()


@cache
def _is_test(path: str) -> bool:
    return _ROLES.role(path) == "test"


def list_review(
    iterations: Sequence[IterationFacts],
    commits: Sequence[CommitEntry],
    plan: Coordinator | None,
    known: Mapping[str, CommitFacts],
    places: WorktreePaths,
    covers: Callable[[datetime], bool],
) -> tuple[ReviewItem, ...]:
    """Return what to look at: what has a reason to be looked at first, then all else in order."""
    by_place = {(each.run, each.number): each for each in iterations}
    tasks = list(_task_items(iterations, plan, known, covers)) if plan is not None else []
    of_tasks = {item.task_id for item in tasks}
    single = [entry for entry in commits if entry.task_id is None or entry.task_id not in of_tasks]
    shared = Counter((entry.run, entry.iteration) for entry in single)
    items = tasks + [
        _commit_item(
            entry,
            by_place[entry.run, entry.iteration],
            known.get(entry.oid),
            shared[entry.run, entry.iteration],
            places,
        )
        for entry in single
    ]
    return tuple(sorted(items, key=_rank))


def _task_items(
    iterations: Sequence[IterationFacts],
    plan: Coordinator,
    known: Mapping[str, CommitFacts],
    covers: Callable[[datetime], bool],
) -> Iterator[ReviewItem]:
    for task in plan.tasks:
        landed, recorded = plan.landed_tasks.get(task.id), plan.task_commits.get(task.id)
        mine = [each for each in iterations if each.task == task.id]
        oids: tuple[str, ...]
        if landed is not None:
            oids, at = (landed.commit_sha,), landed.landed_at
        elif recorded is not None:
            oids, at = recorded.commits or (recorded.commit_sha,), recorded.completed_at
        else:
            continue
        if not mine and not covers(at):
            continue
        facts = [known[oid] for oid in oids if oid in known]
        diff = diff_stat(facts) if facts and not any(each.is_merge for each in facts) else None
        proof = next((each.proof for each in reversed(mine) if each.proof is not None), None)
        costs = [each.usage.cost_usd for each in mine if each.usage.cost_usd is not None]
        yield ReviewItem(
            kind="task",
            title=f"{task.name} {task.title}" if task.title != task.name else task.name,
            oids=oids,
            run=mine[-1].run if mine else None,
            iteration=mine[-1].number if mine else None,
            task_id=task.id,
            diff=diff,
            proof=proof,
            cost_usd=round(sum(costs), 12) if costs else None,
            shared_by=1,
            look_first=tuple(_reasons("task", diff, proof)),
            undo=f"guard rollback {plan.quoted_task_name(task.id)}",
        )


def _commit_item(
    entry: CommitEntry,
    each: IterationFacts,
    facts: CommitFacts | None,
    shared: int,
    places: WorktreePaths,
) -> ReviewItem:
    kind: Literal["commit", "rescue"] = "rescue" if entry.by == "rescue" else "commit"
    path = places.paths.get(each.worktree)
    where = f" -C {quote(path)}" if path is not None and each.worktree != places.here else ""
    parent = " -m 1" if facts is not None and facts.is_merge else ""
    return ReviewItem(
        kind=kind,
        title=entry.subject,
        oids=(entry.oid,),
        run=entry.run,
        iteration=entry.iteration,
        task_id=entry.task_id,
        diff=entry.diff,
        proof=each.proof,
        cost_usd=each.usage.cost_usd,
        shared_by=shared,
        look_first=tuple(_reasons(kind, entry.diff, each.proof)),
        undo=f"git{where} revert{parent} {entry.oid[:_SHORT]}",
    )


def _reasons(kind: str, diff: DiffStat | None, proof: ProofSummary | None) -> Iterator[str]:
    result = proof.result if proof is not None else None
    if proof is not None and result == "review":
        yield f"tests were rewritten: {proof.detail}"
    if proof is not None and result == "refuted":
        yield f"refuted: {proof.detail}"
    if diff is not None and diff.tests.removed:
        yield f"{plural(diff.tests.removed, 'test file')} removed"
    if kind == "rescue":
        yield "committed by guard's rescue, not by the agent"
    if proof is not None and result == "unverifiable":
        yield f"not proven: {proof.detail}"


_RANKS = ("tests were", "refuted", "", "committed", "not proven")


def _rank(item: ReviewItem) -> int:
    if not item.look_first:
        return len(_RANKS)
    first = item.look_first[0]
    return next((at for at, word in enumerate(_RANKS) if word and first.startswith(word)), 2)
