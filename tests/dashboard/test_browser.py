"""The dashboard in a real browser."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from tests.dashboard.test_log_page import counted, shown
from tests.streams import init, jsonl, result, says
from tests.support import commit, git, run, write
from tests.support.browsers import Tab, open_browser
from tests.support.dashboards import Served, serve

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.long
PAGES = ("", "agents", "plan", "log")


@pytest.fixture
def browser() -> Iterator["Browser"]:
    with open_browser() as browser:
        yield browser


def every_page(served: Served) -> list[str]:
    start = served.ask("/").headers["location"]
    found = [f"{start}{name}" for name in PAGES]
    for link in dict.fromkeys(re.findall(r'href="([^"]+/run/[^"]+)"', served.ask(start).text)):
        found.append(link)
        listed = re.findall(r'href="([^"]+/run/[^"]+/\d+)"', served.ask(link).text)
        found += dict.fromkeys(listed)
    return found


@pytest.mark.parametrize(("scheme", "width"), [("light", 1200), ("dark", 1200), ("light", 360)])
def test_every_page_is_quiet_fits_and_runs_nothing_planted(
    scheme: Any, width: int, night: Path, browser: "Browser"
) -> None:
    with serve(night) as served:
        page = browser.new_page(
            color_scheme=scheme, viewport={"width": width, "height": 800}, service_workers="block"
        )
        tab = Tab(page)
        tab.open(served.address)
        assert "token" not in page.url
        for path in every_page(served):
            tab.open(f"http://{served.host}{path}")
            assert tab.fits(), path
            back = page.evaluate("getComputedStyle(document.body).backgroundColor")
            light = sum(int(part) for part in re.findall(r"\d+", back)[:3]) > 3 * 128
            assert light == (scheme == "light"), path
            assert page.evaluate("document.cookie") == ""
        assert tab.trouble == []


def test_the_page_takes_in_what_is_recorded_without_a_reload(
    repository: Path, browser: "Browser"
) -> None:
    commit(repository)
    run("baseline")
    with serve(repository) as served:
        page = browser.new_page()
        tab = Tab(page)
        tab.open(served.address)
        page.evaluate("window.sameDocument = true")
        run("breaker", "trip", "--reason", "tripped_by_hand")
        page.locator("#needs", has_text="tripped_by_hand").wait_for()
        run("breaker", "reset")
        page.locator("#needs", has_text="tripped_by_hand").wait_for(state="detached")
        assert page.evaluate("window.sameDocument") is True
        assert tab.trouble == []


def test_the_slider_shows_the_right_state_at_random_events(night: Path, browser: "Browser") -> None:
    records = run("log", "--format", "json").json["events"]
    with serve(night) as served:
        page = browser.new_page()
        tab = Tab(page)
        tab.open(served.address)
        start = served.ask("/").headers["location"]
        tab.open(f"http://{served.host}{start}log")
        page.evaluate("window.sameDocument = true")
        for seq in Random(21).sample(range(1, len(records)), 20):
            page.evaluate(
                "seq => { const at = document.getElementById('at'); at.value = seq;"
                " at.dispatchEvent(new Event('input', {bubbles: true})); }",
                seq,
            )
            page.wait_for_selector(f'#moment[data-at="{seq}"]')
            expected = counted([each for each in records if each["seq"] <= seq])
            assert shown(page.content()) == expected, seq
        assert page.evaluate("window.sameDocument") is True
        assert tab.trouble == []


def test_a_check_is_judged_again_on_its_page(night: Path, browser: "Browser") -> None:
    with serve(night) as served:
        page = browser.new_page()
        tab = Tab(page)
        tab.open(served.address)
        record = run("log", "--type", "check_made", "--format", "json").json["events"][0]
        start = served.ask("/").headers["location"]
        tab.open(f"http://{served.host}{start}run/{record['run']}/{record['iteration']}")
        page.fill("#set-max_probes", "nonsense")
        page.click("#judge button")
        page.locator("#judged", has_text="max_probes").wait_for()
        page.fill("#set-max_probes", "1")
        page.click("#judge button")
        page.locator("#judged", has_text="Rules asked").wait_for()
        assert tab.trouble == []


def test_the_buttons_act_as_their_words_say(repository: Path, browser: "Browser") -> None:
    commit(repository)
    run("baseline")
    with serve(repository) as served:
        page = browser.new_page()
        tab = Tab(page)
        tab.open(served.address)
        page.click("#breakers button.danger")
        page.locator("#breakers", has_text="open").wait_for()
        assert run("breaker", "show", "--format", "json").json["state"] == "open"
        page.click("#breakers button:has-text('Reset')")
        page.locator("#breakers", has_text="closed").wait_for()
        assert run("breaker", "show", "--format", "json").json["state"] == "closed"
        assert tab.trouble == []


BRANCH = "<img/src=x/onerror=alert(3)>"
SAYS = "<svg onload=alert(4)></svg><script>alert(5)</script>"


def test_what_branches_agents_and_questions_say_runs_nowhere(
    repository: Path, tmp_path: Path, browser: "Browser"
) -> None:
    commit(repository)
    git(repository, "switch", "-q", "-c", BRANCH)
    said = jsonl(init(), says(SAYS), result(SAYS))
    agent = write(
        tmp_path / "claude",
        f"#!/bin/sh\ncat <<'EOF'\n{said.decode()}EOF\necho left > '{BRANCH.replace('/', ' ')}.txt'\n",
    )
    agent.chmod(0o755)
    run("run", "--no-probe", "--task", "one", "--agent-id", "a1", "--", agent)
    spawned = run("agent", "spawn", "--task", "one", "--agent", "a2", "--message", SAYS)
    assert spawned.code == 0, spawned.err
    write(repository / "plan.json", json.dumps({"tasks": [{"id": "one", "title": SAYS}]}))
    assert run("plan", "load", "plan.json").code == 0
    assert run("plan", "ask", SAYS).code == 0
    page = browser.new_page()
    tab = Tab(page)
    with serve(repository) as served:
        tab.open(served.address)
        seen = ""
        for path in every_page(served):
            tab.open(f"http://{served.host}{path}")
            seen += page.inner_text("body")
        assert SAYS in seen
        assert BRANCH in seen
        assert tab.trouble == []


def test_on_paper_a_page_is_dark_on_light_and_not_wider_than_the_paper(
    night: Path, tmp_path: Path, browser: "Browser"
) -> None:
    assert run("report", "--html", tmp_path / "night.html").code == 0
    page = browser.new_page(color_scheme="dark", viewport={"width": 700, "height": 900})
    page.goto((tmp_path / "night.html").as_uri())
    colours = (
        "[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]"
    )
    assert light_of(page.evaluate(colours)[0]) > light_of(page.evaluate(colours)[1])
    page.emulate_media(media="print", color_scheme="dark")
    text, paper = page.evaluate(colours)
    assert light_of(text) < 200 < 700 < light_of(paper)
    assert page.evaluate(
        "Math.max(...[...document.querySelectorAll('section.card table')].map(e => e.getBoundingClientRect().right))"
    ) <= page.evaluate("innerWidth")
    assert not page.locator("nav.parts").is_visible()


def light_of(colour: str) -> int:
    return sum(int(part) for part in re.findall(r"\d+", colour)[:3])
