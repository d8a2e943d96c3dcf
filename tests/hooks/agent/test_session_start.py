"""The start of a session: when an iteration begins with it, and whose the files are that it finds."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from guard.context.invocation import Invocation
from guard.core.iteration.baseline import BASELINE
from guard.core.iteration.run import RUN, OpenIteration
from tests.support import ROOT, commit, git, run, write
from tests.support.hooks import STARTS, document, events, faults, hooks, observe, start, stop
from tests.support.sessions import until


@pytest.fixture
def project(repository: Path) -> Path:
    commit(repository, "first.txt")
    return repository


def opened() -> OpenIteration | None:
    guard = Invocation()
    found = guard.store.view(RUN, guard.worktree_key)
    return found.open_iteration if found is not None else None


def number() -> int | None:
    found = opened()
    return found.number if found is not None else None


def dirty() -> dict[str, str]:
    """The dirty files of the newest baseline, and whose they are."""
    guard = Invocation()
    baseline = guard.store.view(BASELINE, guard.worktree_key)
    assert baseline is not None
    return {file.path: file.left_by for file in baseline.dirty}


def ended(session: str = "s1") -> None:
    observe("claude", "SessionEnd", session)


@pytest.mark.parametrize("agent", sorted(STARTS))
def test_an_iteration_begins_with_a_session(project: Path, agent: str) -> None:
    write(project / "users.txt", "the user's\n")
    assert start(agent, source="new" if agent == "copilot" else "startup") == ""
    found = opened()
    assert found is not None
    assert (found.number, found.agent, found.session) == (1, agent, "s1")
    assert dirty() == {"users.txt": "user"}
    (known,) = hooks().sessions
    assert (known.agent, known.session, known.began, known.ended) == (agent, "s1", True, False)
    recorded: list[Any] = events("hook_session_started")
    assert [(one.began, one.iteration) for one in recorded] == [(True, 1)]
    assert faults() == ""


def test_only_a_real_start_takes_a_baseline(project: Path) -> None:
    for source in ("resume", "compact", "fork", "something-new"):
        start(source=source)
        assert number() is None
    start(agent_id="child-1")
    assert number() is None
    start(session="")
    assert number() is None
    assert len(events("hook_session_started")) == 5, "the helper's start is none"
    start(source="clear")
    assert number() == 1


def test_a_start_without_a_word_is_one(project: Path) -> None:
    start(source="")
    assert number() == 1


def test_no_iteration_begins_while_one_is_open(project: Path) -> None:
    assert run("baseline").code == 0
    start()
    found = opened()
    assert found is not None
    assert (found.number, found.session) == (1, "s1"), "it is told its session"
    ended()
    start(session="s2")
    assert number() == 1, "it was begun by hand, so that only a check ends it"


def test_a_session_that_goes_on_keeps_its_iteration(project: Path) -> None:
    start()
    start(session="s2")
    assert number() == 1


def test_what_an_ended_session_left_stays_the_agents(project: Path) -> None:
    write(project / "users.txt", "the user's\n")
    write(project / "both.txt", "the user's\n")
    start()
    write(project / "made.txt", "by the agent\n")
    write(project / "both.txt", "the user's, and the agent's\n")
    ended()
    start(session="s2")
    assert number() == 2
    assert dirty() == {"users.txt": "user", "made.txt": "iteration", "both.txt": "user"}


def test_what_changed_after_the_end_of_a_session_is_the_users(project: Path) -> None:
    start()
    write(project / "made.txt", "by the agent\n")
    ended()
    _wait_for_the_clock_of_files(project)
    write(project / "later.txt", "by the user\n")
    start(session="s2")
    assert dirty() == {"made.txt": "iteration", "later.txt": "user"}
    assert "later.txt" not in stop(session="s2").get("reason", "")


def _wait_for_the_clock_of_files(project: Path) -> None:
    """Times of files may lag behind by some milliseconds."""
    now, probe = time.time(), project / ".git" / "probe"
    until(lambda: write(probe, "x").stat().st_ctime > now)


def test_a_session_that_is_resumed_goes_on_with_its_iteration(project: Path) -> None:
    start()
    ended()
    start(source="resume")
    start(session="s2")
    assert number() == 1
    ended()
    start(session="s2")
    assert number() == 2, "it had begun with the session that has ended now"


def test_a_session_whose_program_is_gone_is_over(project: Path) -> None:
    """Not every program tells the end of a session, and none that is killed: then its process tells it."""
    told = document("qwen", "SessionStart", "s1", source="startup").decode()
    words = [sys.executable, "-m", "guard", "hook", "qwen", "SessionStart"]
    program = (
        "import subprocess, sys\n"
        f"subprocess.run({words!r}, input={told!r}, text=True, check=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, env={**os.environ}
    ) as host:
        until(lambda: bool(events("hook_session_started")) or host.poll() is not None)
        assert host.poll() is None
        write(project / "made.txt", "by the agent\n")
        start("qwen", "s2")
        assert number() == 1, "its program still runs"
    start("qwen", "s3")
    assert number() == 2
    found = opened()
    assert found is not None
    assert found.session == "s3"


def test_a_session_that_is_resumed_lives_in_another_process(project: Path) -> None:
    start()
    found = opened()
    assert found is not None
    assert found.process is not None
    assert found.process.pid == os.getppid()
    told = document("claude", "SessionStart", "s1", source="resume").decode()
    assert run("hook", "claude", "SessionStart", stdin=told, fresh=True).code == 0
    found = opened()
    assert found is not None
    assert found.process is not None
    assert found.process.pid == os.getpid()
    start(session="s2")
    assert number() == 1


def test_clearing_a_session_begins_another(project: Path) -> None:
    start()
    write(project / "made.txt", "by the agent\n")
    ended()
    start(session="s2", source="clear")
    assert (number(), dirty()) == (2, {"made.txt": "iteration"})
    found = opened()
    assert found is not None
    assert found.session == "s2"


def test_outside_of_a_repository_nothing_happens(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert start() == ""
    assert stop() == {}
    assert faults() == ""
    assert not (home / "state" / "guard").exists()


def test_a_session_under_guard_run_becomes_known(project: Path, tmp_path: Path) -> None:
    """Of an agent whose output tells nothing: only what bears the iteration's mark is believed."""
    other = {"session_id": "other", "source": "startup", "cwd": str(project)}
    told = json.dumps({**other, "session_id": "s9"})
    script = write(
        tmp_path / "agent.py",
        f"import os, subprocess, sys\n"
        f"def hook(told, **more):\n"
        f"    env = {{**os.environ, **more, 'PYTHONPATH': {str(ROOT)!r}}}\n"
        f"    words = [sys.executable, '-m', 'guard', 'hook', 'codex', 'SessionStart']\n"
        f"    subprocess.run(words, env=env, input=told.encode(), check=True)\n"
        f"hook({json.dumps(other)!r}, GUARD_ITERATION='another/1')\n"
        f"hook({told!r})\n"
        f"open('made.txt', 'w').write('x')\n"
        f"subprocess.run(['git', 'add', '.'])\n"
        f"subprocess.run(['git', 'commit', '-qm', 'Add it'])\n",
    )
    words = ("--agent", "codex", "--format", "json", "--", sys.executable, script)
    result = run("run", *words)
    assert result.code == 0, result.err
    assert (result.json["status"], result.json["session"]) == ("complete", "s9")
    assert len(events("iteration_started")) == 1
    assert git(project, "status", "--porcelain") == ""
    assert faults() == ""
