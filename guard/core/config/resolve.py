"""The knobs, turned: which source may set which, and what is in force.

Sources are given from weakest to strongest: the project's file, the user's file, the environment, flags. The project's file
is the agent's to edit, so knobs that are marked as the user's are not taken from it.
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
    """One key with all that can be said about it."""

    key: str
    default: Any
    user_only: bool
    table: type[Section]

    @property
    def description(self) -> str:
        """What it does."""
        return field_descriptions(self.table).get(self.key.rpartition(".")[2], "")

    @property
    def section(self) -> str:
        """What its table is about; nothing for a key that stands in none."""
        return (self.table.__doc__ or "").strip() if "." in self.key else ""

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return "GUARD_" + self.key.replace(".", "__").upper()


@dataclass(frozen=True)
class SettingSource:
    """Where values come from, as it is shown to people."""

    origin: str
    values: Mapping[str, Any]
    trusted: bool = True
    textual: bool = False
    """Values are text that has to be converted, as in the environment."""


@dataclass(frozen=True)
class Resolved:
    """The settings in force, where each came from, and what was passed over."""

    settings: Settings
    origins: Mapping[str, str]
    warnings: tuple[str, ...]
    from_project: Mapping[str, Any] = field(default_factory=dict)
    """What the project's own files say, stronger sources left aside: this is frozen when an iteration begins."""


class BadSetting(ValueError):
    """A key or a value that cannot be used, with its origin."""


def knobs() -> Iterator[Knob]:
    """Every key, in the order in which people see them."""
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
    """Merge the sources, the last one winning, and say where each value came from."""
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
        checked = _validated(values, source)
        for key in values:
            merged[key] = _value_at(checked, key)
            origins[key] = source.origin
            if not source.trusted:
                from_project[key] = merged[key]
    settings = Settings.model_validate(nested(merged)) if merged else Settings.model_construct()
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
                raise BadSetting(f"{source.origin}: {_unknown(key, known, sections)}")
            yield key, inner


def _unknown(key: str, known: Mapping[str, Knob], sections: set[str]) -> str:
    if key in sections:
        return f"{key} is a section: it has keys, not a value"
    last = key.rpartition(".")[2]
    same = [name for name in known if name.rpartition(".")[2] == last]
    near = same or get_close_matches(key, known, n=1, cutoff=0.4)
    return f"unknown key {key!r}" + (f"; did you mean {near[0]!r}?" if near else "")


def _validated(values: Mapping[str, Any], source: SettingSource) -> Settings:
    try:
        return Settings.model_validate(nested(values), strict=not source.textual)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        got = repr(first["input"])
        got = got if len(got) <= 80 else f"{got[:80]}…"
        raise BadSetting(f"{source.origin}: {key}: {first['msg']} (got {got})") from None


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values by dotted keys, as the tables that a configuration file would have."""
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
    """The value in force of one knob."""
    return _value_at(resolved.settings, knob.key)


def config_template(*, for_user: bool) -> str:
    """A configuration file with every key that may stand in it, commented out at its default."""
    whose = "your own settings, for all repositories" if for_user else "settings of this repository"
    lines = [
        f"# guard: {whose}.",
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
