"""axe-core finds nothing wrong with the report and with each page of the dashboard, for those who cannot see or point."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.dashboard.test_browser import PAGES, every_page
from tests.support import commit, new_repository, run, write
from tests.support.browsers import open_browser
from tests.support.dashboards import serve
from tests.support.npm import Packages, Unavailable, install

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.long
_AXE = Packages("npm-axe", (), {"axe-core": "4.14.1"})
_ENVIRON = dict(os.environ)


@pytest.fixture(scope="module")
def axe() -> str:
    try:
        programs = install(_AXE, _ENVIRON)
    except Unavailable as error:
        if os.environ.get("GUARD_TESTS_REQUIRE_BROWSER"):
            pytest.fail(str(error))
        pytest.skip(str(error))
    return (programs.parent / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


@pytest.fixture(params=["light", "dark"])
def page(request: pytest.FixtureRequest) -> Iterator["Page"]:
    with open_browser() as browser:
        yield new_page(browser, request.param)


def new_page(browser: "Browser", scheme: Any) -> "Page":
    # The policy of the pages would keep the examiner out, too.
    return browser.new_context(color_scheme=scheme, bypass_csp=True).new_page()


def issues(page: "Page", axe: str) -> list[str]:
    page.evaluate(axe)
    found = page.evaluate("axe.run(document)")
    assert len(found["passes"]) > 10
    return [
        f"{each['impact']}: {each['id']}: {each['nodes'][0]['html'][:200]}"
        for each in found["violations"]
    ]


def test_the_pages_of_a_night(night: Path, tmp_path: Path, page: "Page", axe: str) -> None:
    assert run("report", "--html", tmp_path / "night.html").code == 0
    page.goto((tmp_path / "night.html").as_uri())
    for each in page.locator("details").all():
        each.evaluate("each => each.open = true")
    assert issues(page, axe) == []
    with serve(night) as served:
        page.goto(served.address)
        for path in [*every_page(served), "/nothing"]:
            page.goto(f"http://{served.host}{path}")
            assert issues(page, axe) == [], path
        page.evaluate("document.body.append(new Image())")
        assert any(each.startswith("critical: image-alt") for each in issues(page, axe))


def test_the_pages_of_a_plan_and_of_all_workspaces(
    repository: Path, tmp_path: Path, page: "Page", axe: str
) -> None:
    run("run", "--no-probe", "--no-wait", "--", "true", cwd=new_repository(tmp_path / "b", "a.txt"))
    commit(repository)
    tasks = [{"id": "one", "title": "One"}, {"id": "two", "title": "Two", "depends": ["one"]}]
    write(repository / "plan.json", json.dumps({"tasks": tasks}))
    assert run("plan", "load", "plan.json").code == 0
    assert run("plan", "ask", "Which database?").code == 0
    assert run("agent", "spawn", "--task", "one", "--agent", "a1").code == 0
    run("breaker", "trip")
    with serve(repository, "--all") as served:
        page.goto(served.address)
        assert issues(page, axe) == []
        link = page.locator("main a[href$='/']").first
        start = f"{link.get_attribute('href')}"
        for name in PAGES:
            page.goto(f"http://{served.host}{start}{name}")
            assert issues(page, axe) == [], name
