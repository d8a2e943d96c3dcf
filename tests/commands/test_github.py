"""`guard github`: the parts of a step as a runner calls them, with real repositories and a real server that refuses."""

import html
import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from guard.core.check.report import CheckReport
from guard.core.github.report import Push
from guard.git.locate import repository_at
from guard.github.environment import JobEnvironment, empty_files
from guard.github.push import push_rescue
from tests.core.github.test_github import read_as_a_runner
from tests.support import Result, commit, git, run, write
from tests.support.steps import checked, step

TOKEN = "ghp_" + "Zq8" * 12
QUICK = {
    "GUARD_ACTION_NO_PROBE": "true",
    "GUARD_ACTION_MAX_PROBES": "1",
    "GUARD_ACTION_PROBE_INTERVAL": "0",
    "GUARD_ACTION_AGENT": "",
}


@pytest.fixture
def job(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one commit, in a job of a runner."""
    commit(repository, "first.txt")
    for name in ("OUTPUT", "STEP_SUMMARY", "ENV", "PATH", "STATE"):
        monkeypatch.setenv(f"GITHUB_{name}", str(write(tmp_path / "files" / name, "")))
    monkeypatch.setenv("RUNNER_TEMP", str(tmp_path / "temp"))
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    return repository


def github(verb: str, **variables: str) -> Result:
    named = {f"GUARD_ACTION_{name.upper()}": text for name, text in variables.items()}
    return run("github", verb, env={**QUICK, **named})


def told(tmp_path: Path) -> dict[str, str]:
    return read_as_a_runner((tmp_path / "files" / "OUTPUT").read_text())


HOSTILE_AGENT = """
echo '::set-output name=complete::true'
cd ../files
rm OUTPUT && ln -s "$HOME/elsewhere" OUTPUT
printf 'LD_PRELOAD=/tmp/x.so\\n' >> ENV
printf '/tmp/planted\\n' >> PATH
printf 'json<<EOF\\n' > STATE
env > "$HOME/seen"
printf 'no newline'
"""


def test_an_agent_changes_nothing_of_what_the_step_says(
    job: Path, tmp_path: Path, home: Path
) -> None:
    name = '$(id)\n::error::x,y<b>"'
    done = github(
        "step",
        script=HOSTILE_AGENT + f"cd ../project\necho x > {json.dumps(name)!s}".replace("$", "\\$"),
    )
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    word = lines[0].removeprefix("::stop-commands::")
    assert lines[0].startswith("::stop-commands::guard-")
    assert lines[-1] == f"::{word}::"
    assert "that the agent had written to: ENV, OUTPUT, PATH, STATE" in done.err
    assert [(tmp_path / "files" / one).read_text() for one in ("ENV", "PATH", "STATE")] == [""] * 3
    assert not (home / "elsewhere").exists()
    seen = (home / "seen").read_text()
    assert "GUARD_ACTION_" not in seen
    assert "GITHUB_OUTPUT" not in seen

    done = github("publish", token=TOKEN)
    assert done.code == 10
    found = told(tmp_path)
    assert (found["complete"], found["status"], found["new-commits"]) == ("false", "timeout", "0")
    assert json.loads(found["json"])["schema"] == "guard/github-step/1"
    assert all(
        line.startswith(("::error ", "::warning ", "::notice ")) for line in done.out.splitlines()
    )
    assert "### guard: stalled" in (tmp_path / "files" / "STEP_SUMMARY").read_text()
    assert TOKEN not in done.out + done.err


def test_a_step_around_an_agent_that_guard_does_not_start(job: Path, tmp_path: Path) -> None:
    assert github("step", mode="check").code == 0
    assert github("publish", mode="check").code == 4
    assert told(tmp_path)["reason"] == "repository_problem"

    github("step", mode="baseline")
    assert github("publish", mode="baseline").code == 0
    assert (told(tmp_path)["status"], told(tmp_path)["save"]) == ("begun", "false")
    commit(job, "work.txt")
    github("step", mode="check")
    assert github("publish", mode="check").out.startswith("::notice title=guard::complete")
    found = told(tmp_path)
    assert (found["complete"], found["new-commits"], found["save"]) == ("true", "1", "true")


def test_the_work_is_held_against_the_command_of_the_workflow(job: Path, tmp_path: Path) -> None:
    # Neither the project's files nor the agent's variables name it.
    write(job / "guard.toml", '[prove]\ncommand = "true"\n')
    commit(job, "guard.toml")
    breaks = "export GUARD_ACTION_PROVE_COMMAND=true; git rm -q first.txt && git commit -qm done"
    github("step", script=breaks, prove_command="test -f first.txt")
    done = github("publish")
    assert done.code == 17
    assert done.out.startswith("::error title=guard::refuted: new_failures")
    found = told(tmp_path)
    assert (found["proof"], found["status"], found["complete"]) == ("refuted", "refuted", "false")
    page = (tmp_path / "files" / "STEP_SUMMARY").read_text()
    assert "#### Proof: refuted" in page
    assert "--no-cache --command 'test -f first.txt'" in html.unescape(page)

    github("step", script="git revert --no-edit HEAD", prove_command="test -f first.txt")
    assert github("publish").code == 0
    assert (told(tmp_path)["proof"], told(tmp_path)["complete"]) == ("proven", "true")


def test_stalls_around_an_agents_own_step_open_the_breaker(job: Path, tmp_path: Path) -> None:
    for _ in range(3):
        github("step", mode="baseline")
        github("step", mode="check")
    github("step", mode="baseline")
    assert github("publish", mode="baseline").code == 20
    assert (told(tmp_path)["status"], told(tmp_path)["breaker"]) == ("breaker_open", "open")
    assert github("publish", mode="baseline", fail_on="fault").code == 0


def test_state_that_the_cache_brought_damaged_is_put_aside(job: Path, tmp_path: Path) -> None:
    state = tmp_path / "temp" / "completion-guard" / "state"
    github("step", script="true")
    log = state / "events.jsonl"
    log.write_bytes(log.read_bytes().replace(b"timeout", b"TIMEOUT"))
    done = github("step", script="true")
    assert "the state of an earlier run is not used" in done.err
    assert state.with_name("state.refused").is_dir()
    github("publish")
    assert json.loads(told(tmp_path)["json"])["check"]["iteration"] == 1


def test_without_a_runner_around_it(job: Path, tmp_path: Path) -> None:
    bare = {name: "" for name in os.environ if name.startswith(("GITHUB_", "XDG_"))}
    told_only = {**bare, **QUICK, "GUARD_ACTION_SCRIPT": "true", "HOME": ""}
    done = run("github", "step", env=told_only)
    assert "stalled: no_commits" in done.out, done.err
    assert run("github", "publish", env=told_only).code == 10


def test_a_step_that_was_cut_short_is_a_fault(job: Path, tmp_path: Path) -> None:
    assert github("publish").code == 5
    assert (told(tmp_path)["status"], told(tmp_path)["reason"]) == ("fault", "no_result")


@pytest.mark.parametrize(
    ("verb", "variables", "said"),
    [
        ("step", {"script": ""}, "mode `run` needs a command"),
        ("step", {"mode": "else"}, "Invalid value for '--mode'"),
        ("publish", {"fail_on": "failure"}, "'failure' is not a status"),
    ],
)
def test_wrong_usage(verb: str, variables: dict[str, str], said: str, job: Path) -> None:
    done = github(verb, **variables)
    assert (done.code, said in done.err) == (2, True), done.err


def test_a_wrong_list_of_statuses_fails_after_the_verdict_was_told(
    job: Path, tmp_path: Path
) -> None:
    assert github("step", script="echo x > y && git add y && git commit -q -m y").code == 0
    assert github("publish", fail_on="timeout failure").code == 2
    assert (told(tmp_path)["status"], told(tmp_path)["complete"]) == ("complete", "true")


def test_the_key_of_the_cache_holds_nothing_that_a_name_could_break(
    job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_WORKFLOW", "a,b\n::error::x" * 100)
    keys = []
    for other in ("one", "two"):
        assert github("prepare", state_key=other).code == 0
        keys.append(told(tmp_path))
    assert keys[0]["general-key"] != keys[1]["general-key"]
    assert all(len(one["key"]) < 80 and "," not in one["key"] for one in keys)
    assert keys[0]["key"].startswith(keys[0]["general-key"])


@pytest.mark.parametrize(
    "document",
    [b"", b"[]", b"null", b"{", b'{"pull_request": 1}', b'{"pull_request": {"head": []}}', b"\xff"],
)
def test_an_odd_event_says_nothing(document: bytes, tmp_path: Path) -> None:
    path = write(tmp_path / "event.json", document)
    job = JobEnvironment({"GITHUB_EVENT_PATH": str(path), "GITHUB_SHA": "a" * 40})
    assert (job.pull_request, job.sha, job.from_fork) == (None, "a" * 40, False)


def rescued(repository: Path) -> tuple[str, Any]:
    oid = commit(repository, "rescued.txt")
    check = checked()
    assert check.rescue is not None
    return oid, check.model_copy(
        update={"rescue": check.rescue.model_copy(update={"commits": (oid,)})}
    )


def rescued_beside_a_server(repository: Path, tmp_path: Path) -> tuple[str, CheckReport]:
    """What was rescued, and an empty repository `o/n` to push it to."""
    commit(repository, "first.txt")
    git(tmp_path, "init", "-q", "--bare", "server/o/n")
    return rescued(repository)


def pushed(root: Path, check: CheckReport, server: str) -> Push:
    """Push what a check rescued to the repository `o/n` of this server."""
    environ = {**os.environ, "GITHUB_SERVER_URL": server, "GITHUB_REPOSITORY": "o/n"}
    return push_rescue(
        repository_at(root), JobEnvironment(environ), check, is_wanted=True, token=TOKEN
    )


def test_what_was_rescued_is_pushed_past_the_projects_own_configuration(
    repository: Path, tmp_path: Path, home: Path
) -> None:
    oid, check = rescued_beside_a_server(repository, tmp_path)
    write(repository / ".git" / "hooks" / "pre-push", "#!/bin/sh\ntouch $HOME/ran\n").chmod(0o755)
    git(repository, "config", "url.file:///nowhere.insteadOf", f"file://{tmp_path}")
    git(repository, "config", "--global", "url.file:///nowhere.insteadOf", f"file://{tmp_path}")
    found = pushed(repository, check, f"file://{tmp_path}/server")
    assert (found.why, found.ref) == ("pushed", "refs/heads/guard/rescue/r1-1")
    assert git(tmp_path / "server" / "o" / "n", "rev-parse", found.ref or "").strip() == oid
    assert not (home / "ran").exists()


@pytest.mark.parametrize(
    "branch",
    ["main", "refs/heads/main", "guard/rescue/../main", "guard/rescue/a:refs/heads/main", "x y"],
)
def test_no_report_has_another_branch_pushed_than_a_rescues(
    branch: str, repository: Path, tmp_path: Path
) -> None:
    _, check = rescued_beside_a_server(repository, tmp_path)
    assert check.rescue is not None
    forged = check.model_copy(update={"rescue": check.rescue.model_copy(update={"branch": branch})})
    found = pushed(repository, forged, f"file://{tmp_path}/server")
    assert (found.why, found.pushed) == ("refused", False)
    assert git(tmp_path / "server" / "o" / "n", "for-each-ref") == ""


def test_a_shallow_checkout_can_be_pushed_from(tmp_path: Path, repository: Path) -> None:
    commit(repository, "first.txt")
    commit(repository, "second.txt")
    git(tmp_path, "clone", "-q", "--bare", str(repository), "server/o/n")
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{tmp_path}/server/o/n", "shallow")
    git(tmp_path / "shallow", "config", "user.name", "T")
    git(tmp_path / "shallow", "config", "user.email", "t@example.com")
    _, check = rescued(tmp_path / "shallow")
    found = pushed(tmp_path / "shallow", check, f"file://{tmp_path}/server")
    assert found.pushed, found.detail


class Refusing(BaseHTTPRequestHandler):
    """A server that permits nothing, and remembers who asked."""

    seen: list[str] = []

    def do_GET(self) -> None:
        self.seen.append(self.headers.get("Authorization", ""))
        self.send_response(403)
        self.end_headers()

    do_POST = do_GET  # noqa: N815

    def log_message(self, *_words: Any) -> None:
        pass


@pytest.fixture
def refusing() -> Iterator[str]:
    Refusing.seen.clear()
    server = HTTPServer(("127.0.0.1", 0), Refusing)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_a_push_that_is_not_permitted_is_no_fault(repository: Path, refusing: str) -> None:
    commit(repository, "first.txt")
    _, check = rescued(repository)
    found = pushed(repository, check, refusing)
    assert (found.why, found.pushed) == ("refused", False)
    assert "403" in found.detail
    assert TOKEN not in found.detail
    assert Refusing.seen[0].startswith("basic ")


@pytest.mark.parametrize(
    ("asked", "token", "event", "why"),
    [
        (False, TOKEN, {}, "not_asked"),
        (True, "", {}, "no_token"),
        (True, TOKEN, {"pull_request": {"number": 1, "head": {"repo": None}}}, "fork"),
        (
            True,
            TOKEN,
            {"pull_request": {"number": 1, "head": {"repo": {"full_name": "else/n"}}}},
            "fork",
        ),
    ],
)
def test_nothing_is_pushed_unasked(
    asked: bool, token: str, event: dict[str, Any], why: str, repository: Path, tmp_path: Path
) -> None:
    path = write(tmp_path / "event.json", json.dumps(event))
    job = JobEnvironment({"GITHUB_EVENT_PATH": str(path), "GITHUB_REPOSITORY": "o/n"})
    assert (
        push_rescue(repository_at(repository), job, checked(), is_wanted=asked, token=token).why
        == why
    )
    none = push_rescue(repository_at(repository), job, None, is_wanted=True, token=token)
    assert (none.why, none.pushed) == ("nothing_rescued", False)


def test_only_files_with_something_in_them_are_emptied(tmp_path: Path) -> None:
    full, empty = write(tmp_path / "full", "x"), write(tmp_path / "empty", "")
    assert empty_files([full, empty, tmp_path / "missing"]) == ["full"]
    assert full.read_text() == ""


def test_status_without_what_it_needs(repository: Path, tmp_path: Path) -> None:
    report = write(tmp_path / "report.json", step().model_dump_json())
    assert run("github", "status", "--report", report).code == 4
    env = {"GITHUB_TOKEN": TOKEN, "GITHUB_REPOSITORY": "o/n"}
    done = run("github", "status", "--report", report, "--sha", "main", env=env)
    assert (done.code, "no commit" in done.err) == (2, True)
    write(report, "{}")
    done = run("github", "status", "--report", report, "--sha", "a" * 40, env=env)
    assert (done.code, "is not a verdict" in done.err) == (2, True)


def test_status_says_what_the_server_refused(
    repository: Path, tmp_path: Path, refusing: str
) -> None:
    report = write(tmp_path / "report.json", step(complete=True).model_dump_json())
    env = {"GITHUB_TOKEN": TOKEN, "GITHUB_REPOSITORY": "o/n", "GITHUB_API_URL": refusing}
    words = ("github", "status", "--report", report, "--sha", "a" * 40)
    refused = run(*words, env=env)
    assert (refused.code, "GitHub refused with 403" in refused.err) == (1, True)
    noted = run(*words, "--format", "json", "--if-permitted", env=env)
    assert (noted.code, len(noted.json["refused"])) == (0, 1)
    assert set(Refusing.seen) == {f"Bearer {TOKEN}"}
    for done in (refused, noted):
        assert TOKEN not in done.out + done.err


def test_the_summary_of_a_step_has_the_report_of_the_run(job: Path, tmp_path: Path) -> None:
    work = "echo a > tests.txt; mkdir -p tests; echo t > tests/test_a.py; git add -A; git commit -qm 'feat: <b>bold</b>'"
    assert github("step", script=work).code == 0
    published = github("publish")
    assert (published.code, published.err) == (0, "")
    page = (tmp_path / "files" / "STEP_SUMMARY").read_text()

    assert page.index("### guard: complete") < page.index("Nothing needs you now.")
    assert "1 iteration in 1 run: 1 complete; 1 new commit, 0 rescued" in page
    assert "#### To review" in page
    assert "tests: 1 added" in page
    assert "<b>" not in page
