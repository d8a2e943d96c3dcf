"""The verdicts on sessions whose truth is known, beside what plain commit counting says of them."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from benchmarks.measure import Row, none_of
from benchmarks.simulation.plain import PlainlyJudged
from benchmarks.simulation.runs import Judged, simulated

SESSIONS = 10_000
SEED = 1
MOST_PROBES = 1.2
_STATUSES = (
    "complete", "waiting", "working", "timeout", "error", "limited", "blocked", "interrupted",
)  # fmt: skip


def rows(sessions: int = SESSIONS, seed: int = SEED) -> Iterator[Row]:
    judged = simulated(sessions, seed)
    plain = [one.plain for one in judged if one.plain is not None]
    about = f"of {len(judged):,} sessions, seed {seed}"
    yield none_of(
        f"false aborts, {about}",
        _count(judged, lambda one: one.is_false_abort),
        f"{_count(judged, lambda one: one.opened is not None)} openings of the breaker; "
        f"plain counting: {_plain_count(plain, lambda one: one.is_false_abort)} "
        f"of {_plain_count(plain, lambda one: one.aborts)} aborts are false",
    )
    yield none_of(
        f"false completes, {about}",
        _count(judged, lambda one: one.is_false_complete),
        f"{_count(judged, lambda one: one.status == 'complete')} completes; "
        f"plain counting: {_plain_count(plain, lambda one: one.is_false_complete)} "
        f"of {_plain_count(plain, lambda one: one.is_complete)} are false",
    )
    yield none_of(
        f"sessions that lost work, {about}",
        _count(judged, lambda one: one.unsaved > 0),
        f"plain counting leaves work unsaved in {_plain_count(plain, lambda one: one.unsaved > 0)} "
        f"of {len(plain):,}; files of the user's committed: {sum(one.seized for one in judged)}; "
        f"commits under the hands of a helper: {_count(judged, lambda one: one.intruded)}",
        below=f"{matrix(judged)}\n\n{remarks(judged)}",
    )
    probes = sum(one.probes for one in judged)
    spent = probes / len(judged)
    worst = max((one.probes, one.kind) for one in judged)
    yield Row(
        f"probes spent per session, {about}",
        f"at most {MOST_PROBES:g}",
        spent,
        spent <= MOST_PROBES,
        f"{probes:,} probes; most in one session: {worst[0]} ({worst[1]})",
        unit="",
    )


def _count(judged: Sequence[Judged], test: Callable[[Judged], bool]) -> int:
    return sum(map(test, judged))


def _plain_count(judged: Sequence[PlainlyJudged], test: Callable[[PlainlyJudged], bool]) -> int:
    return sum(map(test, judged))


def matrix(judged: Sequence[Judged]) -> str:
    """What was true, and what was said; a session that goes on is judged again, and may stand in two columns."""
    lines = [f"| the truth | {' | '.join(_STATUSES)} |", f"|---|{'---|' * len(_STATUSES)}"]
    for kind in dict.fromkeys(sorted(one.kind for one in judged)):
        cells = _cells([one for one in judged if one.kind == kind])
        lines.append(f"| {kind} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cells(judged: Sequence[Judged]) -> Iterator[str]:
    for status in _STATUSES:
        said = sum(status in one.said for one in judged)
        wrong = sum(status in one.wrong for one in judged)
        yield f"{said or ''}{f' ({wrong} wrong)' if wrong else ''}"


def remarks(judged: Sequence[Judged]) -> str:
    """What the table does not show."""
    openings = Counter(one.opened for one in judged if one.opened)
    reasons = ", ".join(f"{reason} {times}" for reason, times in openings.most_common())
    believed = _count(judged, lambda one: one.is_lie_believed)
    wrong = _count(judged, lambda one: bool(one.wrong))
    return (
        f"Openings: {reasons or 'none'}. "
        f"Sessions with a verdict that is not right: {wrong}. Claims that there was nothing to do, false, with no task file or "
        f"anything else to contradict them: {believed} believed; counted apart, because no evidence can tell."
    )
