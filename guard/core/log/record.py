"""Encode one event as one line of the log: numbered, chained to the line before, and hashed over its own bytes.

A line is `{"v":1,"seq":N,"more":M,<the event>,"prev":"<64 hex>","hash":"<64 hex>"}`. The hash covers every byte before
`,"hash"`, so `prev` is under it, and one changed bit anywhere breaks the line or the chain. It is compared before anything is
parsed. `more` is how many records of the same change follow: a change of several events is there when its last one is.

A field that came to an event later has a default: it is what the silence of older versions means. A record's version rises
only when the meaning of a field changes. For each step write a function from the fields of version
n to those of version n + 1 into `RECORD_STEPS`. Views need none: an older view is folded again from the log.
"""

import json
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, NamedTuple, cast

from pydantic import ValidationError
from pydantic_core import from_json

from guard.core.base.fields import first_problem
from guard.core.log.events import BaseEvent
from guard.core.log.table import event_class

Fields = dict[str, Any]
Step = Callable[[Fields], Fields]
RECORD_VERSION = 1
RECORD_STEPS: Mapping[int, Step] = {}
NO_HASH = "0" * 64
_SEAL = len(b',"hash":""}') + len(NO_HASH)
_LINK = len(b',"prev":""') + len(NO_HASH)
_MOST_DIGITS, _ZERO = 9, ord("0")
_NO_FOLLOWER = "it does not follow the record before it"
_TAG, _TAG_WITHIN = b',"type":"', 64
_validators: dict[bytes, Callable[[bytes], BaseEvent]] = {}
"""Those that were met already, by the tag of their events: to build all of them at once is dear."""


class Position(NamedTuple):
    """A place between two records: what has been read so far, and where to go on."""

    segment: int
    offset: int
    seq: int
    hash: str


START = Position(1, 0, 0, NO_HASH)


class LogEntry(NamedTuple):
    """An event, the place right after it, and how many records of the same change follow."""

    event: BaseEvent
    position: Position
    more: int = 0


class BadRecord(ValueError):
    """The line is not what was written, or not what may stand here."""


class NewerRecord(ValueError):
    """The line is sound, but this version does not know its meaning."""


def encode(event: BaseEvent, seq: int, prev: str, more: int = 0) -> tuple[bytes, str]:
    """Return the line with its newline, and its hash."""
    body = event.__pydantic_serializer__.to_json(event)[1:-1]
    head = (RECORD_VERSION, seq, more, body, prev.encode())
    sealed = b'{"v":%d,"seq":%d,"more":%d,%s,"prev":"%s"' % head
    digest = sha256(sealed).hexdigest()
    return b'%s,"hash":"%s"}\n' % (sealed, digest.encode()), digest


def decode(line: bytes, seq: int, prev: str) -> tuple[BaseEvent, str, int]:
    """Return the event of a line that should be record `seq` after `prev`, its hash, and how many of its change follow."""
    sealed, digest = _check_hash(line)
    head = b'{"v":%d,"seq":%d,"more":' % (RECORD_VERSION, seq)
    start = len(head)
    end = line.find(b",", start, start + _MOST_DIGITS + 1)
    more = line[start:end]
    if (
        not line.startswith(head)
        or not sealed.endswith(f',"prev":"{prev}"'.encode())
        or not more.isdigit()
        or (more[0] == _ZERO and more != b"0")
    ):
        event, count = _explain(sealed, seq, prev)
        return event, digest, count
    try:
        event = _validate(b"{%s}" % sealed[end + 1 : -_LINK])
    except ValidationError as error:
        raise BadRecord(first_problem(error)) from None
    return event, digest, int(more)


def unseal_line(line: bytes) -> dict[str, Any]:
    """Return the fields of a line whose own hash is right, whatever stood before it; its hash among them."""
    sealed, digest = _check_hash(line)
    return {**_fields(sealed), "hash": digest}


def _check_hash(line: bytes) -> tuple[bytes, str]:
    sealed = line[:-_SEAL]
    digest = sha256(sealed).hexdigest()
    if not line.endswith(f',"hash":"{digest}"}}'.encode()):
        raise BadRecord("its hash does not match its bytes")
    return sealed, digest


def check_link(line: bytes, prev: str) -> str:
    """Return the hash of a line that is whole and follows the record with the hash `prev`; what it means is not read."""
    sealed, digest = _check_hash(line)
    if not sealed.endswith(f',"prev":"{prev}"'.encode()):
        raise BadRecord(_NO_FOLLOWER)
    return digest


def decode_alone(line: bytes) -> BaseEvent:
    fields = unseal_line(line)
    return decode(line, fields["seq"], fields["prev"])[0]


def _fields(sealed: bytes) -> dict[str, Any]:
    try:
        fields = from_json(sealed + b"}")
    except ValueError as error:
        raise BadRecord(f"it is not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise BadRecord("it is not an object")
    return fields


def migrate_record(
    fields: Fields, version: int, steps: Mapping[int, Step] = RECORD_STEPS, to: int = RECORD_VERSION
) -> Fields:
    """Return the fields as version `to` means them; LookupError where no step leads on."""
    for step in range(version, to):
        fields = steps[step](dict(fields))
    return fields


def _explain(sealed: bytes, seq: int, prev: str) -> tuple[BaseEvent, int]:
    # Slow path: an older record that must be migrated, or the reason why the line may not stand here.
    fields = _fields(sealed)
    version = fields.pop("v", None)
    if isinstance(version, int) and version > RECORD_VERSION:
        raise NewerRecord(f"it has record version {version}; this guard knows {RECORD_VERSION}")
    if fields.pop("seq", None) != seq:
        raise BadRecord(f"it should be record {seq}")
    if fields.pop("prev", None) != prev:
        raise BadRecord(_NO_FOLLOWER)
    more = fields.pop("more", 0)
    if not isinstance(version, int) or not isinstance(more, int) or version == RECORD_VERSION:
        raise BadRecord("its fields are not in the order in which guard writes them")
    try:
        event = _validate(json.dumps(migrate_record(fields, version)).encode())
    except (ValidationError, LookupError) as error:
        raise BadRecord(f"it cannot be migrated from version {version}: {error}") from None
    return event, more


def _validate(body: bytes) -> BaseEvent:
    start = body.find(_TAG, 0, _TAG_WITHIN) + len(_TAG)
    validator = _validators.get(body[start : body.find(b'"', start)]) or _validator(body)
    return validator(body)


def _validator(body: bytes) -> Callable[[bytes], BaseEvent]:
    # Slow path: the first event of its type, or one whose tag does not stand where guard writes it.
    tag = _fields(body[:-1]).get("type")
    known = event_class(tag) if isinstance(tag, str) else None
    if known is None and isinstance(tag, str):
        raise NewerRecord(f"it has the event type {tag!r}, which this guard does not know")
    if known is None:
        raise BadRecord("it has no event type")
    validate = cast(Callable[[bytes], BaseEvent], known.__pydantic_validator__.validate_json)
    _validators[str(tag).encode()] = validate
    return validate
