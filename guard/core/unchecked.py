"""Models made from values that were checked before, many times a second: without what pydantic does for models in general."""

from typing import Any, TypeVar

from guard.core.fields import Frozen

M = TypeVar("M", bound=Frozen)


def made(kind: type[M], /, **values: Any) -> M:
    """A model of these values, which have to be all that it has; they are not checked.

    They stand in the order of the fields, because so they are written.
    """
    return _with(kind, {name: values[name] for name in kind.__pydantic_fields__})


def altered(model: M, /, **news: Any) -> M:
    """The same model with other values in some of its fields."""
    return _with(type(model), {**model.__dict__, **news})


def _with(kind: type[M], values: dict[str, Any]) -> M:
    model = kind.__new__(kind)
    put = object.__setattr__
    put(model, "__dict__", values)
    put(model, "__pydantic_fields_set__", set(values))
    put(model, "__pydantic_extra__", None)
    put(model, "__pydantic_private__", None)
    return model
