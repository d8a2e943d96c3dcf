"""The pages say what the log says, and text from outside stays text."""

import html
import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.support import commit, git, new_repository, run
from tests.support.dashboards import Served, serve
from tests.support.nights import FILE, HOSTILE, TOKEN


class Page(HTMLParser):
    """What a browser would find: scripts, handlers, places to go."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.scripts: list[str | None] = []
        self.links: list[str] = []
        self.text = ""
        self._holds = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        assert not any(name.startswith("on") or name == "style" for name in given), given
        assert tag != "img"
        if tag == "script":
            self.scripts.append(given.get("src"))
        if tag == "a":
            self.links.append(given.get("href") or "")

    def handle_data(self, data: str) -> None:
        self.text += data


def pages_of(served: Served) -> dict[str, Page]:
    """Every page that can be reached from the first one."""
    found: dict[str, Page] = {}
    waiting = [served.ask("/").headers.get("location", "/")]
    while waiting:
        path = waiting.pop()
        answer = served.ask(path)
        assert answer.status == 200, path
        found[path] = Page(answer.text)
        for link in found[path].links:
            place = link.partition("#")[0]
            if place and place not in found and place not in waiting:
                assert place.startswith("/"), link
                waiting.append(place)
    return found


def test_every_page_can_be_reached_and_nothing_in_it_runs(served: Served) -> None:
    pages = pages_of(served)
    assert sum("/run/" in path for path in pages) == 7 + 2
    for path, page in pages.items():
        assert page.scripts == ["/static/htmx.min.js", "/static/dashboard.js"], path
        assert TOKEN not in page.text
    shown = "".join(page.text for page in pages.values())
    assert HOSTILE.split()[0] in shown
    assert "<img src=x onerror=alert(2)>.py" in shown
    assert FILE in shown


def test_the_pages_agree_with_the_report_and_the_log(served: Served) -> None:
    report = run("report", "--format", "json").json
    pages = pages_of(served)
    for each in report["iterations"]:
        (path,) = [path for path in pages if path.endswith(f"/run/{each['run']}/{each['number']}")]
        shown = json.loads(
            run("show", str(each["number"]), "--run", each["run"], "--format", "json").out
        )
        text = pages[path].text
        assert f"Iteration {each['number']}" in text
        assert {"complete": "complete", "timeout": "stalled"}.get(
            each["status"], each["status"]
        ) in text
        for fact in shown["evidence"]:
            assert fact["source"] in text
            assert TOKEN in fact["fact"] or fact["fact"] in text
        for line in shown["commits"]:
            assert line["oid"][:10] in text
        for entry in shown["transcript"]:
            assert TOKEN in entry["text"] or entry["text"].splitlines()[0] in text
    overview = next(page for path, page in pages.items() if path.count("/") == 3)
    for need in report["needs_you"]:
        assert need["command"] in overview.text


def test_a_run_that_goes_on_is_read_on(repository: Path) -> None:
    commit(repository)
    with serve(repository) as served:
        start = served.ask("/").headers["location"]
        assert "no run of this repository yet" in served.ask(start).text
        run("run", "--no-probe", "--no-wait", "--", "true")
        shown = served.ask(start).text
        assert "no run of this repository yet" not in shown
        (link,) = re.findall(r'href="([^"]+/run/[^"]+)"', shown)
        assert "Iterations" in served.ask(html.unescape(link)).text


@pytest.mark.parametrize(
    "path", ["/nothing", "/w/none/", "{start}run/none", "{start}run/a%2fb", "{start}run/none/1"]
)
def test_a_page_that_is_not_there_says_so(path: str, served: Served) -> None:
    start = served.ask("/").headers["location"]
    answer = served.ask(path.format(start=start))
    assert answer.status == 404
    assert "<script>alert" not in answer.text


def test_a_log_that_is_gone_is_told_and_no_empty_night(repository: Path) -> None:
    commit(repository)
    run("run", "--no-probe", "--no-wait", "--", "true")
    with serve(repository) as served:
        start = served.ask("/").headers["location"]
        assert served.ask(start).status == 200
        Path(run("where").out.strip(), "events.jsonl").unlink()
        answer = served.ask(start)
    assert answer.status == 500
    assert "This cannot be shown" in answer.text


def test_all_workspaces_of_the_index(tmp_path: Path, repository: Path) -> None:
    commit(repository)
    other = new_repository(tmp_path / "an-other-one", "first.txt")
    gone = new_repository(tmp_path / "one-that-goes", "first.txt")
    for root in (repository, other, gone):
        run("run", "--no-probe", "--no-wait", "--", "true", cwd=root)
    shutil.rmtree(gone)
    with serve(repository, "--all") as served:
        answer = served.ask("/")
        assert answer.status == 200
        links = re.findall(r'<a href="(/w/[^"]+/)">([^<]+)</a>', answer.text)
        names = {name for _, name in links}
        assert {repository.name, "an-other-one"} <= names
        assert len(links) == 3
        for link, _ in links:
            assert served.ask(link).status == 200
    assert git(other, "status", "--porcelain") == ""
