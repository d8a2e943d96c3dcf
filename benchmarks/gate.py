"""A long event stream through `guard gate`, beside Python reading and writing the same lines.

Both run as whole processes from a file to a file, and their CPU time is compared, so that a busy machine hits neither alone.
Starting up is part of it.
"""

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.measure import Row, progress, scratch

LINES = 400_000
_ROUNDS = 5
_CAT = "import sys\nfor line in sys.stdin.buffer: sys.stdout.buffer.write(line)"
_SESSION = "00000001-0000-4000-8000-000000000001"


def rows(lines: int = LINES) -> Iterator[Row]:
    with scratch() as folder:
        for agent, events in (("claude", _claude), ("codex", _codex)):
            progress(f"writing a stream of {lines:,} lines of {agent} ...")
            source = folder / f"{agent}.jsonl"
            size = _write(source, events(), lines)
            command = [sys.executable, "-m", "guard", "gate", "--agent", agent]
            times = [
                (_cpu([sys.executable, "-c", _CAT], source), _cpu(command, source))
                for _ in range(_ROUNDS)
            ]
            cat, gate = (statistics.median(pair[n] for pair in times) for n in (0, 1))
            rate = lines / gate
            detail = f"{rate:,.0f} lines of {size / lines:.0f} bytes a second; {cat / gate:.2f} × the speed of cat"
            reached = rate >= 100_000 or cat / gate >= 0.5
            what = f"{lines:,} lines of {agent} through the gate"
            yield Row(what, "100,000 lines/s or 0.5 × cat", rate / 100_000, reached, detail)


def _cpu(argv: Sequence[str], source: Path) -> float:
    target = source.with_suffix(".out")
    with source.open("rb") as into, target.open("wb") as out:
        # Outside of a repository: the accounting of teams is another matter.
        process = subprocess.Popen(
            argv, stdin=into, stdout=out, stderr=subprocess.DEVNULL, cwd=source.parent
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime


def _write(path: Path, events: Sequence[dict[str, object]], lines: int) -> int:
    """One turn after the other, until there are enough lines."""
    turn = [json.dumps(event).encode() + b"\n" for event in events]
    with path.open("wb") as file:
        for number in range(lines):
            file.write(turn[number % len(turn)])
        return file.tell()


def _claude() -> list[dict[str, object]]:
    """A turn in the proportions of a recorded one, with a job in the background."""
    base: dict[str, object] = {"session_id": _SESSION, "parent_tool_use_id": None}
    text = {"role": "assistant", "content": [{"type": "text", "text": "some words " * 20}]}
    block = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "a line of output\n" * 20}
    hook = {"type": "system", "subtype": "hook_response", "hook_name": "PostToolUse", **base}
    work: list[dict[str, object]] = [
        {"type": "assistant", "message": text, **base},
        {**hook, "stdout": "x" * 100},
        {"type": "user", "message": {"role": "user", "content": [block]}, **base},
    ]
    task: dict[str, object] = {"type": "system", "task_id": "t1", "session_id": _SESSION}
    return [
        *work * 10,
        {**task, "subtype": "task_started", "description": "job", "is_backgrounded": True},
        *work * 10,
        {**task, "subtype": "task_progress"},
        {**task, "subtype": "task_notification", "status": "completed"},
        {"type": "result", "result": "done", "usage": {"input_tokens": 10}, **base},
    ]


def _codex() -> list[dict[str, object]]:
    """Nearly all of its lines matter: a command that begins may never end."""
    item = {"id": "item_1", "type": "command_execution", "command": "make", "status": "completed"}
    said = {"id": "item_2", "type": "agent_message", "text": "some words " * 20}
    begun: dict[str, object] = {"type": "item.started", "item": item}
    ended: dict[str, object] = {
        "type": "item.completed",
        "item": {**item, "aggregated_output": "output\n" * 40},
    }
    turn: list[dict[str, object]] = [begun, ended, {"type": "item.completed", "item": said}]
    return [{"type": "turn.started"}, *turn * 10, {"type": "turn.completed", "usage": {}}]
