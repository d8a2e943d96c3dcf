"""Graphs: what they show, and that no title can get out of its label."""

import re
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guard.core.plan.graph import dot, mermaid
from guard.core.plan.model import Plan, PlanTask

HOSTILE = [
    'a "quoted" b',
    'x"]; evil --> t0["',
    "a --> b",
    "new\nline\r\nend",
    "`code` and ```",
    "<script>alert(1)</script><br/>",
    "%% comment",
    "\\",
    'back\\" slash \\N \\l',
    "#quot; &quot; &lt;",
    "]) }} end subgraph",
    "click t0 href javascript:alert(1)",
    "esc \x1b[31m \x00 \u202e",
    "x" * 500,
]


def plan_with(title: str) -> Plan:
    return Plan(
        tasks=(
            PlanTask(id="end", name="end", title=title),
            PlanTask(id="1-1", name="1.1", title="b", depends=("end",)),
        )
    )


def test_mermaid() -> None:
    assert mermaid(plan_with("Set up"), {"end": "completed", "1-1": "odd"}) == (
        "flowchart TD\n"
        '    t0["end: Set up (completed)"]\n'
        '    t1["1.1: b (odd)"]\n'
        "    t0 --> t1\n"
        "    classDef completed fill:#c8e6c9,color:#000000\n"
        "    class t0 completed\n"
    )


def test_dot() -> None:
    assert dot(plan_with("Set up"), {"end": "completed"}) == (
        "digraph plan {\n"
        "    node [shape=box, style=filled, fillcolor=white];\n"
        '    "end" [label="end: Set up (completed)", fillcolor="#c8e6c9"];\n'
        '    "1-1" [label="1.1: b"];\n'
        '    "end" -> "1-1";\n'
        "}\n"
    )


MERMAID_LABEL = re.compile(r'    t\d+\["((?:[^"`<>#\[\]{}|\\&%;\n_*-]|-(?!-)|#\d+;)*)"\]')


def read_back(label: str) -> str:
    return re.sub(r"#(\d+);", lambda code: chr(int(code[1])), label)


@pytest.mark.parametrize("title", HOSTILE)
def test_no_title_gets_out_of_a_mermaid_label(title: str) -> None:
    _, label, second, arrow = mermaid(plan_with(title), {}).splitlines()
    found = MERMAID_LABEL.fullmatch(label)
    assert found
    assert (second, arrow) == ('    t1["1.1: b"]', "    t0 --> t1")
    if title.isprintable() and len(title) < 90:
        assert read_back(found[1]) == f"end: {title}"


DOT_TOKEN = re.compile(r'\s+|"(?:[^"\\]|\\.)*"|->|[{}\[\];=,]|[a-z]+', re.DOTALL)


def dot_tokens(text: str) -> list[str]:
    tokens, at = [], 0
    while at < len(text):
        token = DOT_TOKEN.match(text, at)
        assert token, text[at : at + 40]
        at = token.end()
        tokens += [token[0]] if token[0].strip() else []
    return tokens


def shape(text: str) -> list[str]:
    """The tokens with what the labels say taken out."""
    tokens = dot_tokens(text)
    return [
        "LABEL" if before == "=" and one[0] == '"' else one
        for before, one in zip(["", *tokens], tokens, strict=False)
    ]


@pytest.mark.parametrize("title", HOSTILE)
def test_no_title_gets_out_of_a_dot_label(title: str) -> None:
    text = dot(plan_with(title), {})
    assert shape(text) == shape(dot(plan_with("plain"), {}))
    assert len(text.splitlines()) == 6
    if shutil.which("dot"):
        drawn = subprocess.run(
            ["dot", "-Tplain"], input=text, capture_output=True, text=True, timeout=90, check=True
        )
        assert len(re.findall(r"^node ", drawn.stdout, re.MULTILINE)) == 2


@given(
    st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=120), st.text(max_size=20)
)
def test_no_text_gets_out(title: str, mark: str) -> None:
    plan = plan_with(title)
    lines = mermaid(plan, {"end": mark}).split("\n")
    assert MERMAID_LABEL.fullmatch(lines[1])
    assert shape(dot(plan, {"end": mark}))[:15] == shape(dot(plan_with("plain"), {}))[:15]
