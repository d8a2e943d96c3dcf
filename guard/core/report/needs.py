"""Say what only a person can do now: what is open after the newest iteration of each work tree, and in the plan."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from shlex import quote
from typing import get_args

from guard.core.breaker.state import Breaker
from guard.core.coordinator.state import Coordinator
from guard.core.report.document import HeldBackEntry, NeedKind, ReportNeed
from guard.core.report.night import IterationFacts

_ORDER: tuple[NeedKind, ...] = get_args(NeedKind)
_MOST_NAMES = 5
_LOGINS = {
    "claude": "claude /login",
    "codex": "codex login",
    "gemini": "gemini",
    "qwen": "qwen",
    "opencode": "opencode auth login",
    "copilot": "copilot",
}
_RESUMES = {"claude": "claude --resume", "codex": "codex resume", "opencode": "opencode --session"}
_BLOCKS: dict[str, NeedKind] = {"denied": "denied", "auth": "auth"}


@dataclass(frozen=True)
class WorktreePaths:
    """Where the work trees are, so that a command can name the one that it is for."""

    here: str | None = None
    """The key of the work tree that the report is made in."""
    plan: str | None = None
    """The key of the breaker that all agents of the plan share."""
    paths: Mapping[str, str] = field(default_factory=dict)

    def command(self, worktree: str, words: str) -> str:
        """Return a command of guard for this work tree."""
        path = self.paths.get(worktree)
        if worktree == self.here or path is None:
            return f"guard {words}"
        return f"guard --repo {quote(path)} {words}"


def list_needs(
    iterations: Sequence[IterationFacts],
    breakers: Mapping[str, Breaker],
    plan: Coordinator | None,
    held_back: Sequence[HeldBackEntry],
    places: WorktreePaths,
) -> tuple[ReportNeed, ...]:
    """Return what needs a person, the most urgent first."""
    needs = [
        *_of_plan(plan),
        *_of_iterations(iterations, places),
        *(need for key, state in breakers.items() for need in _of_breaker(key, state, places)),
        *_of_files(held_back, places),
    ]
    return tuple(sorted(needs, key=lambda need: _ORDER.index(need.kind)))


def _of_plan(plan: Coordinator | None) -> Iterator[ReportNeed]:
    if plan is None:
        return
    for question in plan.pending_divine_questions:
        if question.response is None:
            about = f"task {plan.task_name(question.task_id)}: " if question.task_id else ""
            yield ReportNeed(
                kind="landing" if question.about == "landing" else "question",
                text=f"{about}{question.question}",
                command=f"guard plan answer {question.question_id} TEXT",
                at=question.asked_at,
                run=None,
                iteration=None,
                task_id=question.task_id,
            )
    if plan.infrastructure_blocked:
        yield ReportNeed(
            kind="question",
            text=f"the infrastructure is not healthy: {plan.infrastructure_issue or 'unknown'}",
            command="guard plan show",
            at=None,
            run=None,
            iteration=None,
            task_id=None,
        )


def _blocked(iterations: Iterable[IterationFacts]) -> dict[str, IterationFacts]:
    """Return, by work tree, the iterations that wait for a person."""
    blocked: dict[str, IterationFacts] = {}
    for each in iterations:
        if each.status == "blocked":
            blocked[each.worktree] = each
        elif each.status not in (None, "limited"):
            blocked.pop(each.worktree, None)
    return {key: each for key, each in blocked.items() if each.answer is None}


def _kind(each: IterationFacts) -> NeedKind:
    kind = _BLOCKS.get(each.outcome, "question")
    return _BLOCKS.get(each.reason, kind)


def open_questions(iterations: Iterable[IterationFacts]) -> list[tuple[IterationFacts, str]]:
    """Return the iterations that ended with a question that the user has not answered, each with its words."""
    waiting = [each for each in _blocked(iterations).values() if _kind(each) == "question"]
    return [(each, _words(each, "question")) for each in waiting]


def _of_iterations(
    iterations: Sequence[IterationFacts], places: WorktreePaths
) -> Iterator[ReportNeed]:
    refuted: dict[str, IterationFacts] = {}
    for each in iterations:
        if each.status == "refuted":
            refuted[each.worktree] = each
        elif each.status == "complete":
            refuted.pop(each.worktree, None)
    for each in _blocked(iterations).values():
        kind = _kind(each)
        yield _need(each, kind, _words(each, kind), _command(each, kind, places))
    for each in refuted.values():
        detail = (each.proof.detail if each.proof is not None else "") or each.detail
        yield _need(each, "refuted", f"the work was refuted: {detail}", show_command(each, places))


def _need(each: IterationFacts, kind: NeedKind, text: str, command: str) -> ReportNeed:
    return ReportNeed(
        kind=kind,
        text=text,
        command=command,
        at=each.ended or each.began,
        run=each.run,
        iteration=each.number,
        task_id=each.task,
    )


def _words(each: IterationFacts, kind: NeedKind) -> str:
    own = " ".join((each.words or each.detail or each.reason).split())
    if kind == "denied":
        tools = f": {', '.join(each.denied)}" if each.denied else ""
        return f"a tool was denied{tools}; {own}"
    return own


def show_command(each: IterationFacts, places: WorktreePaths) -> str:
    return places.command(each.worktree, f"show {each.number} --run {each.run}")


def _command(each: IterationFacts, kind: NeedKind, places: WorktreePaths) -> str:
    agent = each.agent or ""
    if kind == "auth":
        return _LOGINS.get(agent) or show_command(each, places)
    if agent in _RESUMES and each.session:
        return f"{_RESUMES[agent]} {quote(each.session)}"
    return show_command(each, places)


def _of_breaker(key: str, state: Breaker, places: WorktreePaths) -> Iterator[ReportNeed]:
    if state.state == "closed":
        return
    until = f"; a trial from {state.retry_at:%Y-%m-%d %H:%M} UTC on" if state.retry_at else ""
    whose = "" if key == places.here else f" of {places.paths.get(key, 'another work tree')}"
    words = "breaker reset"
    if key == places.plan:
        whose, words = " of the plan", "breaker reset --plan"
    yield ReportNeed(
        kind="breaker",
        text=f"the breaker{whose} is {state.state.replace('_', ' ')}: {state.reason}{until}",
        command=places.command(key, words),
        at=state.opened_at,
        run=None,
        iteration=None,
        task_id=None,
    )


def _of_files(held_back: Sequence[HeldBackEntry], places: WorktreePaths) -> Iterator[ReportNeed]:
    groups: dict[tuple[str, int], list[HeldBackEntry]] = {}
    for entry in held_back:
        groups.setdefault((entry.run, entry.iteration), []).append(entry)
    for (run, number), entries in groups.items():
        names = [f"{entry.path} ({entry.why})" for entry in entries[:_MOST_NAMES]]
        names += [f"and {len(entries) - len(names)} more"] if len(entries) > len(names) else []
        yield ReportNeed(
            kind="held_back",
            text=f"not committed by the rescue: {', '.join(names)}",
            command=entries[0].restore
            or places.command(entries[0].worktree, f"show {number} --run {run}"),
            at=None,
            run=run,
            iteration=number,
            task_id=None,
        )
