"""Models made from values that were checked before, many times a second: without what pydantic does for models in general."""

from functools import cache
from typing import Any, TypeVar

from guard.core.base.fields import Frozen

M = TypeVar("M", bound=Frozen)
_put = object.__setattr__


def make_model(kind: type[M], values: dict[str, Any]) -> M:
    """A model of these values, which have to be all that it has, and are its own from now on; they are not checked.

    They stand in the order of the fields, because so they are written: given in that order, they are taken as they are.
    """
    names, given = _fields(kind)
    if tuple(values) != names:
        values = {name: values[name] for name in names}
    return _with(kind, values, given)


def copy_model(model: M, news: dict[str, Any]) -> M:
    """The same model with other values in some of its fields, all of which it has."""
    return _with(type(model), {**model.__dict__, **news}, model.__pydantic_fields_set__)


def update_model(model: Frozen, news: dict[str, Any]) -> None:
    """Other values in some of the fields of a model that nobody else has seen yet."""
    model.__dict__.update(news)


@cache
def _fields(kind: type[Frozen]) -> tuple[tuple[str, ...], set[str]]:
    names = tuple(kind.__pydantic_fields__)
    return names, set(names)


def _with(kind: type[M], values: dict[str, Any], given: set[str]) -> M:
    model = kind.__new__(kind)
    _put(model, "__dict__", values)
    _put(model, "__pydantic_fields_set__", given)
    _put(model, "__pydantic_extra__", None)
    _put(model, "__pydantic_private__", None)
    return model
