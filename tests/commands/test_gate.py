"""`guard gate` as a process in a pipeline: no delay, bounded memory, and exit codes that tell how the stream ended."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, NamedTuple

import pytest

from tests.streams import init, jsonl, result, says, stream, system
from tests.support import TIME_LIMIT, run_with_bytes
from tests.support.sessions import ending, until

MIB = 1024 * 1024
RUNS = system("task_started", task_id="t1", description="build \x1b[31m", is_backgrounded=True)
KILLED = system("task_notification", task_id="t1", status="stopped")


class Done(NamedTuple):
    code: int
    out: bytes
    err: str


def gate(data: bytes, *words: str, agent: str = "claude") -> Done:
    code, out, err = run_with_bytes("gate", "--agent", agent, *words, stdin=data)
    return Done(code, out, err.decode())


def started(*words: str, agent: str = "claude") -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "guard", *words, "gate", "--agent", agent],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
    )


def pipes(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes], IO[bytes]]:
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    return process.stdin, process.stdout, process.stderr


def pipes_of_one_that_is_up(
    process: subprocess.Popen[bytes],
) -> tuple[IO[bytes], IO[bytes], IO[bytes]]:
    into, out, errors = pipes(process)
    into.write(b"up\n")
    out.readline()
    return into, out, errors


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder without a repository: the gate needs none."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    "name",
    ["claude-background", "codex-helper", "gemini-ok", "qwen-ok", "opencode-ok", "copilot-ok"],
)
def test_a_whole_stream(name: str) -> None:
    done = gate(stream(name), agent=name.partition("-")[0])
    assert (done.code, done.err) == (0, "")
    last = json.loads(done.out.splitlines()[-1])
    assert last["source"] == json.loads(stream(name).splitlines()[-1])
    assert list(last) == ["type", "usage", "source"]


def test_held_back() -> None:
    done = gate(jsonl(init(), RUNS, result()))
    assert done.code == 11
    assert json.loads(done.out.splitlines()[-1])["type"] == "usage_update"
    assert len(done.err.splitlines()) == 1
    assert "1 helper may live: build \\x1b[31m" in done.err


def test_killed_with_the_session() -> None:
    done = gate(jsonl(init(), RUNS, result(), KILLED))
    assert done.code == 16
    assert "1 helper killed with the session: build \\x1b[31m" in done.err
    assert b'"complete"' not in done.out
    codex = jsonl({"type": "item.started", "item": {"id": "i", "type": "command_execution"}})
    assert gate(codex + b'{"type":"turn.completed"}\n', agent="codex").code == 16


@pytest.mark.parametrize("data", [b"", jsonl(init()), jsonl(init()) + b'{"type":"resul'])
def test_cut_off(data: bytes) -> None:
    done = gate(data)
    assert (done.code, done.out) == (16, data)
    assert "the stream was cut off" in done.err


def test_quiet_and_verbose() -> None:
    data = jsonl(init(), RUNS, result())
    command = [sys.executable, "-m", "guard", "-q", "gate", "--agent", "claude"]
    quiet = subprocess.run(command, input=data, capture_output=True, check=False)
    assert (quiet.returncode, quiet.stderr) == (11, b"")
    command[3] = "-v"
    loud = subprocess.run(command, input=data, capture_output=True, check=False)
    assert b"holding back for session:" in loud.stderr


def test_a_line_comes_out_before_the_next_goes_in() -> None:
    with ending(started()) as process:
        into, out, _ = pipes(process)
        for line in (jsonl(init()), b"no event\n", b"\r\n", jsonl(says("x"))):
            into.write(line)
            assert out.readline() == line
        into.write(jsonl(RUNS, result()))
        assert out.readline() == jsonl(RUNS)
        assert json.loads(out.readline())["type"] == "usage_update"
        into.close()
        assert process.wait(TIME_LIMIT) == 11


def test_after_the_limit_it_goes_out_though_nothing_comes_in() -> None:
    command = [sys.executable, "-m", "guard", "gate", "--agent", "claude", "--max-hold", "1"]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
    )
    with ending(process):
        into, out, errors = pipes(process)
        into.write(jsonl(RUNS, result()))
        lines = [json.loads(out.readline())["type"] for _ in range(3)]
        assert lines == ["system", "usage_update", "complete"]
        assert b"let go with 1 helper at work" in errors.readline()
        into.close()
        assert process.wait(TIME_LIMIT) == 0


def test_without_a_limit_of_its_own_it_is_held() -> None:
    assert gate(jsonl(RUNS, result())).code == 11
    done = gate(jsonl(RUNS, result()), "--max-hold", "0")
    assert (done.code, b'"complete"' in done.out) == (0, True)


def test_a_reader_that_has_gone_is_no_reason_to_complain() -> None:
    with ending(started()) as process:
        into, out, errors = pipes(process)
        into.write(jsonl(init()))
        out.readline()
        out.close()
        into.write(jsonl(says("x")))
        assert process.wait(TIME_LIMIT) == 16
        assert errors.read() == b""


def test_a_reader_that_goes_after_the_end_changes_nothing() -> None:
    with ending(started()) as process:
        into, out, errors = pipes(process)
        into.write(jsonl(result()))
        out.readline()
        out.close()
        into.close()
        assert process.wait(TIME_LIMIT) == 0
        assert errors.read() == b""


def test_ctrl_c_lets_the_agent_say_its_last_words() -> None:
    with ending(started()) as process:
        into, out, errors = pipes_of_one_that_is_up(process)
        process.send_signal(signal.SIGINT)
        words = jsonl(says("stopping"), result()) + b"no newline"
        into.write(words[:50])
        time.sleep(0.2)
        into.write(words[50:])
        into.close()
        lines = out.read().splitlines()
        assert lines[0] == jsonl(says("stopping")).strip()
        assert (json.loads(lines[1])["type"], lines[2]) == ("complete", b"no newline")
        assert process.wait(TIME_LIMIT) == 130
        assert errors.read().strip() == b"guard: interrupted"


def test_a_second_ctrl_c_ends_it() -> None:
    with ending(started()) as process:
        into, out, errors = pipes_of_one_that_is_up(process)
        process.send_signal(signal.SIGINT)
        into.write(b"still there\n")
        assert out.readline() == b"still there\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(TIME_LIMIT) == 130
        assert errors.read().strip() == b"guard: interrupted"


def test_sigterm_ends_it_with_all_that_was_there() -> None:
    with ending(started()) as process:
        into, out, _ = pipes_of_one_that_is_up(process)
        os.kill(process.pid, signal.SIGSTOP)
        words = b"x" * 100 + b"\n" + jsonl(says("the last")) + b"half a li"
        into.write(words)
        process.send_signal(signal.SIGTERM)
        os.kill(process.pid, signal.SIGCONT)
        assert out.read() == words
        assert process.wait(TIME_LIMIT) == 130


def test_sigterm_ends_it_though_nobody_reads() -> None:
    with ending(started()) as process:
        into, _, _ = pipes_of_one_that_is_up(process)
        os.set_blocking(into.fileno(), False)
        with suppress(BlockingIOError):
            while True:
                if into.write(b"x" * 65535 + b"\n") is None:
                    break
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIME_LIMIT) == 130


def test_without_an_agent_the_agents_are_named_on_one_line() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "guard", "gate"], capture_output=True, timeout=TIME_LIMIT
    )
    said, hint = done.stderr.decode().splitlines()
    assert (done.returncode, hint.startswith("hint: ")) == (2, True)
    assert "claude, codex" in said
    assert "\\x" not in said


def peak_of(process: subprocess.Popen[bytes]) -> int:
    """The most memory that it has used until now, in bytes."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def fed(process: subprocess.Popen[bytes], chunks: Iterator[bytes], target: Path) -> int:
    """Feed a gate that writes to a file; its peak in memory, before its input is closed."""
    into = process.stdin
    assert into is not None
    total = 0
    for chunk in chunks:
        into.write(chunk)
        total += len(chunk)
    until(lambda: os.path.getsize(target) >= total - 9 * MIB)
    peak = peak_of(process)
    into.close()
    assert process.wait(TIME_LIMIT) in (0, 16)
    return peak


