"""Make models from values that were checked before, without the cost of pydantic's validation."""

from functools import cache
from typing import Any, TypeVar

from guard.core.base.fields import Frozen

M = TypeVar("M", bound=Frozen)
_put = object.__setattr__


def make_model(kind: type[M], values: dict[str, Any]) -> M:
    """Make a model without checking the values; they must include every field."""
    names, given = _fields(kind)
    if tuple(values) != names:
        values = {name: values[name] for name in names}
    return _with(kind, values, given)


def entry_from(kind: type[M], source: Frozen, **own: Any) -> M:
    """Make a model of the fields that it shares with an event or a document, and of its `own`, without checking them."""
    shared = {name: getattr(source, name) for name in _shared_fields(kind, type(source))}
    return make_model(kind, {**shared, **own})


def copy_model(model: M, news: dict[str, Any]) -> M:
    return _with(type(model), {**model.__dict__, **news}, model.__pydantic_fields_set__)


def update_model(model: Frozen, news: dict[str, Any]) -> None:
    """Change fields of a model in place; only for a model that no other code has seen yet."""
    model.__dict__.update(news)


@cache
def _fields(kind: type[Frozen]) -> tuple[tuple[str, ...], set[str]]:
    names = tuple(kind.__pydantic_fields__)
    return names, set(names)


@cache
def _shared_fields(kind: type[Frozen], source: type[Frozen]) -> tuple[str, ...]:
    return tuple(name for name in _fields(kind)[0] if name in _fields(source)[1])


def _with(kind: type[M], values: dict[str, Any], given: set[str]) -> M:
    model = kind.__new__(kind)
    _put(model, "__dict__", values)
    _put(model, "__pydantic_fields_set__", given)
    _put(model, "__pydantic_extra__", None)
    _put(model, "__pydantic_private__", None)
    return model
