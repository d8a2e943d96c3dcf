"""What `run` and `loop` show of an agent: events as text on a terminal, byte for byte elsewhere, or nothing."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.streams import stream
from tests.support import TIME_LIMIT, commit, run, write
from tests.support.sessions import QUICK, ending

STREAMS = ("claude-ok", "codex-ok", "gemini-ok", "opencode-ok", "qwen-ok", "copilot-ok")
CALL = {
    "claude-ok": "> Bash: echo hello > out.txt; cat out.txt\n    hello\n",
    "codex-ok": "> shell: /bin/bash -lc 'echo hi > cx.txt; cat cx.txt'\n    hi\n",
    "gemini-ok": "    g\nLooked at the file.\n",
    "opencode-ok": "Wrote the file.\n",
    "qwen-ok": "Wrote the notes.\n",
    "copilot-ok": "Checked it again.\n",
}


@pytest.fixture(autouse=True)
def begun(repository: Path) -> Path:
    commit(repository, "first.txt")
    return repository


def on_terminal(*words: str | Path) -> str:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "guard", *(os.fspath(word) for word in words)]
    env = {**os.environ, "TERM": "xterm"}
    started = subprocess.Popen(command, stdout=theirs, stderr=subprocess.DEVNULL, env=env)
    os.close(theirs)
    seen = b""
    with ending(started) as process:
        try:
            while chunk := os.read(ours, 4096):
                seen += chunk
        except OSError:  # Linux says EIO when the other end is closed.
            os.close(ours)
        process.wait(TIME_LIMIT)
    return seen.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("name", STREAMS)
def test_a_terminal_gets_messages_and_tool_calls(name: str, tmp_path: Path) -> None:
    path = write(tmp_path / "stream", stream(name))
    seen = on_terminal("run", "--no-probe", *QUICK, "--", "cat", path)
    assert CALL[name] in seen
    assert "{" not in seen


def test_a_pipe_gets_each_byte_unless_text_is_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path / "stream", stream("claude-ok"))
    words = ("run", "--no-probe", *QUICK)
    assert run(*words, "--", "cat", path).out.startswith(stream("claude-ok").decode())
    assert CALL["claude-ok"] in run(*words, "--show", "text", "--", "cat", path).out


@pytest.mark.parametrize("command", [("run",), ("loop", "--max-iterations", "1")])
def test_nothing_is_shown_if_the_user_wants_nothing(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    path = write(tmp_path / "stream", stream("claude-ok"))
    words = ("sh", "-c", f"cat {path}; echo trouble >&2")
    done = run(*command, "--no-probe", *QUICK, "--show", "none", "--", *words)
    assert "hello" not in done.out
    assert "trouble" not in done.err
    assert CALL["claude-ok"] in run("show").out


def test_raw_events_can_be_had_on_a_terminal(tmp_path: Path) -> None:
    path = write(tmp_path / "stream", stream("codex-ok"))
    seen = on_terminal("run", "--no-probe", *QUICK, "--show", "raw", "--", "cat", path)
    assert seen.startswith(stream("codex-ok").decode())


def test_what_is_no_stream_reaches_a_terminal_unchanged() -> None:
    colours = r"printf '\033[31mred\033[0m, no end {'"
    seen = on_terminal("run", "--no-probe", *QUICK, "--", "sh", "-c", colours)
    assert seen.startswith("\x1b[31mred\x1b[0m, no end {")


def test_with_a_document_on_stdout_the_agent_is_shown_on_stderr(tmp_path: Path) -> None:
    path = write(tmp_path / "stream", stream("qwen-ok"))
    words = ("run", "--no-probe", *QUICK, "--format", "json", "--show", "text", "--", "cat", path)
    done = run(*words)
    assert done.json["schema"] == "guard/check/1"
    assert CALL["qwen-ok"] in done.err
