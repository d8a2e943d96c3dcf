"""What reaches a terminal: colours where they are wanted, and nothing from outside that could drive it."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from guard.agents import registry
from guard.store.file_store import FileStore
from tests.support import TIME_LIMIT, run
from tests.support.events import MOMENT
from tests.support.sessions import ending

EVIL = "a\x1b[2Jb\rc\u202ed\x9b31me\x07f\u2066g"


@pytest.fixture(autouse=True)
def agent(store: FileStore) -> None:
    """One agent, whose message is hostile."""
    registry.spawn(store, MOMENT, task_id="T1", agent_id="a0", message=EVIL)


def on_terminal(*words: str | Path, env: dict[str, str]) -> str:
    """What guard writes to a terminal."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "guard", *(os.fspath(word) for word in words)]
    started = subprocess.Popen(command, stdout=theirs, env={**os.environ, **env})
    os.close(theirs)
    with ending(started) as process:
        seen = b""
        try:
            while chunk := os.read(ours, 4096):
                seen += chunk
        except OSError:  # Linux says EIO when the other end is closed.
            os.close(ours)
        process.wait(TIME_LIMIT)
    return seen.decode()


@pytest.mark.parametrize(
    ("env", "coloured"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True)],
    ids=["a terminal", "NO_COLOR", "an empty NO_COLOR"],
)
def test_colours_are_for_terminals(env: dict[str, str], coloured: bool, workspace: Path) -> None:
    seen = on_terminal("--workspace", workspace, "verify", env={"TERM": "xterm", **env})
    assert "sound" in seen
    assert ("\x1b[32m" in seen) == coloured


def test_a_pipe_gets_no_colours(workspace: Path) -> None:
    result = run("--workspace", workspace, "verify", env={"TERM": "xterm"})
    assert "sound" in result.out
    assert "\x1b" not in result.out


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["agent", "list"], True),
        (["log"], True),
        (["agent", "list", "--format", "json"], False),
        (["log", "--format", "json"], False),
        (["agent", "update", "--task", EVIL, "--agent", "a0", "--status", "failed"], False),
        (["--workspace", f"/nowhere/{EVIL}/x", "where"], True),
        (["schema", EVIL], False),
        (["log", "--type", EVIL], False),
        (["log", "--since", EVIL], False),
        ([EVIL], False),
        (["log", f"--{EVIL}"], False),
    ],
    ids=lambda value: " ".join(map(repr, value)) if isinstance(value, list) else "",
)
def test_nothing_from_outside_drives_the_terminal(
    words: list[str], shown: bool, workspace: Path
) -> None:
    result = run("--workspace", workspace, *words)
    raw = {c for c in result.out + result.err if not c.isprintable()} - {"\n"}
    assert raw == set()
    assert not shown or r"a\x1b[2Jb\x0dc\u202ed\x9b31me\x07f\u2066g" in result.out + result.err
