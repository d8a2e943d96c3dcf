"""Dataclasses and patterns that are built when they are first used.

A command loads far more of both than it uses, and a dataclass costs a third of a millisecond to make: a class that no object
is made of, and a pattern that nothing is compared with, cost nothing here.
"""

import re
from _thread import RLock
from dataclasses import MISSING, Field, fields
from dataclasses import dataclass as _standard_dataclass
from typing import TYPE_CHECKING, Any

_lock = RLock()
_FIELDS = "__dataclass_fields__"

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass

    late_pattern = re.compile
else:

    def dataclass(cls: type | None = None, /, **options: bool) -> Any:
        """Make a dataclass whose methods are written when its first object is made; it cannot have slots."""
        if cls is None:
            return lambda decorated: dataclass(decorated, **options)
        if options.get("slots"):
            raise TypeError("a class with slots is another class: use the dataclass of Python")
        cls.__init__ = _first_init(cls)
        setattr(cls, _FIELDS, _LateFields(cls, options))
        return cls

    class late_pattern:  # noqa: N801 - it stands where re.compile stood
        """A regular expression that is compiled when one of its methods is first asked for."""

        def __init__(self, text: str | bytes, flags: int = 0) -> None:
            self._given = text, flags

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            found = getattr(re.compile(*self._given), name)
            setattr(self, name, found)
            return found


class _LateFields:
    """Stands for the fields of a dataclass until its first object, or a class that inherits from it, asks for them."""

    def __init__(self, cls: type, options: dict[str, bool]) -> None:
        self._cls = cls
        self.options = options

    def __get__(self, _object: object, _owner: type) -> Any:
        build(self._cls)
        return self._cls.__dict__[_FIELDS]


def _first_init(cls: type) -> Any:
    def build_first(self: Any, *args: Any, **kwargs: Any) -> None:
        build(cls)
        cls.__init__(self, *args, **kwargs)  # type: ignore[misc]

    return build_first


def build(cls: type) -> None:
    """Write the methods of a dataclass now, and of those that it comes from; a class that has them already is left alone."""
    with _lock:
        for base in reversed(cls.__mro__):
            late = base.__dict__.get(_FIELDS)
            if isinstance(late, _LateFields):
                # The initializer is replaced in one step, because another thread may be making an object meanwhile.
                _standard_dataclass(init=False, **late.options)(base)
                base.__init__ = _initializer(base, frozen=late.options.get("frozen", False))  # type: ignore[misc]


def _initializer(cls: type, *, frozen: bool) -> Any:
    """Return what `dataclass` would have written as the initializer."""
    words: dict[str, Any] = {"_put": object.__setattr__, "_missing": MISSING}
    positional: list[str] = []
    named: list[str] = []
    lines: list[str] = []
    for field in fields(cls):
        value = _value(field, words)
        if value is None:
            continue
        if field.init:
            (named if field.kw_only else positional).append(_parameter(field))
        lines.append(
            f"_put(self, {field.name!r}, {value})" if frozen else f"self.{field.name} = {value}"
        )
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    parameters = ", ".join(["self", *positional, *(["*", *named] if named else [])])
    exec(f"def __init__({parameters}):\n " + "\n ".join(lines or ["pass"]), words)  # noqa: S102 - as `dataclasses` does it
    made = words["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    made.__annotations__ = {field.name: field.type for field in fields(cls) if field.init}
    return made


def _value(field: "Field[Any]", words: dict[str, Any]) -> str | None:
    """Return the expression for the value of a field, after naming what it needs; None if the class has it."""
    name = field.name
    if field.default_factory is not MISSING:
        words[f"_make_{name}"] = field.default_factory
        return (
            f"_make_{name}() if {name} is _missing else {name}" if field.init else f"_make_{name}()"
        )
    if field.default is not MISSING:
        words[f"_default_{name}"] = field.default
    return name if field.init else None


def _parameter(field: "Field[Any]") -> str:
    if field.default_factory is not MISSING:
        return f"{field.name}=_missing"
    return field.name if field.default is MISSING else f"{field.name}=_default_{field.name}"
