"""Models made without checks are like those that pydantic makes."""

import pytest

from guard.core.base.fast_models import copy_model, make_model
from guard.core.coordinator.entries import Parcel
from tests.support.events import MOMENT

VALUES = {
    "at": MOMENT,
    "text": "Go on.",
    "item_id": "item-1",
    "kind": "start",
    "agent_id": "dev-1",
    "incarnation": 1,
    "task_id": None,
}


def test_they_are_equal_and_written_alike() -> None:
    quick, checked = make_model(Parcel, VALUES), Parcel.model_validate(VALUES)
    assert quick == checked
    assert quick.model_dump_json() == checked.model_dump_json()
    assert quick.model_fields_set == checked.model_fields_set


def test_an_altered_one_is_a_copy() -> None:
    first = make_model(Parcel, VALUES)
    other = copy_model(first, {"text": "Stop."})
    assert (first.text, other.text) == ("Go on.", "Stop.")
    assert other == first.model_copy(update={"text": "Stop."})
    assert list(other.__dict__) == list(first.__dict__)


def test_what_is_missing_is_found() -> None:
    with pytest.raises(KeyError):
        make_model(Parcel, {"item_id": "item-1"})
