"""What GitHub is told, made of text that tries to be something else: outputs, lines for the runner, pages."""

import json
from html.parser import HTMLParser
from typing import Any

import pytest
from markdown_it import MarkdownIt

from guard.core.base.markdown_escape import fit_lines, piece
from guard.core.check.events import CommittedSecret
from guard.core.github.annotations import MOST_OF_A_LEVEL, Annotation, annotations, lines
from guard.core.github.escape import command, output_file, resume_commands, stop_commands
from guard.core.github.outcome import MOST_IN_JSON, exit_code, outputs, statuses_to_fail_on
from guard.core.github.report import STATUSES, Push
from guard.core.github.summary import MOST_BYTES, summary
from guard.core.rescue.redact import known_secrets, redact, redact_document
from guard.core.work.leftovers import Uncommitted
from tests.support.steps import NO_PUSH, checked, proof, step

HOSTILE = {
    "newline output": "x\ncomplete=true",
    "carriage return": "x\rcomplete=true",
    "crlf": "x\r\nstatus=complete",
    "heredoc": "x\nstatus<<EOF\ncomplete\nEOF",
    "open heredoc": "x\njson<<EOF",
    "guessed delimiter": "guard_00000000000000000000000000000000\ncomplete=true",
    "vertical tab": "x\vcomplete=true",
    "form feed": "x\fcomplete=true",
    "line separator": "x\u2028complete=true",
    "paragraph separator": "x\u2029complete=true",
    "next line": "x\x85complete=true",
    "nul": "x\0y",
    "set-output": "::set-output name=complete::true",
    "set-output later": "x\n::set-output name=complete::true",
    "set-env": "\n::set-env name=LD_PRELOAD::/tmp/x.so",
    "add-path": "\n::add-path::/tmp",
    "add-mask": "\n::add-mask::complete",
    "save-state": "\n::save-state name=x::y",
    "stop-commands": "\n::stop-commands::x",
    "error": "\n::error file=a,line=1::x",
    "group": "\n::group::x",
    "debug": "\n::debug::x",
    "old form": "##[set-output name=complete;]true",
    "old form later": "\n##[error]x",
    "indented": "\n   ::error::x",
    "percent newline": "%0A::error::x",
    "percent percent": "%250A::error::x",
    "property end": "a,line=5::x",
    "property colon": "a:b::c",
    "expression": "${{ secrets.GITHUB_TOKEN }}",
    "expression open": "${{",
    "shell": "$(touch /tmp/x) `touch /tmp/x` ; touch /tmp/x",
    "shell quote": "'; touch /tmp/x; '",
    "json quote": '","complete":true,"x":"',
    "ansi colour": "\x1b[31mred",
    "ansi clear": "\x1b[2J\x1b[H",
    "osc link": "\x1b]8;;https://example.com\x07x\x1b]8;;\x07",
    "c1 csi": "\x9b31mred",
    "backspace": "timeout\b\b\b\b\b\b\bcomplete",
    "bidi": "\u202ecomplete",
    "zero width": "com\u200bplete",
    "script": "<script>alert(1)</script>",
    "image tag": '<img src="https://example.com/x" onerror="x">',
    "comment": "<!-- x",
    "comment end": "--> x",
    "close code": "</code></td></table><h1>complete</h1>",
    "close pre": "</code></pre><b>x",
    "details": "<details open><summary>complete</summary>",
    "entity": "&lt;b&gt; &#60;b&#62; &amp;",
    "style": "<style>*{display:none}</style>",
    "iframe": "<iframe src=//example.com></iframe>",
    "heading": "\n# complete",
    "setext": "\ncomplete\n===",
    "bold": "**complete** __complete__ *x* _x_",
    "strike": "~~x~~",
    "link": "[complete](https://example.com)",
    "reference": "[x]: https://example.com\n[x]",
    "picture": "![x](https://example.com/x.png)",
    "autolink": "https://example.com www.example.com <https://example.com>",
    "mail": "someone@example.com",
    "mention": "@everyone @octocat/team",
    "issue": "#1 GH-1 octocat/x#1",
    "fence": "\n```\ncomplete\n```",
    "fence tilde": "\n~~~\ncomplete",
    "backtick": "`x` ``x``",
    "table": "a | b |\n|---|---|\n| c | d",
    "quote": "\n> [!CAUTION]\n> x",
    "list": "\n- x\n1. x\n- [x] x",
    "rule": "\n---\n***",
    "math": "$x$ $$x$$ $`x`$",
    "footnote": "[^1]\n[^1]: x",
    "emoji": ":tada:",
    "backslash": "\\` \\| \\<b\\>",
    "indent": "\n    x\n\tx",
    "empty": "",
    "blank": "   ",
    "long": "x" * 5000,
    "long markup": "<`|*" * 5000,
}
each = pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())


