"""The formats of a report: nothing in them obeys text from outside, and none of them shows a secret."""

import json
from datetime import datetime
from html.parser import HTMLParser
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

import guard
from guard.errors import WrongUsage
from tests.support import run
from tests.support.nights import HOSTILE, TOKEN


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        assert not any(name.startswith("on") or name in ("href", "src") for name, _ in attrs)


@pytest.mark.parametrize("form", ["text", "markdown", "json"])
def test_no_format_shows_a_secret(form: str, night: Path) -> None:
    shown = run("report", "--format", form).out
    assert "keys.py" in shown or "keys&#46;py" in shown
    assert TOKEN not in shown
    assert "redacted" in shown


def test_a_secret_of_the_environment_is_taken_out_too(night: Path) -> None:
    shown = run("report", env={"SOME_TOKEN": "feat: add one"}).out
    assert "feat: add one" not in shown


def test_markdown_is_what_it_says_and_no_markup_of_others(night: Path) -> None:
    text = run("report", "--format", "markdown").out
    tags = Tags()
    tags.feed(
        MarkdownIt("commonmark", {"html": True, "linkify": True}).enable("table").render(text)
    )
    assert tags.seen <= {"h2", "h3", "p", "ul", "li", "code", "br", "strong"}
    assert "Needs you" in text
    assert text.index("Needs you") < text.index("7 iterations in 2 runs") < text.index("To review")


def test_text_puts_what_needs_a_person_first_and_then_the_headline(night: Path) -> None:
    shown = run("report").out
    parts = (
        "Needs you:",
        "question: Which of",
        "7 iterations in 2 runs",
        "To review:",
        "Iterations:",
    )
    places = [shown.index(part) for part in parts]
    assert places == sorted(places)
    assert HOSTILE in shown
    for command in ("$ git revert ", "$ guard restore ", "$ claude --resume "):
        assert command in shown


def test_json_is_one_document(night: Path) -> None:
    done = run("report", "--format", "json")
    assert json.loads(done.out)["schema"] == "guard/report/1"


def test_python_gets_the_same_document(night: Path) -> None:
    found = guard.report()
    shown = run("report", "--format", "json").json
    assert found.headline.iterations == 7
    assert json.loads(found.model_dump_json())["review"] == shown["review"]
    assert guard.report(found.runs[0].run).range.run == found.runs[0].run
    with pytest.raises(WrongUsage):
        guard.report(found.runs[0].run, since=found.made_at)
    with pytest.raises(WrongUsage):
        guard.report(since=datetime(2026, 1, 1))  # noqa: DTZ001
