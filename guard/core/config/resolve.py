"""Resolve the settings: which source may set which key, and which value is in force.

Sources come from weakest to strongest: the project's files, the user's file, variables, flags. The agent can edit the
project's files, so keys marked as the user's are ignored there, and a fault in them is a warning that stops no command.
Where the user trusts what these files hold in a commit, that content is a source of its own, for the user's keys.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from guard.core.base.first_use import dataclass
from guard.core.config.settings import TABLES, TOP, Settings, load_table

if TYPE_CHECKING:
    from pydantic import ValidationError

    from guard.core.base.fields import Section


@dataclass(frozen=True)
class Knob:
    """One key of the configuration."""

    key: str
    default: Any
    user_only: bool
    table: "type[Section]"
    only_raised: bool = False
    """Whether a project may not set it below its default."""

    @property
    def description(self) -> str:
        from guard.core.base.docstrings import field_descriptions

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
    approved: bool = False
    """The project's content in a commit that the user trusts: only keys that a project may not set by itself are taken."""
    is_settled: bool = False
    """The user trusts what the project's files hold in a commit: other such keys need no warning of their own here."""


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
_NEEDED_BEFORE = ("workspace", "store.")
"""Keys by which guard finds its state, where it learns of which commit the user's trust holds."""


def knobs() -> Iterator[Knob]:
    """Yield every key; this loads every table."""
    for name in TABLES:
        for key in load_table(name).model_fields:
            knob = find_knob(f"{name}.{key}" if name else key)
            assert knob is not None
            yield knob


def find_knob(key: str) -> Knob | None:
    """Return the knob of a dotted key; this loads no other table than the key's own."""
    name, _, last = key.rpartition(".")
    table = load_table(name) if name in TABLES else None
    info = table.model_fields.get(last) if table is not None else None
    if table is None or info is None:
        return None
    extra = info.json_schema_extra if isinstance(info.json_schema_extra, dict) else {}
    marks = {mark: bool(extra.get(mark)) for mark in ("user_only", "only_raised")}
    return Knob(key, info.default, table=table, **marks)


def key_of_variable(variable: str) -> str | None:
    """Return the key that a variable of the environment names, whether there is such a key or not."""
    if variable == "GUARD_WORKSPACE":
        return "workspace"
    if variable.startswith("GUARD_") and "__" in variable:
        return variable.removeprefix("GUARD_").replace("__", ".").lower()
    return None


def resolve(sources: Sequence[SettingSource]) -> Resolved:
    """Merge the sources, of which the last one wins, and keep the origin of each value."""
    merged: dict[str, Any] = {}
    origins: dict[str, str] = {}
    warnings: list[str] = []
    from_project: dict[str, Any] = {}
    for source in sources:
        values, faults = _read(source)
        warnings += _warn_of(faults, source.origin)
        merged.update(values)
        origins.update(dict.fromkeys(values, source.origin))
        if not source.trusted and not source.approved:
            from_project.update(values)
    return Resolved(Settings(_by_table(merged)), origins, tuple(warnings), from_project)


