"""The page of a report: one file that asks for nothing, obeys no text from outside, and shows no secret."""

import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import pytest

from guard.context.invocation import Invocation
from guard.core.report.document import NightReport, ReportNeed
from guard.report.gather import make_report
from guard.report.page import render_page
from tests.support import run
from tests.support.nights import FILE, HOSTILE, KEY, TOKEN

_ALLOWED = {
    *(
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "div",
        "header",
        "nav",
        "main",
        "footer",
        "section",
    ),
    *(
        "h1",
        "h2",
        "h3",
        "p",
        "ul",
        "ol",
        "li",
        "a",
        "span",
        "small",
        "strong",
        "b",
        "i",
        "code",
        "time",
        "br",
    ),
    *("dl", "dt", "dd", "table", "thead", "tbody", "tr", "th", "td", "details", "summary", "pre"),
    *("svg", "g", "rect", "line", "path", "text", "polyline", "polygon", "ins", "del"),
}
_VOID = {"meta", "br"}


class Page(HTMLParser):
    """Reads a page, and refuses what such a page never has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text, self.ids, self.targets, self.csp = "", set[str](), set[str](), ""
        self.titles: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in _ALLOWED, tag
        given = dict(attrs)
        for name, value in given.items():
            assert not name.startswith("on")
            assert name not in ("style", "src", "srcset", "action", "xlink:href")
            assert name != "href" or (value or "").startswith("#")
        self.ids |= {given["id"] or ""} if "id" in given else set()
        self.targets |= {(given["href"] or "")[1:]} if "href" in given else set()
        if given.get("http-equiv") == "Content-Security-Policy":
            self.csp = given["content"] or ""
        if given.get("role") in ("img", "region", "group"):
            assert given.get("aria-label")
        if "title" in given:
            self.titles.append(given["title"] or "")
        if tag not in _VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def page_of(tmp_path: Path) -> str:
    file = tmp_path / "night.html"
    done = run("report", "--html", file)
    assert done.code == 0, done.err
    assert done.out.endswith(f"{file}\n")
    return file.read_text()


def test_the_page_asks_for_nothing_and_its_policy_allows_its_own_style_alone(
    night: Path, tmp_path: Path
) -> None:
    text = page_of(tmp_path)
    page = Page(text)
    [style] = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    digest = b64encode(sha256(style.encode()).digest()).decode()
    assert page.csp.split("; ")[:2] == ["default-src 'none'", f"style-src 'sha256-{digest}'"]
    assert not re.search(r"@import|url\(|https?://", text)
    assert page.targets <= page.ids


def test_the_page_has_every_part_and_what_needs_a_person_comes_first(
    night: Path, tmp_path: Path
) -> None:
    page = Page(page_of(tmp_path))
    parts = (
        "needs",
        "verdicts",
        "time",
        "hours",
        "review",
        "rescues",
        "cost",
        "proofs",
        "limits",
        "iterations",
    )
    assert set(parts) <= page.ids
    words = (
        "Needs you",
        "Which of",
        "claude --resume",
        "iterations in 2 runs",
        "Verdicts",
        "Time line",
    )
    body = page.text[page.text.index("Needs you") :]
    places = [body.index(word) for word in (*words, "To review", "git revert ")]
    assert places == sorted(places)
    assert any(title.startswith("2 refuted: ") for title in page.titles)


def test_text_from_outside_stays_text_and_secrets_are_taken_out(
    night: Path, tmp_path: Path
) -> None:
    text = page_of(tmp_path)
    page = Page(text)
    assert HOSTILE in page.text
    assert "<script" not in text
    assert TOKEN not in text
    assert "[redacted]" in page.text


def test_the_changes_of_commits_are_shown_without_their_secrets(
    night: Path, tmp_path: Path
) -> None:
    text = page_of(tmp_path)
    page = Page(text)
    assert f"+ {FILE}" in page.text
    assert "+</pre><script>alert(1)</script>" in page.text
    assert "<ins>+t</ins>" in text
    assert not [line for line in KEY.splitlines() if line in page.text]
    assert TOKEN not in page.text
    assert "+key = '[redacted]\n+[redacted]\n" in page.text


@pytest.mark.parametrize("field", ["repository", "text", "command"])
def test_every_character_of_a_text_is_seen(field: str, night: Path) -> None:
    nasty = '"><script>alert(1)</script>\u202etxt.exe\x1b[31m\u2066&amp;\n{{ 7 * 7 }}'
    report = make_report(Invocation())
    if field == "repository":
        report = report.model_copy(update={"repository": nasty})
    else:
        need: ReportNeed = report.needs_you[0].model_copy(update={field: nasty})
        report = report.model_copy(update={"needs_you": (need,)})
    text = render_page(report)
    page = Page(text)
    assert '"><script>alert(1)</script>\\u202etxt.exe\\x1b[31m\\u2066&amp; {{ 7 * 7 }}' in page.text
    assert "\u202e" not in text


def test_with_a_format_the_report_is_printed_too(night: Path, tmp_path: Path) -> None:
    done = run("report", "--html", tmp_path / "a.html", "--format", "json")
    assert NightReport.model_validate_json(done.out).headline.iterations == 7
    assert (tmp_path / "a.html").exists()


def test_a_file_that_cannot_be_written_is_told(night: Path, tmp_path: Path) -> None:
    done = run("report", "--html", tmp_path / "none" / "a.html")
    assert (done.code, "cannot be written" in done.err) == (2, True)


def test_an_empty_log_makes_a_page_too(repository: Path, tmp_path: Path) -> None:
    assert "Nothing needs you now." in Page(page_of(tmp_path)).text
