"""A long event stream through `guard run`, beside Python parsing the same lines, and what it takes to look for loops in it.

Whole processes are compared by their CPU time, with their start; so a longer stream makes a better figure.
"""

import json
import os
import random
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import process_time

from benchmarks.measure import Row, at_most, progress, scratch
from guard.core.base.agent_json import Event
from guard.core.classify import make_reader
from guard.core.classify.stream_reader import OutputReader
from guard.core.tool_calls.loops import LoopFinder

MEGABYTES = 100
_ROUNDS = 5
_CHUNK = 256 * 1024
_PARSE = "import json, sys\nfor line in open(sys.argv[1], 'rb'): json.loads(line)"
_MOST_MEGABYTES_MORE = 30.0


def rows(megabytes: float = MEGABYTES, rounds: int = _ROUNDS) -> Iterator[Row]:
    with scratch() as folder:
        repository = _repository(folder / "repository")
        for agent, write in (("claude", _ClaudeSession), ("codex", _CodexSession)):
            progress(f"writing {megabytes:g} MB of {agent} ...")
            stream, short = folder / f"{agent}.jsonl", folder / f"{agent}-short.jsonl"
            _fill(stream, write, megabytes)
            _fill(short, write, megabytes / 10)
            yield from _whole(agent, repository, stream, short, rounds)
            yield _loops(agent, stream, rounds)


def _whole(agent: str, repository: Path, stream: Path, short: Path, rounds: int) -> Iterator[Row]:
    run = [sys.executable, "-m", "guard", "run", "--no-probe", "--no-wait", "--", "cat"]
    parse = [sys.executable, "-c", _PARSE, str(stream)]
    parsed, guarded, started = [], [], []
    memory = [0.0, 0.0]
    for _ in range(rounds):
        parsed.append(_measure(parse, repository)[0])
        long = _measure([*run, str(stream)], repository)
        brief = _measure([*run, str(short)], repository)
        guarded.append(long[0])
        started.append(_measure([*run, os.devnull], repository)[0])
        memory = [max(memory[0], long[1]), max(memory[1], brief[1])]
    base, whole, start = min(parsed), min(guarded), min(started)
    size = stream.stat().st_size / 1e6
    detail = f"{whole:.2f} s, {(whole - start) / base:.2f} × without the start of guard; json.loads {base:.2f} s"
    yield at_most(f"{size:.0f} MB of {agent} through `guard run`", 1.8, whole / base, detail)
    more = memory[0] - memory[1]
    what = f"memory for {size:.0f} MB of {agent} beyond that for a tenth of it"
    detail = f"{memory[0]:.0f} MB and {memory[1]:.0f} MB"
    is_flat = more <= _MOST_MEGABYTES_MORE
    yield Row(what, f"at most {_MOST_MEGABYTES_MORE:g} MB", more, is_flat, detail, unit=" MB")


def _loops(agent: str, stream: Path, rounds: int) -> Row:
    # Turn by turn, so that a slow moment hits both.
    pairs = [(_read(stream, looks=True), _read(stream, looks=False)) for _ in range(rounds)]
    ratio = statistics.median(one / other for one, other in pairs)
    detail = f"{pairs[0][0]:.2f} s of CPU to read all, of which the rest of guard's work is no part"
    return at_most(f"reading {agent} with a look for loops, to without", 1.05, ratio, detail)


def _read(stream: Path, *, looks: bool) -> float:
    reader = make_reader(None)
    if not looks:
        _look_away(reader)
    begun = process_time()
    with stream.open("rb") as file:
        while data := file.read(_CHUNK):
            reader.feed(data, 0.0)
    return process_time() - begun


class _NoFinder(LoopFinder):
    """Reads nothing."""

    def is_wanted(self, line: bytes, at: float | None) -> bool:
        del line, at
        return False

    def take(self, event: Event, at: float | None = None) -> None:
        pass


def _look_away(reader: OutputReader) -> None:
    reader._loops = _NoFinder()


def _measure(argv: list[str], folder: Path) -> tuple[float, float]:
    """The CPU time of a process and its children, and the most memory of one of them in MB."""
    quiet = {"GUARD_BREAKER__STALL_LIMIT": "0", "XDG_STATE_HOME": str(folder.parent / "state")}
    process = subprocess.Popen(
        argv,
        cwd=folder,
        env={**os.environ, **quiet},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def _repository(folder: Path) -> Path:
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    (folder / "a.txt").write_text("a\n")
    author = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run(["git", "-C", str(folder), "add", "."], check=True)
    subprocess.run(["git", "-C", str(folder), *author, "commit", "-qm", "first"], check=True)
    return folder


def _fill(path: Path, write: type["_Session"], megabytes: float) -> None:
    session = write()
    with path.open("wb") as file:
        for event in session.beginning:
            file.write(json.dumps(event, separators=(",", ":")).encode() + b"\n")
        while file.tell() < megabytes * 1e6:
            for event in session.step():
                file.write(json.dumps(event, separators=(",", ":")).encode() + b"\n")


class _Session:
    """Makes up a session whose calls and results differ, as those of a healthy agent do."""

    beginning: tuple[dict[str, object], ...] = ()

    def __init__(self) -> None:
        self._random = random.Random(20)
        self._number = 0

    def words(self, count: int) -> str:
        return " ".join(f"{self._random.getrandbits(32):x}" for _ in range(count))

    def result(self) -> str:
        return "\n".join(self.words(8) for _ in range(self._random.choice((1, 5, 20, 60))))

    def step(self) -> Iterator[dict[str, object]]:
        raise NotImplementedError


class _ClaudeSession(_Session):
    _base = {"parent_tool_use_id": None, "session_id": "00000001-0000-4000-8000-000000000001"}
    beginning = (
        {"type": "system", "subtype": "init", "model": "claude-opus", "tools": ["Bash"], **_base},
    )

    def step(self) -> Iterator[dict[str, object]]:
        self._number += 1
        name, uuid = f"toolu_{self._number}", "f" * 36
        usage = {"input_tokens": 10, "cache_read_input_tokens": 900, "output_tokens": 50}
        said = {"type": "text", "text": self.words(12)}
        call = {"type": "tool_use", "id": name, "name": "Bash", "input": {"command": self.words(3)}}
        for block in (said, call):
            message = {"id": f"msg_{self._number}", "type": "message", "role": "assistant"}
            content = {"model": "claude-opus", "content": [block], "usage": usage}
            yield {
                "type": "assistant",
                "message": {**message, **content},
                **self._base,
                "uuid": uuid,
            }
        text = self.result()
        done = {"tool_use_id": name, "type": "tool_result", "content": text, "is_error": False}
        told = {"stdout": text, "stderr": "", "interrupted": False}
        answer = {"role": "user", "content": [done]}
        yield {"type": "user", "message": answer, **self._base, "tool_use_result": told}


class _CodexSession(_Session):
    beginning = ({"type": "thread.started", "thread_id": "t1"}, {"type": "turn.started"})

    def step(self) -> Iterator[dict[str, object]]:
        self._number += 1
        name, command = f"item_{self._number}", f"/bin/bash -lc '{self.words(3)}'"
        item = {"id": name, "type": "command_execution", "command": command}
        begun = {"aggregated_output": "", "exit_code": None, "status": "in_progress"}
        ended = {"aggregated_output": self.result(), "exit_code": 0, "status": "completed"}
        said = {"id": f"{name}m", "type": "agent_message", "text": self.words(12)}
        yield {"type": "item.started", "item": {**item, **begun}}
        yield {"type": "item.completed", "item": {**item, **ended}}
        yield {"type": "item.completed", "item": said}
