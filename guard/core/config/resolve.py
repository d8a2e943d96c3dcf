"""Resolve the settings: which source may set which key, and which value is in force.

Sources come from weakest to strongest: the project's files, the user's file, variables, flags. The agent can edit the
project's files, so keys marked as the user's are ignored there, and a fault in them is a warning that stops no command.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from guard.core.base.docstrings import field_descriptions
from guard.core.base.fields import Section
from guard.core.config.settings import Settings


@dataclass(frozen=True)
class Knob:
    """One key of the configuration."""

    key: str
    default: Any
    user_only: bool
    table: type[Section]
    only_raised: bool = False
    """Whether a project may not set it below its default."""

    @property
    def description(self) -> str:
        return field_descriptions(self.table).get(self.key.rpartition(".")[2], "")

    @property
    def section(self) -> str:
        """Return the description of the key's table; empty for a key outside all tables."""
        return (self.table.__doc__ or "").strip() if "." in self.key else ""

    @property
    def variable(self) -> str:
        return "GUARD_" + self.key.replace(".", "__").upper()


@dataclass(frozen=True)
class SettingSource:
    """Values from one origin, such as a file or a variable."""

    origin: str
    values: Mapping[str, Any]
    trusted: bool = True
    textual: bool = False
    """Values are text that has to be converted, as in the environment."""


@dataclass(frozen=True)
class Resolved:
    """The settings in force, the origin of each, and warnings about ignored keys."""

    settings: Settings
    origins: Mapping[str, str]
    warnings: tuple[str, ...]
    from_project: Mapping[str, Any] = field(default_factory=dict)
    """What the project's own files say, stronger sources left aside: this is frozen when an iteration begins."""


class BadSetting(ValueError):
    """A key or a value of a trusted source that cannot be used; the message names its origin."""


_MOST_WARNINGS = 20
"""How many faults of one source are described: an agent can write very many."""
_LONGEST_KEY = 80


def knobs() -> Iterator[Knob]:
    for name, info in Settings.model_fields.items():
        section = info.annotation
        if isinstance(section, type) and issubclass(section, Section):
            for key, inner in section.model_fields.items():
                yield _knob(f"{name}.{key}", inner, section)
        else:
            yield _knob(name, info, Settings)


def _knob(key: str, info: FieldInfo, table: type[Section]) -> Knob:
    extra = info.json_schema_extra if isinstance(info.json_schema_extra, dict) else {}
    marks = {name: bool(extra.get(name)) for name in ("user_only", "only_raised")}
    return Knob(key, info.default, table=table, **marks)


def resolve(sources: Sequence[SettingSource]) -> Resolved:
    """Merge the sources, of which the last one wins, and keep the origin of each value."""
    known = {knob.key: knob for knob in knobs()}
    merged: dict[str, Any] = {}
    origins: dict[str, str] = {}
    warnings: list[str] = []
    from_project: dict[str, Any] = {}
    for source in sources:
        values, faults = _read(source, known)
        warnings += _warn_of(faults, source.origin)
        merged.update(values)
        origins.update(dict.fromkeys(values, source.origin))
        if not source.trusted:
            from_project.update(values)
    settings = Settings.model_validate(nest_keys(merged)) if merged else Settings.model_construct()
    return Resolved(settings, origins, tuple(warnings), from_project)


def _read(source: SettingSource, known: Mapping[str, Knob]) -> tuple[dict[str, Any], list[str]]:
    """Return the values that count, and a sentence about each one that does not; a trusted source may have none of those."""
    values: dict[str, Any] = {}
    faults: list[str] = []
    for key, value, is_known in _leaves(source, known):
        if not is_known:
            # Searching the nearest key takes long, and only the first faults are shown.
            shown = len(faults) < _MOST_WARNINGS
            faults.append(_explain_unknown_key(key, known) if shown else key)
        elif known[key].user_only and not source.trusted:
            faults.append(f"{key} is ignored: only the user's own config may set it")
        else:
            values[key] = value
        if faults and source.trusted:
            raise BadSetting(f"{source.origin}: {faults[0]}")
    while values:
        try:
            checked = Settings.model_validate(nest_keys(values), strict=not source.textual)
        except ValidationError as error:
            wrong = _wrong_values(error, values)
            if source.trusted:
                raise BadSetting(f"{source.origin}: {next(iter(wrong.values()))}") from None
            faults += wrong.values()
            values = {key: value for key, value in values.items() if key not in wrong}
        else:
            found = {key: _value_at(checked, key) for key in values}
            lowered = [] if source.trusted else _list_lowered(found, known)
            faults += [_explain_lowered(known[key]) for key in lowered]
            return {key: found[key] for key in found if key not in lowered}, faults
    return {}, faults


