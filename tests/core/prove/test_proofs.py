"""What the work of a check is held against."""

from datetime import UTC, datetime

import pytest

from guard.core.log.view import LogPosition
from guard.core.prove.events import CheckEntry
from guard.core.prove.proofs import Bases, ProofEntry, Proofs, check_digest, choose_bases
from guard.core.prove.settings import ProveCheck
from guard.core.prove.summary import ProofResult

CHECK = ProveCheck(name="command", command="pytest -q")
OTHER = ProveCheck(name="lint", command="ruff check", kind="exit")
LINE = {letter: f"{number:040x}" for number, letter in enumerate("abcdefg", 1)}
"""Commits of one line, the oldest first."""
BESIDE = "f" * 40


def is_older(one: str, other: str) -> bool:
    return one == other or (BESIDE not in (one, other) and int(one, 16) <= int(other, 16))


def entry(words: str, check: ProveCheck = CHECK) -> ProofEntry:
    """A proof by its head, its result, the baseline of its failures and that of its tests; `-` if it does not count."""
    head, result, base, tests, *more = words.split()
    kind: ProofResult = result  # type: ignore[assignment]
    known = CheckEntry(
        name=check.name,
        command=check_digest(check),
        result=kind,
        baseline=LINE[base],
        tests_baseline=LINE[tests],
    )
    return ProofEntry(
        id="p",
        at=datetime(2026, 1, 1, tzinfo=UTC),
        run=None,
        result=kind,
        reason="",
        detail="",
        head=BESIDE if head == "beside" else LINE[head],
        head_tree=LINE["a"],
        checks=(known,),
        counts=not more,
        new_failures=(),
        weakened=(),
        rewritten=(),
    )


def view(*proofs: ProofEntry, accepted: str = "") -> Proofs:
    position = LogPosition(segment=1, offset=1, hash="0" * 64)
    oids = tuple(LINE[letter] for letter in accepted)
    return Proofs(
        schema="guard/proofs/1", seq=1, log=position, worktree="w", proofs=proofs, accepted=oids
    )


CASES: dict[str, tuple[tuple[str, ...], str, str, str]] = {
    # proofs, the oldest first; accepted; where the run began; failures and tests of f
    "nothing is known": ((), "", "c", "c c"),
    "the newest proven one": (("c proven b b", "d proven c b"), "", "b", "d b"),
    "a proof of the commit itself is no base": (("d proven b b", "f proven d b"), "", "b", "d b"),
    "a commit of another branch is none": (("c proven b b", "beside proven c b"), "", "b", "c b"),
    "since the oldest that is not proven": (("d refuted b b", "e refuted b b"), "", "e", "b b"),
    "what an earlier run left open": (("d refuted b b",), "", "e", "b b"),
    "a review that no person gave": (("d review c b",), "", "e", "c b"),
    "a proven commit settles an earlier run": (
        ("c refuted a a", "d proven c a"),
        "",
        "e",
        "d e",
    ),
    "an earlier iteration of the run settles no change of tests": (
        ("d proven b b", "e proven d b"),
        "",
        "b",
        "e b",
    ),
    "what a person accepted": (("d review b b",), "d", "b", "b d"),
    "what was accepted on another branch or too early": (("d review b b",), "ga", "b", "b b"),
    "a proof that does not count": (("d proven b b -",), "", "b", "b b"),
}


@pytest.mark.parametrize("name", CASES)
def test_what_work_is_held_against(name: str) -> None:
    proofs, accepted, begun, expected = CASES[name]
    found = view(*(entry(words) for words in proofs), accepted=accepted)
    failures, tests = expected.split()
    bases = choose_bases(found, CHECK, LINE["f"], LINE[begun], is_older)
    assert bases == Bases(LINE[failures], LINE[tests])


def test_each_check_has_its_own() -> None:
    found = view(entry("c proven b b"), entry("d proven c b", OTHER))
    bases = choose_bases(found, CHECK, LINE["f"], LINE["b"], is_older)
    assert bases == Bases(LINE["c"], LINE["b"])
    assert found.result_at(LINE["d"], CHECK) is None
    assert found.result_at(LINE["d"], OTHER) == "proven"


def test_without_a_commit_before() -> None:
    assert choose_bases(None, CHECK, LINE["a"], None, is_older) == Bases(None, None)
