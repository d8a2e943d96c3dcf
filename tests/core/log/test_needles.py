"""A view is found again in the log by what every one of its lines has in it; a needle that misses a line would lose it."""

import json
from typing import Any

import pytest

from guard.core.log.record import NO_HASH, encode
from guard.core.log.table import event_types, view_kinds
from guard.core.log.view import ViewKind
from tests.support import ROOT

EXAMPLES = ROOT / "tests" / "examples" / "event" / "valid"
ENVELOPE = ("v", "seq", "more", "prev", "hash")


def events() -> list[Any]:
    documents = [json.loads(path.read_text()) for path in sorted(EXAMPLES.glob("*.json"))]
    own = [{key: doc[key] for key in doc if key not in ENVELOPE} for doc in documents]
    known = event_types()
    return [known[one["type"]].model_validate_json(json.dumps(one)) for one in own]


@pytest.mark.parametrize("kind", list(view_kinds()), ids=lambda kind: kind.document.__name__)
def test_every_line_of_a_view_has_one_of_its_needles(kind: ViewKind[Any, Any]) -> None:
    touching: list[Any] = [event for event in events() if isinstance(event, kind.events)]
    assert {type(event) for event in touching} == set(kind.events)
    for event in touching:
        line, _ = encode(event, 1, NO_HASH)
        assert any(needle in line for needle in kind.needles(kind.key(event))), line


@pytest.mark.parametrize("kind", list(view_kinds()), ids=lambda kind: kind.document.__name__)
def test_a_fold_knows_every_one_of_its_events(kind: ViewKind[Any, Any]) -> None:
    for event in events():
        if isinstance(event, kind.events):
            fold = kind.fold(kind.key(event))
            fold.apply(event)
            fold.contents()
