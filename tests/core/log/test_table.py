"""The table of events and views says what the code says, and loads a room only when one of its events is met."""

import pkgutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest

import guard.core
from guard.core.log.events import BaseEvent
from guard.core.log.table import EVENT_MODULES, event_class, event_types, view_kinds, views_of
from guard.core.log.view import ViewKind


def modules() -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(guard.core.__path__, "guard.core."):
        yield import_module(found.name)


def event_classes() -> dict[str, type[BaseEvent]]:
    """Every event class of the code by its tag; those without one are bases of others."""
    return {
        one.model_fields["type"].default: one
        for module in modules()
        for one in vars(module).values()
        if isinstance(one, type)
        and issubclass(one, BaseEvent)
        and isinstance(one.model_fields["type"].default, str)
    }


def test_every_event_of_the_code_is_in_the_table_once() -> None:
    tags = Counter(tag for module in EVENT_MODULES for tag in module.tags.split())
    assert tags == Counter(event_classes().keys())
    assert event_types() == event_classes()


@pytest.mark.parametrize("module", EVENT_MODULES, ids=lambda module: module.name)
def test_an_event_stands_in_the_module_that_the_table_names(module: Any) -> None:
    for tag in module.tags.split():
        known = event_class(tag)
        assert known is not None
        assert known.__module__ == module.name


def test_every_view_of_the_code_is_in_the_table_once() -> None:
    kinds = [one for module in modules() for one in vars(module).values() if type(one) is ViewKind]
    assert {id(kind) for kind in kinds} == {id(kind) for kind in view_kinds()}


def test_an_event_reaches_every_view_that_folds_it() -> None:
    for event in event_types().values():
        folding = {kind.document.__name__ for kind in view_kinds() if event in kind.events}
        assert {kind.document.__name__ for kind in views_of(event)} == folding


def test_a_tag_of_a_newer_guard_is_unknown() -> None:
    assert event_class("not_yet_invented") is None


def test_a_record_loads_only_the_room_of_its_event() -> None:
    script = (
        "import sys; from guard.core.log.table import event_class; import guard.core.log.record;"
        "event_class('team_cleared');"
        "print(*(name for name in sys.modules if name.endswith('events')))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    loaded = set(done.stdout.split())
    assert "guard.core.team.events" in loaded
    assert not {name for name in loaded if name.startswith("guard.core.coordinator")}
    assert not {name for name in loaded if name.startswith("guard.core.breaker")}