def _list_lowered(values: Mapping[str, Any], known: Mapping[str, Knob]) -> list[str]:
    return [key for key in values if known[key].only_raised and values[key] < known[key].default]


def _explain_lowered(knob: Knob) -> str:
    return f"{knob.key} is ignored: only the user's own config may set it below {knob.default}"


def _leaves(source: SettingSource, known: Mapping[str, Knob]) -> Iterator[tuple[str, Any, bool]]:
    """Yield each key with its value, and whether it is a known key in its place."""
    sections = _sections(known)
    for name, value in source.values.items():
        if name in sections and isinstance(value, Mapping):
            for key, inner in value.items():
                yield f"{name}.{key}", inner, f"{name}.{key}" in known
        else:
            yield name, value, name in known and "." not in name


def _sections(known: Mapping[str, Knob]) -> set[str]:
    return {key.split(".")[0] for key in known if "." in key}


def _explain_unknown_key(key: str, known: Mapping[str, Knob]) -> str:
    if key in known:
        return f"the key {key!r} has a dot in it; write a table instead"
    if key in _sections(known):
        return f"{key} is a section: it has keys, not a value"
    last = key.rpartition(".")[2]
    same = [name for name in known if name.rpartition(".")[2] == last]
    near = same or get_close_matches(key[:_LONGEST_KEY], known, n=1, cutoff=0.4)
    shown = key if len(key) <= _LONGEST_KEY else f"{key[:_LONGEST_KEY]}…"
    return f"unknown key {shown!r}" + (f"; did you mean {near[0]!r}?" if near else "")


def _wrong_values(error: ValidationError, values: Mapping[str, Any]) -> dict[str, str]:
    """Return a sentence about each key whose value is wrong."""
    wrong: dict[str, str] = {}
    for problem in error.errors(include_url=False):
        place = [str(part) for part in problem["loc"]]
        sentence = f"{'.'.join(place)}: {problem['msg']} (got {_show(problem['input'])})"
        # What is wrong inside a value, or with a table as a whole, belongs to no key of that name.
        named = [key for key in (place[0], ".".join(place[:2])) if key in values]
        for key in named or values:
            wrong.setdefault(key, sentence)
    return wrong


def _show(value: Any) -> str:
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # Very deep tables, very long numbers.
        text = type(value).__name__
    return text if len(text) <= 80 else f"{text[:80]}…"


def _warn_of(faults: Sequence[str], origin: str) -> list[str]:
    shown = [f"{origin}: {fault}" for fault in faults[:_MOST_WARNINGS]]
    more = len(faults) - len(shown)
    return [*shown, f"{origin}: {more} more keys are ignored"] if more else shown


def nest_keys(values: Mapping[str, Any]) -> dict[str, Any]:
    """Turn dotted keys into the tables of a configuration file."""
    tables: dict[str, Any] = {}
    for key, value in values.items():
        section, _, name = key.rpartition(".")
        (tables.setdefault(section, {}) if section else tables)[name] = value
    return tables


def _value_at(settings: Settings, key: str) -> Any:
    value: Any = settings
    for name in key.split("."):
        value = getattr(value, name)
    return value


def value_of(resolved: Resolved, knob: Knob) -> Any:
    return _value_at(resolved.settings, knob.key)


def config_template(*, for_user: bool) -> str:
    """Return a configuration file with every key, commented out at its default."""
    subject = (
        "your own settings, for all repositories" if for_user else "settings of this repository"
    )
    lines = [
        f"# guard: {subject}.",
        "# Each key is shown with its default; `guard config` shows what is in force.",
        "",
    ]
    section = ""
    for knob in knobs():
        if knob.user_only and not for_user:
            continue
        name, _, key = knob.key.rpartition(".")
        if name != section:
            lines += [f"# {knob.section}", f"[{name}]", ""]
            section = name
        value = '"/path/to/a/folder"' if knob.default is None else _toml(knob.default)
        lines += [f"# {knob.description}", f"# {key} = {value}", ""]
    return "\n".join(lines)


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else repr(value)