def read_as_a_runner(text: str) -> dict[str, str]:
    """The outputs in a file, as a runner reads them."""
    found: dict[str, str] = {}
    rest = iter(text.split("\n"))
    for line in rest:
        name, heredoc, delimiter = line.partition("<<")
        if heredoc:
            value = []
            for inner in rest:
                if inner == delimiter:
                    break
                value.append(inner)
            found[name] = "\n".join(value)
        elif line:
            key, _, value_of = line.partition("=")
            found[key] = value_of
    return found


@each
def test_no_text_changes_an_output(text: str) -> None:
    values = outputs(step(text), NO_PUSH, "/tmp/report.json")
    assert list(values)[-2:] == ["status", "complete"]
    for value in values.values():
        assert len(value.splitlines()) <= 1
    read = read_as_a_runner(output_file(values, "guard_" + "ab" * 16))
    assert read == values
    assert (read["complete"], read["status"], read["rescued"]) == ("false", "timeout", "false")
    assert json.loads(read["json"])["complete"] is False
    assert sum(map(len, values.values())) < 500_000


@each
def test_no_text_begins_a_line_that_a_runner_obeys(text: str) -> None:
    found = annotations(step(text), fails=True, folder="folder/")
    for line, one in zip(lines(found), found, strict=True):
        assert len(line.splitlines()) == 1
        assert line.startswith(f"::{one.level} ")
        properties, _, _ = line[2:].partition("::")
        said = dict(pair.partition("=")[::2] for pair in properties.partition(" ")[2].split(","))
        assert set(said) <= {"file", "line", "title"}
        assert said["title"] == "guard"
        assert said.get("line", "1") == "1"
        assert "\x1b" not in line


class Skeleton(HTMLParser):
    """The tags of a page with their attributes, without their text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[object] = []
        self.comments = 0
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, attrs))

    def handle_endtag(self, tag: str) -> None:
        self.tags.append(f"/{tag}")

    def handle_comment(self, _data: str) -> None:
        self.comments += 1


def skeleton(text: str) -> list[object]:
    renderer = MarkdownIt("gfm-like", {"html": True, "linkify": False})
    page = Skeleton(renderer.render(summary(step(text), NO_PUSH)))
    assert page.comments == 0
    return page.tags


@pytest.mark.parametrize(
    "text", [text for text in HOSTILE.values() if text], ids=[k for k, v in HOSTILE.items() if v]
)
def test_no_text_changes_a_page(text: str) -> None:
    assert skeleton(text) == skeleton("text")


def test_a_page_is_never_longer_than_it_may_be() -> None:
    names = tuple(f"{n}{'<' * 2000}" for n in range(1000))
    check = checked("<" * 60000, uncommitted=Uncommitted(untracked=names), rescue=None)
    whole = summary(step(check=check), NO_PUSH)
    assert len(whole.encode()) <= MOST_BYTES
    assert "and 975 more" in whole
    short = summary(step(check=check), NO_PUSH, 3000)
    assert len(short.encode()) <= 3000
    assert short.rstrip().endswith("_The rest is left out here; the report has all of it._")
    assert fit_lines(["a", "b"], 100, "more") == "a\nb\n"


def test_at_most_ten_lines_of_a_level() -> None:
    found = [Annotation("warning", f"n{n}", "a") for n in range(25)] + [Annotation("error", "e")]
    shown = lines(found)
    assert [
        sum(line.startswith(f"::{level}") for line in shown) for level in ("error", "warning")
    ] == [
        1,
        MOST_OF_A_LEVEL,
    ]
    assert "and 16 more lines" in shown[-1]
    assert len(lines([Annotation("notice", "x" * 100_000)])[0]) < 1200


def test_a_document_that_is_too_long_for_an_output_is_left_to_the_report() -> None:
    names = tuple("x" * 300 + str(n) for n in range(1000))
    values = outputs(step(check=checked(uncommitted=Uncommitted(untracked=names))), NO_PUSH, "/r")
    found = json.loads(values["json"])
    assert (len(values["json"]) < MOST_IN_JSON, found["check"], found["status"]) == (
        True,
        None,
        "timeout",
    )


@pytest.mark.parametrize("status", STATUSES)
def test_it_fails_exactly_at_what_was_named(status: str) -> None:
    report = step(status=status, exit_code=0 if status in ("complete", "begun") else 10)
    assert exit_code(report, statuses_to_fail_on(status)) != 0
    others = " ".join(word for word in STATUSES if word != status)
    assert exit_code(report, statuses_to_fail_on(others)) == 0
    assert exit_code(report, statuses_to_fail_on("none")) == 0
    assert exit_code(report, statuses_to_fail_on("")) == 0


@pytest.mark.parametrize("told", ["failed", "timeout;error", "none timeout", "COMPLETE"])
def test_a_word_that_is_no_status_is_refused(told: str) -> None:
    with pytest.raises(ValueError):
        statuses_to_fail_on(told)


def test_lists_may_have_commas_and_lines() -> None:
    assert statuses_to_fail_on("timeout,error\n blocked") == {"timeout", "error", "blocked"}


def test_a_delimiter_that_stands_in_a_value_is_refused() -> None:
    with pytest.raises(ValueError):
        output_file({"a": "x END y"}, "END")


def test_what_ends_the_silence_stands_on_a_line_of_its_own() -> None:
    printed = f"{stop_commands('word')}\nno newline{resume_commands('word')}\n"
    assert printed.splitlines()[-1] == "::word::"


def test_the_page_says_how_to_get_what_was_rescued() -> None:
    ref = "refs/heads/guard/rescue/r1-1"
    told = summary(step(), Push(ref=ref, pushed=True, why="pushed", detail=""))
    assert f"git fetch origin {ref}" in told
    assert "were not pushed" in summary(step(), NO_PUSH)
    assert "0.2500 USD" in told


TOKEN = "ghp_" + "Zq8" * 12


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"token {TOKEN} here", "token [redacted] here"),
        ("value hunter2hunter2 here", "value [redacted] here"),
        ("nothing", "nothing"),
        ("\udcff", "\udcff"),
    ],
)
def test_secrets_are_taken_out(text: str, shown: str) -> None:
    known = known_secrets({"MY_API_KEY": "hunter2hunter2", "PATH": "nothing", "X_TOKEN": "short"})
    assert redact(text, known) == shown
    assert redact_document({"a": [text, 1, None]}, known) == {"a": [shown, 1, None]}


def test_an_id_of_git_stays_although_a_variable_has_the_same_value() -> None:
    assert redact_document("a" * 40, ("a" * 40,)) == "a" * 40


def test_pieces() -> None:
    assert piece("") == "<code> </code>"
    assert piece("\udcff") == "<code>&#92;udcff</code>"
    assert piece("a<b") == "<code>a&#60;b</code>"
    assert piece("x" * 400).endswith("…</code>")
    assert command("error", "100%", file="a,b:c") == "::error file=a%2Cb%3Ac::100%25"


def test_a_committed_secret_is_an_annotation_at_its_line_and_stands_on_the_page() -> None:
    report = step("x")
    assert report.check is not None
    secret = CommittedSecret(path="src/keys.py", rule="anthropic", commit="a" * 40, line=3)
    check = report.check.model_copy(update={"secrets": (secret,)})
    report = report.model_copy(update={"check": check})
    said = "secret committed: src/keys.py (anthropic, line 3) in commit aaaaaaaaaa"
    assert Annotation("warning", said, "folder/src/keys.py", 3) in annotations(
        report, fails=False, folder="folder/"
    )
    assert "Secrets in the commits" in summary(report, NO_PUSH)


TAIL = """tests/test_a.py::test_one
>   assert 1 == 2
tests/test_a.py:3: in helper
tests/test_a.py:17: AssertionError

