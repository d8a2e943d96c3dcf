"""Signals: where they count, what they carry, and that hostile text costs little."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guard.core.plan.signals import (
    MOST_CHARACTERS,
    MOST_LINES,
    MOST_SIGNALS,
    AgentSignal,
    read_signals,
)
from tests.support import ROOT
from tests.support.cost import cpu_limit

SIGNAL = "AUDIT PASS: 1.1"

TOLD: dict[str, tuple[str, list[AgentSignal]]] = {
    "complete": ("Done.\nAGENT COMPLETE\n", [AgentSignal("agent_complete", 2)]),
    "complete, with deliverables": (
        "AGENT COMPLETE: the index\nConfidence: high\nDeliverables:\n- a.sql\n- notes\n  of two lines\nBye.\n",
        [
            AgentSignal(
                "agent_complete", 1, text="the index\na.sql\nnotes of two lines", confidence="HIGH"
            )
        ],
    ),
    "out of scope": (
        "OUT_OF_SCOPE: no database work\nSuggested alternative: db-expert-1\n",
        [AgentSignal("out_of_scope", 1, text="no database work", alternative="db-expert-1")],
    ),
    "a question": (
        "SEEKING DIVINE CLARIFICATION\n\nTask: 1.1\nQuestion: Which one?\n  Or both?\nQuestion: When?\n",
        [
            AgentSignal(
                "seeking_clarification", 1, task="1.1", questions=("Which one? Or both?", "When?")
            )
        ],
    ),
    "a question in its line": (
        "SEEKING DIVINE CLARIFICATION: Which?",
        [AgentSignal("seeking_clarification", 1, questions=("Which?",))],
    ),
    "ready": ("READY FOR AUDIT: My task\r\n", [AgentSignal("ready_for_audit", 1, task="My task")]),
    "verdicts": (
        "AUDIT PASS: 1\nEvidence: 12 tests\nFiles: a.py, b.py\nAUDIT FAIL - 2\nAUDIT BLOCKED: 3 - red before\n",
        [
            AgentSignal("audit_pass", 1, task="1", text="12 tests", files=("a.py", "b.py")),
            AgentSignal("audit_fail", 4, task="2"),
            AgentSignal("audit_blocked", 5, task="3", text="red before"),
        ],
    ),
    "health": (
        "HEALTH: HEALTHY\n\nHEALTH: UNHEALTHY\nIssues:\n1. no disk\n",
        [AgentSignal("healthy", 1), AgentSignal("unhealthy", 3, text="no disk")],
    ),
    "a checkpoint": (
        "CHECKPOINT: tests written\n",
        [AgentSignal("checkpoint", 1, text="tests written")],
    ),
    "an expansion": (
        "EXPANSION COMPLETE: 2.1\nConfidence: LOW\nClarification questions:\n- Who?\n- Why?\n",
        [AgentSignal("expansion", 1, task="2.1", confidence="LOW", questions=("Who?", "Why?"))],
    ),
    "a rollback": (
        "ROLLBACK REQUIRED: 1.1\n\nReason: breaks\nCommit: abc\nFiles Affected: a, b\n\nProceeding with rollback...\n",
        [
            AgentSignal(
                "rollback_required", 1, task="1.1", text="breaks", commit="abc", files=("a", "b")
            )
        ],
    ),
    "a fence ends the fields": (
        "AGENT COMPLETE\n```\nConfidence: HIGH\n```\n",
        [AgentSignal("agent_complete", 1)],
    ),
}


@pytest.mark.parametrize(("text", "expected"), TOLD.values(), ids=TOLD)
def test_a_signal(text: str, expected: list[AgentSignal]) -> None:
    assert list(read_signals(text)) == expected


COUNTS = {
    "after a fence": f"```\nx\n```\n{SIGNAL}",
    "after a fence in a list": f"1. Run:\n   ```sh\n   x\n   ```\n{SIGNAL}",
    "after a fence behind a list marker": f"- ```\n  x\n  ```\n{SIGNAL}",
    "after inline code": f"Use `x` and ``y``.\n{SIGNAL}",
    "after a closed comment": f"<!-- x -->\n{SIGNAL}",
    "after a comment of two lines": f"<!-- x\ny -->\n{SIGNAL}",
    "after a comment that is only opened in a line": f"Write <!-- there.\n{SIGNAL}",
    "after a quotation and an empty line": f"> x\n\n{SIGNAL}",
    "after code with a fence inside of a longer one": f"````\n```\n````\n{SIGNAL}",
    "after code with a backtick that is not closed": f"a ` b\n{SIGNAL}",
    "after a list item": f"- x\n{SIGNAL}",
    "after three backticks in a line": f"a ``` b\n{SIGNAL}",
}


@pytest.mark.parametrize("text", COUNTS.values(), ids=COUNTS)
def test_it_counts(text: str) -> None:
    assert [one.kind for one in read_signals(text)] == ["audit_pass"]


COUNTS_NOT = {
    "in a sentence": f"I print {SIGNAL}",
    "with words behind it": "AGENT COMPLETE is what I print",
    "a longer word": "AGENT COMPLETELY",
    "no space behind the colon": "AUDIT PASS:1.1",
    "small letters": SIGNAL.lower(),
    "indented by one": f" {SIGNAL}",
    "indented code": f"    {SIGNAL}",
    "a list item": f"- {SIGNAL}",
    "a heading": f"# {SIGNAL}",
    "bold": f"**{SIGNAL}**",
    "a quotation": f"> {SIGNAL}",
    "right under a quotation": f"> x\ny\n{SIGNAL}",
    "inline code": f"`{SIGNAL}`",
    "inline code over lines": f"a `b\n{SIGNAL}\nc` d",
    "inline code of two signs over lines": f"a ``b ` c\n{SIGNAL}\nd`` e",
    "a comment inside of a paragraph": f"a <!-- b\n{SIGNAL}\n--> c",
    "a comment": f"<!--\n{SIGNAL}\n-->",
    "a comment that does not end": f"<!--\n\n{SIGNAL}",
    "a fence": f"```\n{SIGNAL}\n```",
    "a fence of tildes": f"~~~ text\n{SIGNAL}\n~~~",
    "a fence that does not end": f"```\n{SIGNAL}",
    "a fence that a shorter one does not end": f"````\n```\n{SIGNAL}\n````",
    "a fence that one with words does not end": f"```\n```python\n{SIGNAL}\n```",
    "a fence that an indented one does not end": f"```\n    ```\n{SIGNAL}\n```",
    "an indented fence around text that is not": f"- x\n  ```\n{SIGNAL}\n  ```",
    "raw HTML": f"<pre>\n{SIGNAL}\n</pre>",
    "a quotation in HTML": f"<blockquote>\n{SIGNAL}\n</blockquote>",
    "an example": f"<example>\n{SIGNAL}\n</example>",
    "a string of JSON": f'{{"text": "x\\n{SIGNAL}"}}',
    "a line of a JSON list": f'[\n"{SIGNAL}"\n]',
    "an added line": f"+{SIGNAL}",
    "a removed line": f"-{SIGNAL}",
    "a line around a change": f" {SIGNAL}",
    "behind a carriage return": f"10 %\r{SIGNAL}",
    "a word that is no verdict": "AUDIT MAYBE: 1.1",
    "an expansion without its confidence": "EXPANSION COMPLETE: 1.1\n",
    "an expansion with another": "EXPANSION COMPLETE: 1.1\nConfidence: SURE\n",
    "an empty checkpoint": "CHECKPOINT:\n",
    "health without a verdict": "HEALTH: GOOD",
    "nothing": "",
}


@pytest.mark.parametrize("text", COUNTS_NOT.values(), ids=COUNTS_NOT)
def test_it_does_not_count(text: str) -> None:
    assert read_signals(text) == ()


LINES = st.lists(
    st.one_of(
        st.sampled_from(
            [
                SIGNAL,
                "AGENT COMPLETE",
                "",
                "- x",
                "> y",
                "`",
                "    ```",
                "``",
                "<!--",
                "-->",
                "~~",
                "</pre>",
                "```x",
            ]
        ),
        st.text(max_size=10).filter(lambda line: not re.search(r"`{3}|~{3}|[\r\n]", line)),
    ),
    max_size=8,
)


@given(LINES, st.sampled_from(["```", "~~~", "````", "   ```", "``` text"]), st.booleans())
def test_nothing_is_found_in_a_fence(lines: list[str], fence: str, ends: bool) -> None:
    closing = [fence.split()[0]] if ends else []
    assert read_signals("\n".join(["Before.", "", fence, *lines, *closing])) == ()


@given(LINES)
def test_what_follows_a_fence_is_found(lines: list[str]) -> None:
    text = "\n".join(["```text", *lines, "```", "", SIGNAL])
    assert [one.line for one in read_signals(text)] == [len(lines) + 4]


@given(st.one_of(st.text(), LINES.map("\n".join)))
def test_any_text_is_read(text: str) -> None:
    for one in read_signals(text):
        assert text.split("\n")[one.line - 1].startswith(("AGENT", "AUDIT"))


LONG = "x" * 79 + "\n"
BEFORE = LONG * (MOST_CHARACTERS // 40)

CUT = {
    "after junk": (BEFORE, True),
    "after a fence that ended": (f"```\n{BEFORE}```\n", True),
    "in a fence that began before the cut": (f"```\n{BEFORE}", False),
    "in a comment that began before the cut": (f"<!--\n{BEFORE}", False),
    "after more fences than are looked at": ("```\n" * (MOST_LINES + 3) + BEFORE, False),
}


@pytest.mark.parametrize(("before", "counts"), CUT.values(), ids=CUT)
def test_the_end_of_a_long_text(before: str, counts: bool) -> None:
    found = read_signals(before + SIGNAL)
    assert [one.line for one in found] == ([before.count("\n") + 1] if counts else [])


def test_what_is_before_the_end_is_not_read() -> None:
    assert read_signals(f"{SIGNAL}\n{BEFORE}") == ()
    assert [
        one.task for one in read_signals(f"{SIGNAL}\n" + "\n" * (MOST_LINES + 1) + "AUDIT PASS: 2")
    ] == ["2"]


HOSTILE: dict[str, Any] = {
    "empty lines": ("\n" * 20_000_000 + SIGNAL, 1),
    "one line": ("x" * 50_000_000 + "\n" + SIGNAL, 1),
    "signals": (f"{SIGNAL}\n" * 300_000, MOST_SIGNALS),
    "backticks of many lengths": (
        "".join("`" * (at % 700) + " " for at in range(9000)) + "\n" + SIGNAL,
        1,
    ),
    "list markers": (("- " * 1000 + "`\n") * 2000 + SIGNAL, 1),
    "fields": (f"{SIGNAL}\n" + "Files: " + "a," * 100_000 + "\n" + "Evidence: b\n" * 100_000, 1),
}


@pytest.mark.parametrize(("text", "count"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_costs_little(text: str, count: int) -> None:
    with cpu_limit():
        found = read_signals(text)
    assert len(found) == count
    assert all(len(one.text) <= 65536 and len(one.files) <= 100 for one in found)


def test_the_examples_in_the_documentation_are_signals() -> None:
    page = (ROOT / "docs" / "reference" / "signals.md").read_text()
    examples = re.findall(r"^```text\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    found = [one.kind for example in examples for one in read_signals(example)]
    assert len(found) == len(set(found)) == 12
    assert read_signals(page) == ()
