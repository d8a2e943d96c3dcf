"""Every knob: its name, its default, what it does, and who may turn it.

Sources are given from weakest to strongest: the project's file, the user's file, the environment, flags. The project's file
is the agent's to edit, so knobs that are marked as the user's are not taken from it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError
from pydantic.fields import FieldInfo

from guard.core.descriptions import described
from guard.core.fields import Frozen
from guard.core.registry import KEEP_FINISHED
from guard.core.rescuing import COMMIT_MAX_FILE_BYTES, SNAPSHOT_MAX_FILE_BYTES

_USERS = {"user_only": True}

Agent = Literal["claude", "codex", "gemini", "qwen", "opencode", "copilot", "command"]


class _Section(Frozen):
    """A table of the configuration."""


class CompletionCheck(_Section):
    """How `guard check` finds out what became of an iteration."""

    max_probes: Annotated[int, Field(ge=1, le=1000)] = 5
    """How many rounds a check looks and asks before it gives up."""
    probe_interval_seconds: Annotated[float, Field(ge=0, le=86400)] = 30
    """How long to wait between two rounds."""
    probe_timeout_seconds: Annotated[float, Field(gt=0, le=86400)] = 60
    """How long one probe may take."""
    final_rescue_attempt: bool = True
    """Whether work that is still uncommitted after the last round is rescued."""
    progress_window_seconds: Annotated[float, Field(ge=0, le=86400)] = 120
    """How long after its last CPU time, I/O or output a process of the iteration still counts as at work."""
    max_wait_seconds: Annotated[float, Field(ge=0, le=604800)] = 7200
    """How long a check waits for helpers that are alive, before it says so and ends."""
    git_timeout_seconds: Annotated[float, Field(gt=0, le=3600)] = 10
    """How long one call of git may take."""
    agent: Agent | Literal[""] = ""
    """Which agent is asked: claude, codex, gemini, qwen, opencode, copilot or command; `guard run` sees it by the command."""
    probe_model: Annotated[str, Field(max_length=128)] = ""
    """The model that answers a probe, where the agent's CLI takes one; for Claude Code sonnet if nothing is said."""
    probe_command: Annotated[str, Field(max_length=4096, json_schema_extra=_USERS)] = ""
    """The program that answers for the agent `command`: the question on its stdin, one JSON document on its stdout."""
    task_file: Annotated[str, Field(max_length=1024)] = "specs/{spec}/tasks.md"
    """Where the task file of `--spec NAME` lies; `tasks.md` in the work tree's root is looked for next."""


class Run(_Section):
    """How long `guard run` and `guard loop` let an agent run. A limit of 0 never ends it."""

    max_idle_seconds: Annotated[float, Field(ge=0, le=604800, json_schema_extra=_USERS)] = 21600
    """How long the agent and all that it started may use no CPU time, read, write and print nothing, before it is ended; \
not while it can read a terminal."""
    max_seconds: Annotated[float, Field(ge=0, le=2592000, json_schema_extra=_USERS)] = 0
    """How long the agent may run in one iteration before it is ended, however much it does."""


class Rescue(_Section):
    """How uncommitted work becomes commits."""

    command: Annotated[str, Field(max_length=4096, json_schema_extra=_USERS)] = ""
    """A program that commits what was left, run instead of guard's own rescue with the name of the spec as its argument."""
    time_limit_seconds: Annotated[float, Field(gt=0, le=86400)] = 300
    """How long a rescue or a snapshot may take."""
    planner: Annotated[Literal["rules", "agent"], Field(json_schema_extra=_USERS)] = "rules"
    """Who groups what was left into commits: fixed rules, or the agent's own CLI, whose plan is checked."""
    rescue_hooks: Annotated[Literal["skip", "run"], Field(json_schema_extra=_USERS)] = "skip"
    """Whether the repository's hooks pre-commit and commit-msg have a say: they are the agent's to edit."""
    snapshot_max_file_bytes: Annotated[int, Field(ge=0, le=2**40, json_schema_extra=_USERS)] = (
        SNAPSHOT_MAX_FILE_BYTES
    )
    """Up to which size a file is kept in a snapshot."""
    commit_max_file_bytes: Annotated[int, Field(ge=0, le=2**40, json_schema_extra=_USERS)] = (
        COMMIT_MAX_FILE_BYTES
    )
    """Up to which size a file is committed by a rescue; larger ones are in the snapshot only."""


