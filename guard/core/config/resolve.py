"""Resolve the settings: which source may set which key, and which value is in force.

Sources come from weakest to strongest: the project's files, the user's file, variables, flags. The agent can edit the
project's files, so keys marked as the user's are ignored there.
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
    """A key or a value that cannot be used; the message names its origin."""


def knobs() -> Iterator[Knob]:
    for name, info in Settings.model_fields.items():
        section = info.annotation
        if isinstance(section, type) and issubclass(section, Section):
            for key, inner in section.model_fields.items():
                yield _knob(f"{name}.{key}", inner, section)
        else:
            yield _knob(name, info, Settings)


def _knob(key: str, info: FieldInfo, table: type[Section]) -> Knob:
    extra = info.json_schema_extra
    return Knob(key, info.default, isinstance(extra, dict) and bool(extra.get("user_only")), table)


def resolve(sources: Sequence[SettingSource]) -> Resolved:
    """Merge the sources, of which the last one wins, and keep the origin of each value."""
    known = {knob.key: knob for knob in knobs()}
    merged: dict[str, Any] = {}
    origins: dict[str, str] = {}
    warnings: list[str] = []
    from_project: dict[str, Any] = {}
    for source in sources:
        values = dict(_leaves(source, known))
        for key in [key for key in values if known[key].user_only and not source.trusted]:
            del values[key]
            warnings.append(
                f"{source.origin}: {key} is ignored: only the user's own config may set it"
            )
        if not values:
            continue
        checked = _validate(values, source)
        for key in values:
            merged[key] = _value_at(checked, key)
            origins[key] = source.origin
            if not source.trusted:
                from_project[key] = merged[key]
    settings = Settings.model_validate(nest_keys(merged)) if merged else Settings.model_construct()
    return Resolved(settings, origins, tuple(warnings), from_project)


def _leaves(source: SettingSource, known: Mapping[str, Knob]) -> Iterator[tuple[str, Any]]:
    sections = {key.split(".")[0] for key in known if "." in key}
    for name, value in source.values.items():
        if "." in name:
            raise BadSetting(
                f"{source.origin}: the key {name!r} has a dot in it; write a table instead"
            )
        if name in sections and isinstance(value, Mapping):
            pairs = [(f"{name}.{key}", inner) for key, inner in value.items()]
        else:
            pairs = [(name, value)]
        for key, inner in pairs:
            if key not in known:
                raise BadSetting(f"{source.origin}: {_explain_unknown_key(key, known, sections)}")
            yield key, inner


def _explain_unknown_key(key: str, known: Mapping[str, Knob], sections: set[str]) -> str:
    if key in sections:
        return f"{key} is a section: it has keys, not a value"
    last = key.rpartition(".")[2]
    same = [name for name in known if name.rpartition(".")[2] == last]
    near = same or get_close_matches(key, known, n=1, cutoff=0.4)
    return f"unknown key {key!r}" + (f"; did you mean {near[0]!r}?" if near else "")


def _validate(values: Mapping[str, Any], source: SettingSource) -> Settings:
    try:
        return Settings.model_validate(nest_keys(values), strict=not source.textual)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        got = repr(first["input"])
        got = got if len(got) <= 80 else f"{got[:80]}…"
        raise BadSetting(f"{source.origin}: {key}: {first['msg']} (got {got})") from None


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
