"""Streams that are cut, and that lose, double or garble lines: no crash, no byte lost, and no false `complete`."""

import json
from contextlib import suppress
from itertools import combinations
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guard.core.gate import AGENTS, stream_reader
from guard.core.gate.gate import Gate, StreamOutcome
from tests.streams import stream

MARKS = (b'{"type":"complete"', b'{"type":"usage_update"')
NAMES = (
    *("claude-ok", "claude-background", "claude-subagent", "claude-usage-limit", "codex-ok"),
    *("codex-helper", "gemini-ok", "qwen-ok", "opencode-ok", "copilot-ok"),
)


KEYS = (
    *("type", "subtype", "task_id", "tasks", "patch", "item", "message", "usage", "content"),
    *("part", "data", "agents_states", "modelUsage", "id", "status"),
)
WORDS = (
    *("task_started", "background_tasks_changed", "task_updated", "item.completed", "result"),
    *("assistant", "user", "step_finish", "turn.completed", "subagent.started", "init"),
)


def lines_of(name: str) -> list[bytes]:
    return stream(name).splitlines(keepends=True)


def agent_of(name: str) -> str:
    return name.partition("-")[0]


def early() -> list[bytes]:
    """A turn of Codex that ends while its agent still runs."""
    return [line for line in lines_of("codex-helper") if b'"wait"' not in line]


def gated(agent: str, data: bytes) -> tuple[bytes, StreamOutcome]:
    gate = Gate(stream_reader(agent))
    out = gate.feed(data, 0)
    rest, ended = gate.end(1)
    return out + rest, ended


def completes(out: bytes) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in out.splitlines() if line.startswith(MARKS[0])]
    return [line["source"] for line in found]


def open_at_the_end(lines: list[bytes]) -> set[str]:
    """Who was told of in lines that can be read, and not told to have ended: the plainest way to know."""
    found: set[str] = set()
    for line in lines:
        try:
            event = json.loads(line.decode(errors="replace"))
        except ValueError:
            continue
        if not isinstance(event, dict):
            continue
        task, patch = str(event.get("task_id", "")), event.get("patch") or {}
        if task and event.get("subtype") == "task_started" and event.get("is_backgrounded"):
            found.add(task)
        elif event.get("subtype") == "background_tasks_changed":
            found = {one["task_id"] for one in event["tasks"]}
        elif "completed" in (event.get("status"), patch.get("status")):
            found.discard(task)
        for agent, state in (event.get("item") or {}).get("agents_states", {}).items():
            (found.discard if state["status"] == "completed" else found.add)(agent)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_cut_after_every_line(name: str) -> None:
    lines = lines_of(name)
    whole, _ = gated(agent_of(name), b"".join(lines))
    for end in range(len(lines)):
        out, ended = gated(agent_of(name), b"".join(lines[:end]))
        assert whole.startswith(out)
        assert completes(out) == []
        assert ended.exit_code in (11, 16)
        assert ended.reasons[-1] in ("held", "stream_cut")


@pytest.mark.parametrize("name", NAMES)
def test_cut_within_lines(name: str) -> None:
    data = stream(name)
    whole, _ = gated(agent_of(name), data)
    shared = len(data.rstrip(b"\n").rpartition(b"\n")[0])
    for end in (*range(0, shared, 37), *range(shared, len(data) - 1, 5)):
        out, ended = gated(agent_of(name), data[:end])
        assert completes(out) == []
        assert ended.exit_code in (11, 16)
        assert whole.startswith(out.rpartition(b"\n")[0])


@pytest.mark.parametrize("count", [1, 2, 3])
def test_without_any_three_lines_claude_is_not_done_while_its_shell_runs(count: int) -> None:
    """Four lines tell of the shell, the call's value among them, so that one of them is always left."""
    value = b'"tool_use_result":{"backgroundTaskId":"bl2rwfko1"},"message":{"role":"user"'
    data = stream("claude-background").replace(b'"message":{"role":"user"', value)
    lines = data.splitlines(keepends=True)
    first = next(json.loads(line) for line in lines if b'"result_index":0' in line)
    for gone in combinations(range(len(lines)), count):
        kept = [line for number, line in enumerate(lines) if number not in gone]
        out, _ = gated("claude", b"".join(kept))
        assert first not in completes(out), gone


def test_without_any_line_codex_is_not_done_while_its_agent_runs() -> None:
    lines = early()
    for gone in range(len(lines)):
        out, ended = gated("codex", b"".join(lines[:gone] + lines[gone + 1 :]))
        assert completes(out) == []
        assert ended.exit_code == 16


