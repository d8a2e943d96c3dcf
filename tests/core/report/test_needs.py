"""What a person has to do now: what is open after the newest word of each work tree, with a command each."""

from datetime import timedelta
from typing import Any

import pytest

from guard.core.breaker.events import BreakerOpened
from guard.core.breaker.state import BreakerFold
from guard.core.report.document import HeldBackEntry, ReportNeed
from guard.core.report.needs import WorktreePaths, list_needs
from guard.core.report.night import IterationFacts
from tests.support.events import MOMENT
from tests.support.metrics import opened

HERE = WorktreePaths("w1", "p1", {"w1": "/here", "w2": "/there it is"})


def ended(number: int, status: Any, worktree: str = "w1", **fields: Any) -> IterationFacts:
    begun = MOMENT + timedelta(minutes=number)
    return IterationFacts("r1", number, worktree, begun, begun, status=status, **fields)


def needs(
    *iterations: IterationFacts,
    held_back: tuple[HeldBackEntry, ...] = (),
    breakers: tuple[BreakerOpened, ...] = (),
) -> tuple[ReportNeed, ...]:
    states = {}
    for event in breakers:
        fold = BreakerFold(event.worktree)
        fold.apply(event)
        states[event.worktree] = fold.document()
    return list_needs(iterations, states, None, held_back, HERE)


ASKS = ended(1, "blocked", reason="question", words="Which one?", agent="claude", session="s1")
CASES: dict[str, tuple[tuple[IterationFacts, ...], tuple[tuple[str, str, str], ...]]] = {
    "nothing": ((ended(1, "complete"),), ()),
    "a question": ((ASKS,), (("question", "Which one?", "claude --resume s1"),)),
    "a question that was gone on from": ((ASKS, ended(2, "complete")), ()),
    "a question that a limit came after": (
        (ASKS, ended(2, "limited")),
        (("question", "Which one?", "claude --resume s1"),),
    ),
    "a denied tool": (
        (ended(1, "blocked", reason="denied", outcome="denied", denied=("Bash",), words="no"),),
        (("denied", "a tool was denied: Bash; no", "guard show 1 --run r1"),),
    ),
    "a login": (
        (ended(1, "blocked", reason="auth", outcome="auth", words="Invalid key", agent="codex"),),
        (("auth", "Invalid key", "codex login"),),
    ),
    "work that was refuted": (
        (ended(1, "refuted", detail="1 test fails"), ended(2, "timeout")),
        (("refuted", "the work was refuted: 1 test fails", "guard show 1 --run r1"),),
    ),
    "work that was refuted and repaired": ((ended(1, "refuted"), ended(2, "complete")), ()),
    "another work tree": (
        (ended(1, "refuted", "w2", detail="no"), ended(2, "complete")),
        (("refuted", "the work was refuted: no", "guard --repo '/there it is' show 1 --run r1"),),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_an_iteration_needs(case: str) -> None:
    iterations, expected = CASES[case]
    assert tuple((n.kind, n.text, n.command) for n in needs(*iterations)) == expected


@pytest.mark.parametrize(
    ("worktree", "text", "command"),
    [
        ("w1", "the breaker is open: no_commits", "guard breaker reset"),
        ("w2", "the breaker of /there it is is open", "guard --repo '/there it is' breaker reset"),
        ("p1", "the breaker of the plan is open", "guard breaker reset --plan"),
        ("w9", "the breaker of another work tree is open", "guard breaker reset"),
    ],
)
def test_an_open_breaker(worktree: str, text: str, command: str) -> None:
    [need] = needs(breakers=(opened(worktree=worktree),))
    assert need.kind == "breaker"
    assert need.text.startswith(text)
    assert need.command == command


def held(path: str, number: int = 1) -> HeldBackEntry:
    return HeldBackEntry(
        worktree="w1",
        path=path,
        why="secret: github",
        run="r1",
        iteration=number,
        snapshot="s1",
        restore="guard restore s1 --to DIR",
    )


def test_files_that_were_held_back_are_one_need_for_each_rescue() -> None:
    found = needs(held_back=(*(held(f"k{n}") for n in range(7)), held("x", 2)))
    assert [need.iteration for need in found] == [1, 2]
    assert found[0].text.endswith("k4 (secret: github), and 2 more")
    assert found[0].command == "guard restore s1 --to DIR"


def test_the_most_urgent_comes_first() -> None:
    found = needs(ended(1, "refuted", "w2"), ASKS, breakers=(opened(),), held_back=(held("k"),))
    assert [need.kind for need in found] == ["question", "breaker", "refuted", "held_back"]
