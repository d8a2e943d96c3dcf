"""Lines of an event stream: cut the same wherever the bytes are cut, and read fast to the same as strictly."""

import json

import pytest

from guard.core.base.lines import Lines, event_in, object_in
from tests.streams import stream

RECORDED = (
    "claude-ok",
    "claude-subagent",
    "codex-ok",
    "copilot-ok",
    "gemini-ok",
    "opencode-ok",
    "qwen-ok",
)


@pytest.mark.parametrize("name", RECORDED)
def test_events_read_fast_are_those_read_strictly(name: str) -> None:
    for line in stream(name).splitlines():
        assert event_in(line) == object_in(line) == json.loads(line)


LINES = {
    "half an emoji": b'{"a":"x \\ud83d"}',
    "a whole emoji": b'{"a":"\\ud83d\\ude00"}',
    "an escape": b'{"a":"\\u001b[31m"}',
    "no UTF-8": b'{"a":"\xff"}',
    "space behind": b'{"a":1} \t\r',
    "words behind": b'{"a":1} and more',
    "another object behind": b'{"a":1}{"b":2}',
    "half an object": b'{"a":',
    "no number": b'{"a":NaN}',
    "a huge number": b'{"a":' + b"9" * 10_000 + b"}",
    "a control character": b'{"a":"\x00"}',
    "too deep for anything": b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "a list": b"[1]",
    "nothing": b"",
}


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
def test_what_is_no_event_is_none_either_way(line: bytes) -> None:
    assert event_in(line) == object_in(line)


def test_of_a_key_that_stands_twice_the_last_counts_unless_it_is_read_strictly() -> None:
    line = b'{"a":1,"a":2}'
    assert (event_in(line), object_in(line)) == ({"a": 2}, None)


@pytest.mark.parametrize("size", [1, 7, 100, 4096, 1_000_000])
@pytest.mark.parametrize("name", ["claude-ok", "copilot-ok"])
def test_it_does_not_matter_where_the_bytes_are_cut(name: str, size: int) -> None:
    data = stream(name) + b"\n\n" + b"no event\n" + b"x" * 5000 + b"\nthe end"
    lines = Lines()
    found = [
        line
        for start in range(0, len(data), size)
        for line in lines.feed(data[start : start + size])
    ]
    assert [*found, *lines.end()] == [line for line in data.split(b"\n") if line]
    assert lines.passed_over == 0


@pytest.mark.parametrize("size", [3, 50, 1000])
def test_a_line_that_is_too_long_is_passed_over_wherever_it_is_cut(size: int) -> None:
    data = b'{"a":1}\n' + b"y" * 400 + b'\n{"b":2}\n' + b"z" * 101
    lines = Lines(100)
    found = [
        line
        for start in range(0, len(data), size)
        for line in lines.feed(data[start : start + size])
    ]
    assert [*found, *lines.end()] == [b'{"a":1}', b'{"b":2}']
    assert lines.passed_over == 2
