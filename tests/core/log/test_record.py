"""One record as one line: what is written is read, and nothing else is."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guard.core.agents.events import AgentUpdated
from guard.core.log.events import BaseEvent
from guard.core.log.record import (
    NO_HASH,
    BadRecord,
    NewerRecord,
    decode,
    encode,
    migrate_record,
    unseal_line,
)
from tests.support.events import MOMENT, iteration_ended, run_started, spawned, updated

PREV = "a" * 64
OLDER = [
    json.loads(text)
    for text in Path(__file__).with_name("older_records.jsonl").read_text().splitlines()
]
"""Records of events that have got more fields since. When an event gets a field, its example as it was goes here."""


def line(event: BaseEvent, seq: int = 7, prev: str = PREV, more: int = 0) -> bytes:
    return encode(event, seq, prev, more)[0].removesuffix(b"\n")


def resealed(fields: dict[str, object]) -> bytes:
    """A line with these fields whose hash is right, as a forger or a newer guard would write it."""
    from hashlib import sha256

    fields.pop("hash", None)
    sealed = json.dumps(fields, separators=(",", ":")).encode()[:-1]
    return b'%s,"hash":"%s"}' % (sealed, sha256(sealed).hexdigest().encode())


@pytest.mark.parametrize("more", [0, 1, 12])
@pytest.mark.parametrize("event", [spawned(), updated(), run_started(), iteration_ended()])
def test_what_is_written_is_read(event: BaseEvent, more: int) -> None:
    written, digest = encode(event, 7, PREV, more)
    assert written.endswith(b"\n")
    assert written.count(b"\n") == 1
    assert decode(written[:-1], 7, PREV) == (event, digest, more)


def test_a_line_is_flat_json_in_the_documented_order() -> None:
    fields = json.loads(line(updated()))
    assert list(fields)[:8] == ["v", "seq", "more", "at", "type", "id", "run", "iteration"]
    assert list(fields)[-2:] == ["prev", "hash"]
    assert fields["prev"] == PREV


@given(st.text(max_size=200))
def test_any_text_survives(text: str) -> None:
    event = AgentUpdated(
        at=MOMENT,
        id="x",
        task_id="T1",
        agent_id="a1",
        incarnation=1,
        status="working",
        message=text,
    )
    assert decode(line(event), 7, PREV)[0] == event


@pytest.mark.parametrize(
    ("seq", "prev", "reason"),
    [(8, PREV, "should be record 8"), (7, NO_HASH, "does not follow")],
    ids=["wrong number", "wrong predecessor"],
)
def test_a_sound_line_in_the_wrong_place_is_refused(seq: int, prev: str, reason: str) -> None:
    with pytest.raises(BadRecord, match=reason):
        decode(line(updated()), seq, prev)


@pytest.mark.parametrize(
    ("change", "error", "reason"),
    [
        ({"v": 2}, NewerRecord, "record version 2"),
        ({"type": "from_the_future"}, NewerRecord, "from_the_future"),
        ({"status": "sleeping"}, BadRecord, "status"),
        ({"task_id": "../x"}, BadRecord, "task_id"),
        ({"extra": 1}, BadRecord, "extra"),
        ({"at": "yesterday"}, BadRecord, "at"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_a_resealed_line_is_still_judged(
    change: dict[str, object], error: type[ValueError], reason: str
) -> None:
    fields = json.loads(line(updated()))
    prev = fields.pop("prev")
    with pytest.raises(error, match=reason):
        decode(resealed({**fields, **change, "prev": prev}), 7, PREV)


def test_a_line_that_lacks_a_field_is_refused() -> None:
    fields = json.loads(line(updated()))
    del fields["agent_id"]
    with pytest.raises(BadRecord, match="agent_id"):
        decode(resealed(fields), 7, PREV)


@pytest.mark.parametrize("written", OLDER, ids=lambda fields: str(fields["type"]))
def test_a_line_of_an_older_guard_is_read(written: dict[str, Any]) -> None:
    event, _, _ = decode(resealed(dict(written)), written["seq"], written["prev"])
    frame = {"v", "seq", "more", "prev", "hash"}
    fields = {name: value for name, value in written.items() if name not in frame}
    assert event.model_dump(mode="json", exclude_unset=True) == fields


def test_fields_in_another_order_are_refused() -> None:
    fields = json.loads(line(updated()))
    with pytest.raises(BadRecord, match="order"):
        decode(resealed({"seq": 7, **fields}), 7, PREV)


@given(st.binary(max_size=300))
def test_garbage_is_refused(garbage: bytes) -> None:
    with pytest.raises(BadRecord):
        decode(garbage, 1, NO_HASH)
    with pytest.raises(BadRecord):
        unseal_line(garbage)


def test_older_records_are_migrated_step_by_step() -> None:
    steps = {
        1: lambda fields: {"b": fields["a"]},
        2: lambda fields: {"b": fields["b"] + 1},
    }
    assert migrate_record({"a": 1}, 1, steps, to=3) == {"b": 2}
    assert migrate_record({"b": 1}, 3, steps, to=3) == {"b": 1}
    with pytest.raises(LookupError):
        migrate_record({"a": 1}, 0, steps, to=3)