def _by_table(values: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the values of each table, in the order of the tables."""
    tables: dict[str, dict[str, Any]] = {}
    for key, value in values.items():
        name, _, last = key.rpartition(".")
        tables.setdefault(name, {})[last] = value
    return {name: tables[name] for name in TABLES if name in tables}


def _read(source: SettingSource) -> tuple[dict[str, Any], list[str]]:
    """Return the values that count, and a sentence about each one that does not; a trusted source may have none of those."""
    values, faults = _take_keys(source)
    found: dict[str, Any] = {}
    for name, table in _by_table(values).items():
        checked, wrong = _check_table(name, table, strict=not source.textual)
        if wrong and source.trusted:
            raise BadSetting(f"{source.origin}: {wrong[0]}")
        faults += wrong
        found.update(checked)
    may_lower = source.trusted or source.approved
    lowered = [] if may_lower else [key for key, value in found.items() if _is_lowered(key, value)]
    if not source.is_settled:
        faults += [_explain_lowered(key) for key in lowered]
    return {key: found[key] for key in values if key in found and key not in lowered}, faults


def _check_table(
    name: str, values: Mapping[str, Any], *, strict: bool
) -> tuple[dict[str, Any], list[str]]:
    """Return the values of a table that fit, by their keys, and a sentence about each value that does not."""
    from pydantic import ValidationError

    faults: list[str] = []
    while values:
        try:
            checked = load_table(name).model_validate(values, strict=strict)
        except ValidationError as error:
            wrong = _wrong_values(name, error, values)
            faults += wrong.values()
            values = {key: value for key, value in values.items() if key not in wrong}
        else:
            return {_join(name, key): getattr(checked, key) for key in values}, faults
    return {}, faults


def _join(table: str, key: str) -> str:
    return f"{table}.{key}" if table else key


def _take_keys(source: SettingSource) -> tuple[dict[str, Any], list[str]]:
    """Return the values of the keys that the source may set, and a sentence about each other key."""
    values: dict[str, Any] = {}
    faults: list[str] = []
    for key, value, is_in_place in _leaves(source):
        knob = find_knob(key) if is_in_place else None
        if source.approved and not (knob and needs_trust(knob)):
            continue
        if knob is None:
            # Searching the nearest key takes long, and only the first faults are shown.
            shown = len(faults) < _MOST_WARNINGS
            explain = _explain_unknown_table if _is_table(key, value) else _explain_unknown_key
            faults.append(explain(key) if shown else key)
        elif (refused := _refuse(knob, source)) is None:
            values[key] = value
        elif not source.is_settled:
            faults.append(refused)
        if faults and source.trusted:
            raise BadSetting(f"{source.origin}: {faults[0]}")
    return values, faults


def _refuse(knob: Knob, source: SettingSource) -> str | None:
    """Say why a source may not set a key; None if it may."""
    if source.approved and knob.key.startswith(_NEEDED_BEFORE):
        return f"{knob.key} is ignored: guard needs it before it reads what you trust"
    if knob.user_only and not (source.trusted or source.approved):
        return f"{knob.key} is ignored: only the user's own config may set it, or a file that the user trusts"
    return None


def needs_trust(knob: Knob) -> bool:
    """Tell whether a project's file may set the key, or set it as it likes, only where the user trusts the file."""
    return knob.user_only or knob.only_raised


def _is_lowered(key: str, value: Any) -> bool:
    knob = find_knob(key)
    return knob is not None and knob.only_raised and bool(value < knob.default)


def _explain_lowered(key: str) -> str:
    knob = find_knob(key)
    assert knob is not None
    return f"{key} is ignored: only the user's own config may set it below {knob.default}"


def _leaves(source: SettingSource) -> Iterator[tuple[str, Any, bool]]:
    """Yield each key with its value, and whether it stands where a key may stand."""
    for name, value in source.values.items():
        if name in TABLES and isinstance(value, Mapping) and name != TOP:
            for key, inner in value.items():
                yield f"{name}.{key}", inner, "." not in key
        else:
            yield name, value, "." not in name


def _is_table(key: str, value: Any) -> bool:
    return isinstance(value, Mapping) and "." not in key


def _explain_unknown_table(name: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name[:_LONGEST_KEY], sorted(_table_names()), n=1)
    return f"unknown key {_shorten(name)!r}" + (
        f"; did you mean the table {near[0]!r}?" if near else ""
    )


def _table_names() -> list[str]:
    return [name for name in TABLES if name != TOP]


def _shorten(key: str) -> str:
    return key if len(key) <= _LONGEST_KEY else f"{key[:_LONGEST_KEY]}…"


def _explain_unknown_key(key: str) -> str:
    from difflib import get_close_matches

    if find_knob(key) is not None:
        return f"the key {key!r} has a dot in it; write a table instead"
    if key in _table_names():
        return f"{key} is a section: it has keys, not a value"
    last = key.rpartition(".")[2]
    known = [knob.key for knob in knobs()]
    same = [name for name in known if name.rpartition(".")[2] == last]
    near = same or get_close_matches(key[:_LONGEST_KEY], known, n=1, cutoff=0.4)
    return f"unknown key {_shorten(key)!r}" + (f"; did you mean {near[0]!r}?" if near else "")


def _wrong_values(
    table: str, error: "ValidationError", values: Mapping[str, Any]
) -> dict[str, str]:
    """Return a sentence about each key of a table whose value is wrong."""
    wrong: dict[str, str] = {}
    for problem in error.errors(include_url=False):
        place = [str(part) for part in problem["loc"]]
        named = _join(table, ".".join(place))
        sentence = f"{named}: {problem['msg']} (got {_show(problem['input'])})"
        # What is wrong with a table as a whole belongs to no key of that name.
        for key in place[:1] if place[:1] and place[0] in values else values:
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
        value = _sample(knob) if knob.default is None else _toml(knob.default)
        lines += [f"# {knob.description}", f"# {key} = {value}", ""]
    return "\n".join(lines)


def _sample(knob: Knob) -> str:
    """Return a value of a key that has no default."""
    if knob.key == "workspace":
        return '"/path/to/a/folder"'
    name, _, last = knob.key.rpartition(".")
    return next(
        _toml(value)
        for value in ("...", 1)
        if not _check_table(name, {last: value}, strict=True)[1]
    )


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, Mapping):
        return "{}"  # A table of tables stands under a heading of its own.
    return f'"{value}"' if isinstance(value, str) else repr(value)
