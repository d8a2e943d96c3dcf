"""Output that is huge, deep, broken or malicious: bounded memory, bounded time, and never a good word for it."""

import json
import resource
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guard.core.base.lines import LONGEST_LINE, Lines, object_in
from guard.core.classify import AGENTS, classify, make_reader
from tests.streams import NOW, SESSION, failed, init, jsonl, result, says, stream
from tests.support.cost import cpu_limit

MIB = 1024 * 1024
GOOD = jsonl(result())
BEGIN = jsonl(init())


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def repeated(piece: bytes, size: int) -> Iterator[bytes]:
    chunk = piece * max(1, MIB // len(piece))
    for _ in range(size // len(chunk)):
        yield chunk


TOOL = json.dumps(
    {
        "type": "user",
        "message": {"content": [{"type": "tool_result", "content": 'a "line"\n' * 500}]},
    }
)
FLOODS = {
    "one line without end": (b"", b"x", b"\n"),
    "one event without end": (b'{"type":"assistant","x":"', b"y", b'"}\n'),
    "NULs": (b"", b"\x00", b"\n"),
    "newlines": (b"", b"\n", b"\n"),
    "brackets": (b'{"type":"result","a":', b"[", b"\n"),
    "braces on lines of their own": (b"", b"{\n", b"\n"),
    "tool results": (b"", TOOL.encode() + b"\n", b""),
    "fences": (b"", b"```\n", b""),
    "bytes that are no text": (b"", b"\xff\xfe\x80\n", b""),
    "escapes": (b"", b"\x1b]0;title\x1b[31m", b"\n"),
}


@pytest.mark.parametrize(("head", "piece", "tail"), FLOODS.values(), ids=FLOODS)
def test_a_flood_is_passed_by_in_bounded_memory(head: bytes, piece: bytes, tail: bytes) -> None:
    before = peak()
    one = make_reader("claude")
    with cpu_limit():
        one.feed(BEGIN + head)
        for chunk in repeated(piece, (4 if piece.endswith(b"\n") else 40) * MIB):
            one.feed(chunk)
        one.feed(tail + GOOD)
        assert one.finish(0, NOW).outcome == "ok"
    assert peak() - before < 40 * MIB


@pytest.mark.parametrize("agent", [*AGENTS, None])
def test_plain_floods_for_every_reader(agent: str | None) -> None:
    one = make_reader(agent)
    for chunk in repeated(b'{\n"a": [1, "', MIB):
        one.feed(chunk)
        one.feed_error(chunk)
    assert one.finish(1, NOW).outcome == "crash"


def test_many_documents_take_no_more_time_than_lines() -> None:
    one = make_reader("claude")
    with cpu_limit():
        one.feed(b"{\n}\n" * (MIB // 4) + GOOD)
        assert one.finish(0, NOW).outcome == "ok"


def test_an_array_without_end_is_read_element_by_element() -> None:
    one = make_reader("qwen")
    one.feed(b"[" + BEGIN.strip())
    for chunk in repeated(b"," + TOOL.encode(), 16 * MIB):
        one.feed(chunk)
    one.feed(b',{"x":"' + b"y" * (LONGEST_LINE + 1) + b'"},' + GOOD.strip() + b"]\n")
    assert (one.finish(0, NOW).outcome, one.skipped) == ("ok", 1)


def test_too_long_a_line_is_counted_and_the_next_is_read() -> None:
    one = make_reader("claude")
    one.feed(BEGIN + b'{"type":"result","x":"' + b"y" * LONGEST_LINE + b'"}\n')
    assert one.skipped == 1
    one.feed(GOOD)
    assert one.finish(0, NOW).outcome == "ok"


BROKEN = {
    "half a line": b'{"type":"result","is_error":fal\n',
    "two values for a key": b'{"type":"result","is_error":false,"is_error":true}\n',
    "nested 100,000 deep": b'{"type":"result","a":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n",
    "not a number": b'{"type":"result","a":NaN}\n',
    "a number of 10,000 digits": b'{"type":"result","a":' + b"9" * 10_000 + b"}\n",
    "a control character": b'{"type":"result","a":"\x00"}\n',
}


@pytest.mark.parametrize("line", BROKEN.values(), ids=BROKEN)
def test_a_line_that_cannot_be_read_is_counted_and_passed_over(line: bytes) -> None:
    one = make_reader("claude")
    one.feed(BEGIN + line)
    assert one.skipped == 1
    assert one.finish(0, NOW).reason == "no_result"
    assert classify(BEGIN + line + GOOD, b"", "claude", 0, NOW).outcome == "ok"


@pytest.mark.parametrize(
    "text",
    ['"half \\ud83d of it"', '"\\udc00"', '"\\ud83d\\ud83d\\ude00"', '"\\\\ud83d"', '"\xff\xfe"'],
    ids=["a high half", "a low half", "a half and a whole", "a backslash", "no UTF-8"],
)
def test_a_result_is_not_lost_for_half_a_character(text: str) -> None:
    line = jsonl(result("TEXT")).replace(b'"TEXT"', text.encode("latin-1"))
    found = classify(BEGIN + line, b"", "claude", 0, NOW)
    assert found.outcome == "ok"
    assert found.claim
    found.model_dump_json().encode()


@pytest.mark.parametrize(
    "strange",
    [
        {"result": {"a": 1}},
        {"result": ["x"]},
        {"permission_denials": "x"},
        {"permission_denials": [1, None, {"tool_name": 7}]},
        {"errors": {"a": 1}},
        {"usage": 7},
        {"api_error_status": "429"},
        {"terminal_reason": ["x"]},
        {"subtype": None},
        {"is_error": "yes"},
        {"total_cost_usd": 1e308},
    ],
    ids=str,
)
def test_fields_of_other_types_are_as_none(strange: dict[str, Any]) -> None:
    data = jsonl(init(), {**result(), **strange})
    assert classify(data, b"", "claude", 0, NOW).outcome == "ok"


def test_events_of_strange_shapes_break_nothing() -> None:
    events: list[dict[str, Any]] = [
        *({"type": kind, "session_id": SESSION} for kind in ("assistant", "rate_limit_event")),
        {"type": "assistant", "session_id": SESSION, "message": {"content": "text"}},
        {"type": "assistant", "session_id": SESSION, "message": [{"content": 1}]},
        {"type": "rate_limit_event", "session_id": SESSION, "rate_limit_info": {"status": ["x"]}},
        {"type": "system", "session_id": SESSION, "subtype": "task_started", "task_id": {"a": 1}},
        {"type": "system", "session_id": SESSION, "subtype": "task_updated", "patch": "killed"},
        {
            "type": "system",
            "session_id": SESSION,
            "subtype": "background_tasks_changed",
            "tasks": 1,
        },
        {"type": ["result"], "session_id": SESSION},
    ]
    strange = jsonl(init(), *events).replace(b'["x"]', b"{}")
    assert classify(strange + GOOD, b"", "claude", 0, NOW).outcome == "ok"


def test_nothing_of_it_can_drive_a_terminal_or_grow() -> None:
    evil = "\x1b[31m\x07‮" + "ü" * 5000 + "\ud800"
    data = json.dumps(failed(evil, 418, terminal_reason=evil)).encode() + b"\n"
    errors = evil.encode(errors="surrogatepass")
    found = classify(data, errors, "claude", 1, NOW)
    text = found.model_dump_json()
    assert len(text) < 3000
    assert not set(text) & set("\x1b\x07‮")


@settings(max_examples=200)
@given(
    data=st.binary(max_size=300), agent=st.sampled_from([*AGENTS, None]), code=st.integers(-20, 255)
)
def test_any_bytes_are_classified(data: bytes, agent: str | None, code: int) -> None:
    found = classify(data, data, agent, code, NOW)
    assert found.exit_code == code
    if code:
        assert found.outcome != "ok"


@settings(max_examples=200)
@given(
    lines=st.lists(
        st.sampled_from(
            [
                *stream("claude-background").splitlines(),
                *stream("codex-helper").splitlines(),
                *stream("gemini-ok").splitlines(),
                *stream("opencode-ok").splitlines(),
                *stream("copilot-ok").splitlines(),
                b"[",
                b"{",
                b"[{",
                b"}",
                b"```",
                b"Error: 429",
                jsonl(says("x")).strip(),
            ]
        ),
        max_size=12,
    ),
    cuts=st.lists(st.integers(0, 4000), max_size=5),
    agent=st.sampled_from([*AGENTS, None]),
)
def test_any_mixture_is_the_same_however_it_is_cut(
    lines: list[bytes], cuts: list[int], agent: str | None
) -> None:
    data = b"\n".join(lines)
    one = make_reader(agent)
    places = [0, *sorted(cuts), len(data) + 4000]
    for begin, end in pairwise(places):
        one.feed(data[begin:end])
    assert one.finish(0, NOW) == classify(data, b"", agent, 0, NOW)


DOCUMENTS = {
    "an array on one line": (
        b'[{"a":1},{"b":"]}\\"["},3,[4]]\nnext\n',
        [b'{"a":1}', b'{"b":"]}\\"["}', b"[4]", b"next"],
    ),
    "an array over lines": (
        b'[\n {"a": 1},\n {"b": 2}\n]\nnext',
        [b'{"a": 1}', b'{"b": 2}', b"next"],
    ),
    "an object over lines": (
        b'{\n "a": [1],\n "b": "}"\n}\nnext',
        [b'{\n "a": [1],\n "b": "}"\n}', b"next"],
    ),
    "after other lines": (b'[INFO] x\n[{"a":1}]', [b"[INFO] x", b'{"a":1}']),
    "not after an object": (b'{"a":1}\n[{"b":1}]\n', [b'{"a":1}', b'[{"b":1}]']),
    "an object that never ends": (b'{\ncode "\nmore', [b"{", b'code "', b"more"]),
    "an escape at the end of a string": (b'[{"a":"\\\\"},{"b":1}]', [b'{"a":"\\\\"}', b'{"b":1}']),
}


@pytest.mark.parametrize(("data", "expected"), DOCUMENTS.values(), ids=DOCUMENTS)
def test_documents_and_lines_at_every_cut(data: bytes, expected: list[bytes]) -> None:
    for first in range(len(data) + 1):
        for second in range(first, len(data) + 1):
            lines = Lines()
            pieces = (data[:first], data[first:second], data[second:])
            found = [line for piece in pieces for line in lines.feed(piece)]
            assert [*found, *lines.end()] == expected


def test_an_object_that_grows_too_large_is_lines_after_all() -> None:
    lines = Lines(100)
    found = [line for _ in range(20) for line in lines.feed(b"{\nsome text\n")]
    assert b"some text" in found
    assert len(b"".join([*found, *lines.end()])) > 100


def test_only_objects_are_events() -> None:
    assert object_in(b'{"a": 1}') == {"a": 1}
    assert [object_in(data) for data in (b"[1]", b"1", b"", b"null", b"\xff")] == [None] * 5
