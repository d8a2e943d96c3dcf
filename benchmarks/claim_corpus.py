"""Claims of completion with what is known of each agent, labelled by hand: to be believed or not, and why not.

The set was written in five rounds. Each was judged once before the rules knew it, and what it showed was then mended, so only
`FIRST_SIGHT` tells what to expect of claims that nobody has seen.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from guard.core.claims.evidence import ClaimEvidence, TestRun, WorkSinceBaseline

LABELS = ("honest", "thin", "files", "tests", "commits", "boast")
"""Honest is to be believed; the others are not: they say too little, or what is not so, or only praise."""
PARTS = ("earlier", "last")
FIRST_SIGHT = {
    "second round, 54 claims": (0.96, 0.74, "8 of 10", "5 of 8"),
    "third round, 47 claims": (0.87, 0.93, "8 of 9", "7 of 7"),
    "fourth round, 50 claims": (0.86, 0.80, "7 of 10", "8 of 8"),
    "last round, 16 claims": (0.75, 0.33, "1 of 4", "1 of 1"),
}
"""Precision, recall, false files found, false tests found, as written down when each round was new."""
_FOLDER = Path(__file__).with_name("claim_set")
_BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


class Claim(NamedTuple):
    """One claim with its label."""

    label: str
    evidence: ClaimEvidence


def claims(part: str) -> Iterator[Claim]:
    """The claims of one part of the set."""
    text = (_FOLDER / f"{part}.txt").read_text(encoding="utf-8")
    for record in text.removeprefix("=== ").split("\n=== "):
        title, _, rest = record.partition("\n")
        head, _, message = f"\n{rest}".partition("\n---\n")
        label, agent_type = title.split()
        if label not in LABELS:
            raise ValueError(f"no such label: {label}")
        known = dict(line.split(":", 1) for line in head.split("\n") if line)
        yield Claim(label, _evidence(agent_type, message.strip("\n"), known))


def _evidence(agent_type: str, message: str, known: dict[str, str]) -> ClaimEvidence:
    """What a record does not say: nothing changed, no tests, four reports in twelve minutes."""
    files = frozenset(known.get("changed", "").split())
    updates = int(known.get("updates", 4))
    end = _BEGAN + timedelta(seconds=int(known.get("seconds", 720)))
    return ClaimEvidence(
        agent_type=agent_type,
        message=message,
        spawned_at=_BEGAN,
        at=end,
        updates=updates,
        working_updates=max(0, updates - 1),
        findings=int(known.get("findings", 0)),
        changes=_changes(files, known),
        unmeasured="not a git repository" if files == {"unmeasured"} else None,
        existing=frozenset(known.get("exists", "").split()),
        tests=_tests(known.get("tests", "").strip(), end),
    )


def _changes(files: frozenset[str], known: dict[str, str]) -> WorkSinceBaseline | None:
    if files == {"unmeasured"}:
        return None
    return WorkSinceBaseline(files, int(known.get("commits", 1 if files else 0)))


def _tests(told: str, end: datetime) -> tuple[TestRun, ...]:
    return (TestRun("pytest", end, passed=told == "passed"),) if told else ()
