"""What a person can do from the dashboard, and who cannot."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support import TIME_LIMIT, commit, run, write
from tests.support.dashboards import Served, serve


def events(*types: str) -> list[dict[str, object]]:
    words = [word for name in types for word in ("--type", name)]
    found: list[dict[str, object]] = run("log", *words, "--format", "json").json["events"]
    return found


def form_token(text: str) -> str:
    return str(re.findall(r'name="token" value="([^"]+)"', text)[0])


def breaker() -> str:
    return str(run("breaker", "show", "--format", "json").json["state"])


@pytest.fixture
def begun(repository: Path) -> Path:
    commit(repository)
    run("baseline")
    return repository


def worktree(served: Served) -> str:
    start = served.ask("/").headers["location"]
    return str(re.findall(r'name="worktree" value="([^"]+)"', served.ask(start).text)[0])


def test_the_breaker_is_tripped_and_reset(begun: Path) -> None:
    with serve(begun) as served:
        start = served.ask("/").headers["location"]
        token, key = form_token(served.ask(start).text), worktree(served)
        answer = served.post(f"{start}breaker", token=token, do="trip", worktree=key)
        assert (answer.status, answer.headers["location"]) == (303, start)
        assert breaker() == "open"
        assert "Reset" in served.ask(start).text
        served.post(f"{start}breaker", token=token, do="reset", worktree=key)
        assert breaker() == "closed"
        odd = served.post(f"{start}breaker", token=token, do="burn", worktree=key)
        other = served.post(f"{start}breaker", token=token, do="trip", worktree="nobodys")
        assert (odd.status, other.status) == (409, 409)
        assert breaker() == "closed"


@pytest.mark.parametrize("path", ["breaker", "answer", "run/r1/stop"])
def test_an_action_wants_its_token_and_a_page_of_this_server(path: str, begun: Path) -> None:
    with serve(begun) as served:
        start = served.ask("/").headers["location"]
        token, key = form_token(served.ask(start).text), worktree(served)
        form: dict[str, Any] = {"do": "trip", "worktree": key, "question": "q", "text": "t"}
        before = events()
        own = {"Origin": f"http://{served.host}"}
        refused = [
            served.post(f"{start}{path}", **form),
            served.post(f"{start}{path}", token="", **form),
            served.post(f"{start}{path}", token="wrong", **form),
            served.post(f"{start}{path}", {}, token=token, **form),
            served.post(f"{start}{path}", {"Origin": "null"}, token=token, **form),
            served.post(f"{start}{path}", {"Origin": "http://a.example"}, token=token, **form),
            served.post(f"{start}{path}", {**own, "Sec-Fetch-Site": "same-site"}, token=token),
            served.ask(f"{start}{path}", method="POST", headers=own, cookie=""),
        ]
        assert [answer.status for answer in refused] == [403] * len(refused)
        assert served.ask(f"{start}{path}").status in (404, 405)
        assert served.ask(f"{start}{path}?token={token}&do=trip&worktree={key}").status == 403
        huge = served.post(f"{start}{path}", token=token, text="x" * 100_000)
        assert huge.status == 413
        assert events() == before


def test_read_only_refuses_and_offers_nothing(begun: Path) -> None:
    with serve(begun, "--read-only") as served:
        start = served.ask("/").headers["location"]
        text = served.ask(start).text
        assert "<form" not in text
        assert "read only" in text
        before = events()
        for path in ("breaker", "answer", "run/r1/stop"):
            answer = served.post(f"{start}{path}", token=served.token, do="trip")
            assert answer.status == 403
            assert "--read-only" in answer.text
        assert events() == before


def test_a_run_is_stopped_and_its_work_is_kept(begun: Path) -> None:
    ready = begun.parent / "ready"
    does = f"echo work > left.txt; : > '{ready}'; exec sleep 600"
    words = ["run", "--no-probe", "--format", "json", "--", "sh", "-c", does]
    agent = subprocess.Popen(
        [sys.executable, "-m", "guard", *words],
        cwd=begun,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        with serve(begun) as served:
            start = served.ask("/").headers["location"]
            # The run begins at its own pace; each look is an answer of the server.
            while not ready.exists() or "under way" not in served.ask(start).text:
                assert agent.poll() is None, agent.communicate()
            rows = served.ask(start).text.split("<tr>")
            (row,) = [each for each in rows if "under way" in each]
            (link,) = re.findall(r'href="([^"]+/run/[^"/]+)"', row)
            page = served.ask(link).text
            assert "Stop this run" in page
            answer = served.post(f"{link}/stop", token=form_token(page))
            assert answer.status == 303, answer.text
            _, err = agent.communicate(timeout=TIME_LIMIT)
            assert agent.returncode != 0, err
            again = served.post(f"{link}/stop", token=form_token(page))
            assert again.status == 409
            assert "no iteration under way" in again.text
    finally:
        if agent.poll() is None:
            agent.kill()
            agent.communicate()
    assert (begun / "left.txt").read_text() == "work\n"


def test_a_question_of_the_plan_is_answered(begun: Path) -> None:
    plan = {"tasks": [{"id": "one", "title": "Do the first thing"}]}
    write(begun / "plan.json", json.dumps(plan))
    asked = "Which <b>database</b>?\nSQLite or\u202e another?"
    with serve(begun) as served:
        start = served.ask("/").headers["location"]
        loaded = run("plan", "load", "plan.json")
        assert loaded.code == 0, loaded.err
        assert run("plan", "ask", asked).code == 0
        text = served.ask(start).text
        assert "Which &lt;b&gt;database&lt;/b&gt;?" in text
        assert "\u202e" not in text
        (question,) = re.findall(r'name="question" value="([^"]+)"', text)
        empty = served.post(f"{start}answer", token=form_token(text), question=question, text=" ")
        assert empty.status == 409
        done = served.post(
            f"{start}answer", token=form_token(text), question=question, text="SQLite"
        )
        assert done.status == 303, done.text
        again = served.post(
            f"{start}answer", token=form_token(text), question=question, text="MySQL"
        )
        assert again.status == 409
        assert 'name="question"' not in served.ask(start).text
    (given,) = events("divine_response_received")
    assert given["response"] == "SQLite"
