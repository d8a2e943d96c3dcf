"""Who is at work, among agents whose truth is known, beside what the age of a status file says."""

from collections.abc import Iterator, Sequence

from benchmarks.fleet.monitor import Rules
from benchmarks.fleet.outcome import Outcome, Score, false_alarms_of_a_late_one, total, watched
from benchmarks.measure import Row, none_of

AGENTS = 336
SEED = 1


def rows(agents: int = AGENTS, seed: int = SEED) -> Iterator[Row]:
    found = watched(agents, seed)
    own, by_status = (total([getattr(one, name) for one in found]) for name in _SCORES)
    about = f"of {len(found)} agents over two days, seed {seed}"
    yield none_of(
        f"prompts to agents that lived, {about}",
        sum(one.disturbed for one in found),
        f"is_active: {_figures(own)}; by the age of status.json: {_figures(by_status)}",
    )
    dead = [one for one in found if one.dies < float("inf")]
    taught, untaught = (
        false_alarms_of_a_late_one(seed, Rules(learns=one)) for one in (True, False)
    )
    yield none_of(
        f"dead agents that were sent none within their window, {about}",
        sum(one.is_missed for one in dead),
        f"{len(dead)} died; one whose work is always seen too late is disturbed {taught} times, "
        f"without learning {untaught} times",
        below=by_kind(found),
    )


_SCORES = ("own", "by_status")


def _figures(score: Score) -> str:
    return f"precision {score.precision:.3f}, recall {score.recall:.3f}"


def by_kind(found: Sequence[Outcome]) -> str:
    """How often each kind was rightly or wrongly said to be at work, by guard and by the age of the status file."""
    lines = [
        "| the truth | said rightly | said wrongly | missed | by age: rightly | wrongly | missed |",
        "|---|---|---|---|---|---|---|",
    ]
    for kind in dict.fromkeys(one.kind for one in found):
        scores = [
            total([getattr(one, name) for one in found if one.kind == kind]) for name in _SCORES
        ]
        cells = [count for one in scores for count in (one.right, one.wrong, one.missed)]
        lines.append(f"| {kind} | {' | '.join(map(str, cells))} |")
    return "\n".join(lines)