def to_file(target: Path) -> subprocess.Popen[bytes]:
    with target.open("wb") as out:
        return subprocess.Popen(
            [sys.executable, "-m", "guard", "-q", "gate", "--agent", "claude"],
            stdin=subprocess.PIPE,
            stdout=out,
        )


def test_a_huge_line_passes_in_bounded_memory(tmp_path: Path) -> None:
    target = tmp_path / "out"
    head, chunk = b'{"type":"result","x":"', b"y" * MIB
    with ending(to_file(target)) as process:
        chunks = [head, *([chunk] * 64), b'"}\n', jsonl(result())]
        assert fed(process, iter(chunks), target) < 120 * MIB
    data = target.read_bytes()
    assert data.startswith(head + chunk * 64 + b'"}\n{"type":"complete"')


def test_many_lines_pass_in_bounded_memory_and_in_no_time(tmp_path: Path) -> None:
    target = tmp_path / "out"
    block = jsonl(*(says("some words " * 20) for _ in range(999)), RUNS)
    with ending(to_file(target)) as process:
        begun = time.monotonic()
        assert fed(process, iter([block] * 100), target) < 90 * MIB
        assert time.monotonic() - begun < TIME_LIMIT
    assert target.read_bytes() == block * 100


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "Missing option '--agent'"),
        (("--agent", "command"), "'command' is not one of"),
        (("--agent", "claude", "--max-hold", "-1"), "-1 is not between 0 and 604800"),
    ],
)
def test_wrong_usage(words: tuple[str, ...], said: str) -> None:
    command = [sys.executable, "-m", "guard", "gate", *words]
    done = subprocess.run(command, input=b"", capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (2, b"")
    assert said in done.stderr.decode()
