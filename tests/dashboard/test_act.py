"""What a person can do from the dashboard, and who cannot."""

import html
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.streams import init, jsonl, result, uses
from tests.support import TIME_LIMIT, commit, run, write
from tests.support.dashboards import Served, serve
from tests.support.sessions import QUICK


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


QUESTION = "With or without VAT? <b>{feedback}</b>"


def asking_agent(folder: Path) -> Path:
    """An agent that keeps each prompt, and asks until it has been told."""
    asks = jsonl(
        init(),
        uses("AskUserQuestion", arguments={"questions": [{"question": QUESTION}]}),
        result("I wait."),
    )
    write(folder / "asks.jsonl", asks)
    agent = write(
        folder / "claude",
        f"#!/bin/sh\nn=$(ls {folder}/prompts | wc -l); cat > {folder}/prompts/$n\n"
        f"case $n in 0) cat {folder}/asks.jsonl;;\n"
        "*) date +%s%N > done.txt; git add done.txt; git commit -q -m 'feat: it';; esac\n",
    )
    agent.chmod(0o755)
    (folder / "prompts").mkdir()
    return agent


def test_the_answer_to_a_question_of_a_loop_is_in_its_next_prompt(
    begun: Path, tmp_path: Path
) -> None:
    agent, prompt = asking_agent(tmp_path / "agent"), write(tmp_path / "prompt.md", "Go on.\n")
    words = ("--no-probe", *QUICK, "--prompt-file", prompt, "--", agent)
    assert run("loop", "--max-iterations", "3", *words).code == 14
    assert run("report", "--format", "json").json["needs_you"][0]["text"] == QUESTION
    with serve(begun) as served:
        start = served.ask("/").headers["location"]
        text = served.ask(start).text
        assert QUESTION not in text
        assert html.escape(QUESTION) in text
        [question] = re.findall(r'name="question" value="([^"]+)"', text)
        token, path = form_token(text), f"{start}answer"
        for odd in (f"{question}9", "none/1", f"{question}/1", "../1", "a/b"):
            assert served.post(path, token=token, question=odd, text="x").status in (404, 409)
        assert served.post(path, token=token, question=question, text=" ").status == 409
        assert served.post(path, token=token, question=question, text="x" * 70_000).status == 413
        assert events("question_answered") == []
        answer = "Without.\nIt is added at the till: €"
        done = served.post(path, token=token, question=question, text=answer)
        assert done.status == 303, done.text
        assert 'name="question"' not in served.ask(start).text
        assert served.post(path, token=token, question=question, text="With").status == 409
    assert [each["kind"] for each in run("report", "--format", "json").json["needs_you"]] == []
    assert run("loop", "--max-iterations", "2", *words).code == 0
    prompts = [(tmp_path / "agent" / "prompts" / str(number)).read_text() for number in range(3)]
    assert prompts[0] == "Go on.\n"
    assert prompts[1].startswith("Go on.\n\nA person has answered the question")
    assert f"Question: {QUESTION}\nAnswer: {answer}\n" in prompts[1]
    assert prompts[2] == "Go on.\n"


def test_an_answer_that_no_prompt_can_have_is_told(begun: Path, tmp_path: Path) -> None:
    agent = asking_agent(tmp_path / "agent")
    words = ("--max-iterations", "1", "--no-probe", *QUICK, "--", agent)
    assert run("loop", *words).code == 14
    with serve(begun) as served:
        start = served.ask("/").headers["location"]
        text = served.ask(start).text
        [question] = re.findall(r'name="question" value="([^"]+)"', text)
        served.post(f"{start}answer", token=form_token(text), question=question, text="Without")
    done = run("loop", *words)
    assert (done.code, "is in no prompt" in done.err) == (0, True)