class Breaker(_Section):
    """When a run that goes nowhere is stopped, and when it may try again. A limit of 0 never stops it."""

    stall_limit: Annotated[int, Field(ge=0, le=1000, json_schema_extra=_USERS)] = 3
    """How many iterations in a row may stall before the breaker opens."""
    same_error_limit: Annotated[int, Field(ge=0, le=1000, json_schema_extra=_USERS)] = 5
    """How often the same error may come, without work between, before the breaker opens."""
    denied_limit: Annotated[int, Field(ge=0, le=1000, json_schema_extra=_USERS)] = 2
    """How often iterations may end at denied permissions, without work between, before the breaker opens."""
    rescue_limit: Annotated[int, Field(ge=0, le=1000, json_schema_extra=_USERS)] = 5
    """How many iterations in a row may have to be rescued before the breaker opens."""
    cooldown_seconds: Annotated[float, Field(ge=0, le=604800, json_schema_extra=_USERS)] = 1800
    """How long the breaker stays open before it allows one trial; twice as long after each trial that fails."""
    cooldown_max_seconds: Annotated[float, Field(ge=0, le=604800, json_schema_extra=_USERS)] = 14400
    """The longest that a cooldown becomes."""
    trial_lease_seconds: Annotated[float, Field(gt=0, le=604800, json_schema_extra=_USERS)] = 14400
    """How long a trial is its holder's alone; after that another process may claim one."""


class Registry(_Section):
    """The registries of agents."""

    keep_finished: Annotated[int, Field(ge=0, le=1_000_000)] = KEEP_FINISHED
    """How many finished agents the global registry lists (the newest); the task registries list all."""


class StoreSettings(_Section):
    """The log and its lock."""

    lock_timeout_seconds: Annotated[float, Field(ge=0, le=86400, json_schema_extra=_USERS)] = 10
    """How long to wait for another guard that holds the workspace, before giving up with exit code 6."""
    segment_max_bytes: Annotated[int, Field(ge=4096, le=2**40, json_schema_extra=_USERS)] = (
        16 * 1024 * 1024
    )
    """From which size on the log begins a new segment."""


class Settings(_Section):
    """All knobs."""

    workspace: Annotated[str | None, Field(min_length=1, json_schema_extra=_USERS)] = None
    """The folder for guard's state; by default one per repository below $XDG_STATE_HOME/guard."""
    completion_check: CompletionCheck = CompletionCheck()
    run: Run = Run()
    rescue: Rescue = Rescue()
    breaker: Breaker = Breaker()
    registry: Registry = Registry()
    store: StoreSettings = StoreSettings()


@dataclass(frozen=True)
class Knob:
    """One key with all that can be said about it."""

    key: str
    default: Any
    user_only: bool
    table: type["_Section"]

    @property
    def description(self) -> str:
        """What it does."""
        return described(self.table).get(self.key.rpartition(".")[2], "")

    @property
    def section(self) -> str:
        """What its table is about; nothing for a key that stands in none."""
        return (self.table.__doc__ or "").strip() if "." in self.key else ""

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return "GUARD_" + self.key.replace(".", "__").upper()


@dataclass(frozen=True)
class Source:
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
        if isinstance(section, type) and issubclass(section, _Section):
            for key, inner in section.model_fields.items():
                yield _knob(f"{name}.{key}", inner, section)
        else:
            yield _knob(name, info, Settings)


def _knob(key: str, info: FieldInfo, table: type[_Section]) -> Knob:
    extra = info.json_schema_extra
    return Knob(key, info.default, isinstance(extra, dict) and bool(extra.get("user_only")), table)


def resolve(sources: Sequence[Source]) -> Resolved:
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
        checked = _validated(values, source)
        for key in values:
            merged[key] = _value_at(checked, key)
            origins[key] = source.origin
            if not source.trusted:
                from_project[key] = merged[key]
    settings = Settings.model_validate(nested(merged))
    return Resolved(settings, origins, tuple(warnings), from_project)


def _leaves(source: Source, known: Mapping[str, Knob]) -> Iterator[tuple[str, Any]]:
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


def _validated(values: Mapping[str, Any], source: Source) -> Settings:
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