tests/test_a.py::test_two
tests/test_a.py:21: AssertionError"""
_LISTS = ("weakened", "rewritten", "still_failing", "fixed", "vanished", "newly_skipped")
NONE: dict[str, Any] = dict.fromkeys((*_LISTS, "vacuous", "flaky"), ())


def test_a_refutation_is_an_annotation_for_each_test_at_its_line_and_stands_on_the_page() -> None:
    names = ("tests/test_a.py::test_one", "tests/test_a.py::test_two", "../up.py::test", "pkg.Test")
    made = proof("x", **NONE | {"new_failures": names, "weakened": ("b_test.py::gone",)}, tail=TAIL)
    report = step("x", check=checked("x", status="refuted", proof=made))
    found = annotations(report, fails=True, folder="app/")
    assert found[1:6] == [
        Annotation("error", "fails now: tests/test_a.py::test_one", "app/tests/test_a.py", 17),
        Annotation("error", "fails now: tests/test_a.py::test_two", "app/tests/test_a.py", 21),
        Annotation("error", "fails now: ../up.py::test"),
        Annotation("error", "fails now: pkg.Test"),
        Annotation(
            "error", "removed or skipped, and fails as it was: b_test.py::gone", "app/b_test.py"
        ),
    ]
    tolerated = annotations(report, fails=False)
    assert {one.level for one in tolerated if "fails now" in one.message} == {"warning"}
    assert outputs(report, NO_PUSH, "")["proof"] == "refuted"
    page = summary(report, NO_PUSH)
    assert "#### Proof: refuted" in page
    assert f"guard prove --baseline {'a' * 12} --head {'a' * 12} --no-cache --command x" in page
    assert "tests/test_a.py:21: AssertionError" in page
    assert "Proof" not in summary(step("x", check=checked("x", proof=None)), NO_PUSH)


def test_many_failing_tests_are_ten_annotations_and_the_rest_is_counted() -> None:
    names = tuple(f"tests/test_a.py::test_{n}" for n in range(200))
    report = step("x", check=checked("x", proof=proof("x", **NONE | {"new_failures": names})))
    shown = [line for line in lines(annotations(report, fails=True)) if line.startswith("::error")]
    assert len(shown) == MOST_OF_A_LEVEL
    assert "and 192 more lines" in shown[-1]
    assert "and 175 more" in summary(report, NO_PUSH)