@pytest.mark.parametrize("name", ["claude-background", "codex"])
def test_with_any_byte_garbled_nobody_is_done_while_a_helper_runs(name: str) -> None:
    lines = lines_of(name) if name != "codex" else early()
    first = next(
        n for n, line in enumerate(lines) if b'"result_index":0' in line or b"turn.c" in line
    )
    for number in range(first):
        for place in range(0, len(lines[number]) - 1, 3):
            line = bytearray(lines[number])
            line[place] = ord("~")
            data = b"".join([*lines[:number], bytes(line), *lines[number + 1 : first + 1]])
            assert completes(gated(agent_of(name), data)[0]) == [], bytes(line)


@st.composite
def damaged(draw: st.DrawFn) -> tuple[str, list[bytes]]:
    """A stream with lines dropped, doubled and garbled."""
    name = draw(st.sampled_from([*NAMES, "early"]))
    lines = early() if name == "early" else lines_of(name)
    damage = st.sampled_from(["keep"] * 6 + ["drop", "double", "cut", "garble", "junk"])
    out: list[bytes] = []
    for line in lines:
        match draw(damage):
            case "keep":
                out.append(line)
            case "double":
                out += [line, line]
            case "cut":
                out.append(line[: draw(st.integers(0, len(line)))].rstrip(b"\n") + b"\n")
            case "garble":
                place = draw(st.integers(0, max(0, len(line) - 2)))
                out.append(line[:place] + draw(st.binary(max_size=4)) + line[place + 1 :])
            case "junk":
                out.append(draw(st.binary(max_size=30)) + b"\n")
    text = b"".join(out).decode("latin-1")
    lines = [line.encode("latin-1") + b"\n" for line in text.split("\n")]
    return ("codex" if name == "early" else agent_of(name)), lines


@settings(max_examples=400, deadline=None)
@given(damaged())
def test_damage_never_crashes_loses_a_byte_or_completes_falsely(
    found: tuple[str, list[bytes]],
) -> None:
    agent, lines = found
    gate = Gate(stream_reader(agent))
    seen: list[bytes] = []
    for line in lines:
        out = gate.feed(line, 0)
        seen.append(line)
        if out.startswith(MARKS):
            try:
                told = open_at_the_end(seen)
            except (KeyError, TypeError, AttributeError):
                continue
            assert out.startswith(MARKS[1]) or not told, told
        else:
            assert out == line
    rest, ended = gate.end(1)
    assert rest == b""
    assert ended.exit_code in (0, 11, 16)


def worn(lines: list[bytes], chance: Random) -> list[bytes]:
    """Heavier damage, as chance has it."""
    out: list[bytes] = []
    for line in lines:
        place = chance.randrange(len(line) - 1)
        junk = bytes(chance.choices(b'abc"~\xff0:,{}', k=chance.randrange(3)))
        garbled = line[:place] + junk + line[place + 1 :]
        kinds = [[line], [], [line, line], [line[:place] + b"\n"], [garbled]]
        out += chance.choices(kinds, (55, 15, 10, 5, 15))[0]
    return out


@pytest.mark.parametrize("name", ["claude-background", "codex-helper", "codex"])
def test_whatever_one_line_still_tells_holds(name: str) -> None:
    chance, lines = Random(name), early() if name == "codex" else lines_of(name)
    for _ in range(3000):
        seen: list[bytes] = []
        gate = Gate(stream_reader(agent_of(name)))
        for line in worn(lines, chance):
            seen.append(line)
            if gate.feed(line, 0).startswith(MARKS[0]):
                with suppress(KeyError, TypeError, AttributeError):
                    assert open_at_the_end(seen) == set(), seen


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(AGENTS), st.lists(st.binary(max_size=60), max_size=8))
def test_any_bytes_pass_as_they_are(agent: str, pieces: list[bytes]) -> None:
    gate = Gate(stream_reader(agent), longest_line=40)
    out = b"".join(gate.feed(piece, 0) for piece in pieces)
    rest, ended = gate.end(1)
    assert out + rest == b"".join(pieces)
    assert ended.exit_code == 16


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(AGENTS),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.sampled_from(["result", "t1", "completed"]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(KEYS),
                inner,
                max_size=5,
            )
        ),
    ),
    st.sampled_from(WORDS),
)
def test_events_of_any_shape_break_nothing(agent: str, value: Any, word: str) -> None:
    event = value if isinstance(value, dict) else {"message": value, "tasks": value, "item": value}
    for kind in ({"type": word}, {"type": "system", "subtype": word}):
        line = json.dumps({**event, **kind, "x": "collab_tool_call"}).encode() + b"\n"
        gate = Gate(stream_reader(agent))
        gate.feed(line + line, 0)
        gate.end(1)
