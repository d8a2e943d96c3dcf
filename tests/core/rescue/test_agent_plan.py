"""Plans that an agent's program proposes: the question, what is taken, and why others are discarded."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from guard.core.rescue.agent_plan import (
    LONGEST_SUBJECT,
    MOST_ANSWER,
    MOST_COMMITS,
    MOST_FILES,
    PLAN_SCHEMA,
    DiscardedPlan,
    planning_prompt,
    read_plan,
)
from guard.core.rescue.groups import Changed, Group

CHANGES = [
    Changed("A", b"src/parser/dates.py"),
    Changed("M", b"tests/test_dates.py"),
    Changed("R", b"docs/new.md", b"docs/old.md"),
    Changed("D", b"odd name\n\xff"),
]
NAMES = ["src/parser/dates.py", "tests/test_dates.py", "docs/new.md", "#4"]


def plan(*commits: tuple[str, list[str]]) -> str:
    return json.dumps({"commits": [{"message": text, "paths": paths} for text, paths in commits]})


GOOD = plan(("feat(parser): parse dates", NAMES[:2]), ("docs: rename old.md", NAMES[2:]))


def test_the_question_lists_each_file_by_the_name_that_a_plan_uses() -> None:
    prompt = planning_prompt(CHANGES)
    assert prompt is not None
    assert prompt.endswith(
        "\nA src/parser/dates.py\nM tests/test_dates.py\nR docs/new.md, was docs/old.md"
        "\nD #4 (odd name\\x0a\\xff)"
    )
    assert not prompt.startswith("-")


@pytest.mark.parametrize(
    "changes",
    [
        [],
        [Changed("A", b"%d" % n) for n in range(MOST_FILES + 1)],
        [Changed("A", b"%d" % n + b"x" * 200) for n in range(300)],
        [Changed("A", f"{n}{'文' * 100}".encode()) for n in range(300)],
    ],
    ids=["nothing", "too many files", "too long", "too long in bytes"],
)
def test_no_question(changes: list[Changed]) -> None:
    assert planning_prompt(changes) is None


@pytest.mark.parametrize(
    "answer",
    [
        GOOD,
        f"\n{GOOD}\n",
        f"```json\n{GOOD}\n```",
        f"```\n{GOOD}\n```\n",
        f"Here is the plan:\n\n```json\n{GOOD}\n```\n\nShall I go on?",
    ],
    ids=["plain", "with blanks", "fenced", "fenced without a language", "fenced in prose"],
)
def test_a_plan_is_taken_with_its_order(answer: str) -> None:
    assert read_plan(answer, CHANGES) == [
        Group(
            "feat(parser): parse dates",
            "A src/parser/dates.py\nM tests/test_dates.py",
            tuple(CHANGES[:2]),
        ),
        Group(
            "docs: rename old.md",
            "R docs/old.md -> docs/new.md\nD odd name\\x0a\\xff",
            tuple(CHANGES[2:]),
        ),
    ]


DISCARDED = {
    "nothing": ("", "not_json"),
    "prose": ("Here is the plan.", "not_json"),
    "prose around it": (f"Here you are: {GOOD}", "not_json"),
    "two objects": (GOOD + GOOD, "not_json"),
    "two fences": (f"```json\n{GOOD}\n```\nor\n```json\n{GOOD}\n```", "not_json"),
    "something else in the fence": ("So:\n```json\n{}\n```", "not_a_plan"),
    "a list": ("[]", "not_json"),
    "cut off": (GOOD[:-3], "not_json"),
    "a key twice": ('{"commits": [], "commits": []}', "not_json"),
    "too deep": ("[" * 10_000, "not_json"),
    "the question's own example": (
        '{"commits": [{"message": string, "paths": [string]}]}',
        "not_json",
    ),
    "a lone surrogate": ('{"commits": "\\ud800"}', "not_json"),
    "no commits": ('{"commits": []}', "not_a_plan"),
    "other keys": ('{"commits": [], "done": true}', "not_a_plan"),
    "another shape": ('{"commits": {"a": 1}}', "not_a_plan"),
    "numbers for paths": ('{"commits": [{"message": "fix: x", "paths": [1]}]}', "not_a_plan"),
    "too many commits": (plan(*[("fix: x", ["a"])] * (MOST_COMMITS + 1)), "not_a_plan"),
    "a commit of nothing": (plan(("feat: all", NAMES), ("fix: x", [])), "not_a_plan"),
    "no conventional subject": (plan(("Add dates", NAMES)), "not_conventional"),
    "a type of its own": (plan(("feature: add dates", NAMES)), "not_conventional"),
    "no message": (plan(("", NAMES)), "not_conventional"),
    "a trailer for a subject": (plan(("Guard-Rescue: r/1", NAMES)), "not_conventional"),
    "a secret in a message": (
        plan(("feat: key " + "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3gH6", NAMES)),
        "secret",
    ),
    "a long subject": (plan((f"feat: {'x' * LONGEST_SUBJECT}", NAMES)), "too_long"),
    "a long message": (plan(("feat: x\n\n" + "y" * 5000, NAMES)), "too_long"),
    "a long answer": (" " * (MOST_ANSWER + 1), "too_long"),
    "a path left out": (plan(("feat: x", NAMES[:3])), "missing"),
    "a path twice": (plan(("feat: x", NAMES), ("fix: y", NAMES[:1])), "twice"),
    "a path twice in a commit": (plan(("feat: x", [*NAMES, NAMES[0]])), "twice"),
    "a path that did not change": (plan(("feat: x", [*NAMES, "src/other.py"])), "unknown"),
    "a path above": (plan(("feat: x", [*NAMES, "../x"])), "unknown"),
    "another number": (plan(("feat: x", [*NAMES, "#1"])), "unknown"),
}


@pytest.mark.parametrize(("answer", "why"), DISCARDED.values(), ids=DISCARDED)
def test_discarded(answer: str, why: str) -> None:
    result = read_plan(answer, CHANGES)
    assert isinstance(result, DiscardedPlan)
    assert result.why == why
    assert result.detail
    assert "\n" not in result.detail
    assert len(result.detail) <= 512


def test_a_discarded_plan_names_the_path() -> None:
    answer = plan(("feat: x", [*NAMES, "nobody\n\x1b's.py"]))
    assert read_plan(answer, CHANGES) == DiscardedPlan("unknown", "nobody \\x1b's.py")


MESSAGES = {
    "a body": ("feat: x\n\nBecause.\nAnd so.", "Because.\nAnd so."),
    "trailers": (
        "feat: x\n\nBecause.\n\nSigned-off-by: A <a@b>\nCo-Authored-By: Claude <c@d>",
        "Because.",
    ),
    "our own trailer": ("feat: x\n\nGuard-Rescue: r/1\n\nBecause.", "Because."),
    "a trailer with blanks": ("feat: x\n\n  reviewed-by : A\nBecause.", "Because."),
    "an issue to close": ("feat: x\n\nBecause.\n\nFixes: #1\nCc: a@b", "Because."),
    "advertising": (
        "feat: x\n\nBecause.\n\n🤖 Generated with [Claude Code](https://x)",
        "Because.",
    ),
    "control characters": ("feat: x\n\nred \x1b[31m \u202e", "red \\x1b[31m \\u202e"),
    "line ends of all kinds": ("feat: x\r\n\r\nBecause.\r\nGuard-Rescue: x", "Because."),
    "trailers behind other line ends": (
        "feat: x\n\nBecause.\u2028Guard-Rescue: x\x0bA-B: c",
        "Because.",
    ),
    "prose with a colon": ("feat: x\n\nNote: it works.", "Note: it works."),
}


@pytest.mark.parametrize(("message", "body"), MESSAGES.values(), ids=MESSAGES)
def test_messages_are_cleaned(message: str, body: str) -> None:
    result = read_plan(plan((message, NAMES)), CHANGES)
    assert isinstance(result, list)
    assert (result[0].subject, result[0].body) == ("feat: x", body)


def test_a_message_of_trailers_gets_a_list_of_files() -> None:
    result = read_plan(plan(("feat: x\n\nSigned-off-by: a", NAMES)), CHANGES)
    assert isinstance(result, list)
    assert result[0].body.startswith("A src/parser/dates.py\n")


def test_a_file_that_is_named_like_a_number() -> None:
    changes = [Changed("A", b"#2"), Changed("A", b"a b")]
    result = read_plan(plan(("fix: x", ["#2"]), ("fix: y", ["#1"])), changes)
    assert isinstance(result, list)
    assert [group.changes[0].path for group in result] == [b"a b", b"#2"]


def test_a_path_that_changed_in_two_ways_cannot_be_planned() -> None:
    changes = [Changed("D", b"a"), Changed("A", b"a")]
    result = read_plan(plan(("fix: x", ["a"])), changes)
    assert isinstance(result, DiscardedPlan)
    assert result.why == "twice"


@given(st.text(max_size=200))
@settings(deadline=None)
def test_any_answer_is_taken_or_discarded(answer: str) -> None:
    assert isinstance(read_plan(answer, CHANGES), DiscardedPlan)


@given(st.text(max_size=100), st.lists(st.sampled_from(NAMES), max_size=6))
@settings(deadline=None)
def test_a_plan_that_is_taken_has_each_change_once(text: str, paths: list[str]) -> None:
    result = read_plan(plan((f"feat: x{text}", paths)), CHANGES)
    if isinstance(result, list):
        assert sorted(one.path for group in result for one in group.changes) == sorted(
            one.path for one in CHANGES
        )
        assert "Guard-Rescue:" not in result[0].body


def closed(schema: dict[str, Any]) -> bool:
    """Whether a strict mode takes it: every object closed, with all its keys required."""
    if schema.get("type") == "array":
        return closed(schema["items"])
    if schema.get("type") != "object":
        return "$ref" not in schema
    keys = schema["properties"]
    return (
        schema["additionalProperties"] is False
        and set(schema["required"]) == set(keys)
        and all(map(closed, keys.values()))
    )


def test_the_schema_is_that_of_a_plan() -> None:
    assert closed(PLAN_SCHEMA)
    validator = Draft202012Validator(PLAN_SCHEMA)
    assert validator.is_valid(json.loads(GOOD))
    for name in ("no commits", "other keys", "another shape", "numbers for paths"):
        valid = validator.is_valid(json.loads(DISCARDED[name][0]))
        assert valid == (name == "no commits"), name
