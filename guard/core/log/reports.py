"""What the commands print that look at the state, the settings and the machine."""

from typing import Any, Literal

from pydantic import Field

from guard.core.base.fields import Count, Frozen, Report
from guard.core.base.text import escape, utf8_text

Health = Literal["ok", "warning", "problem"]


class WhereReport(Report):
    """Where the state of a repository lies."""

    schema_: Literal["guard/where/1"] = Field("guard/where/1", alias="schema")
    workspace: str
    origin: str
    """What decided it: a flag, a variable, a config file, the index, or the default."""
    exists: bool
    worktree: str | None
    worktree_key: str | None
    git_dir: str | None
    git_dir_exists: bool | None
    common_dir: str | None


class LogReport(Report):
    """Events, oldest first, as they stand in the log."""

    schema_: Literal["guard/log/1"] = Field("guard/log/1", alias="schema")
    events: tuple[dict[str, Any], ...]


class Finding(Frozen):
    """One thing that is not as it should be, and where."""

    file: str
    place: str
    problem: str
    hint: str | None


class VerifyReport(Report):
    """What a check of the log and all views found."""

    schema_: Literal["guard/verify/1"] = Field("guard/verify/1", alias="schema")
    ok: bool
    segments: Count
    records: Count
    head: str
    """The hash of the last sound record."""
    views: Count
    behind: tuple[str, ...]
    """Views that are sound and lag behind the log: readers fold the rest, the next change of each writes it."""
    torn_bytes: Count
    findings: tuple[Finding, ...]


class RebuildReport(Report):
    """Which views were made again from the log."""

    schema_: Literal["guard/rebuild/1"] = Field("guard/rebuild/1", alias="schema")
    records: Count
    unchanged: tuple[str, ...]
    written: tuple[str, ...]
    set_aside: tuple[str, ...]
    dropped_records: Count = 0
    """How many lines of the log, from the damage on, a salvage has set aside: guard goes on without them."""


class ValidateReport(Report):
    """What is wrong with the files that were checked."""

    schema_: Literal["guard/validate/1"] = Field("guard/validate/1", alias="schema")
    ok: bool
    checked: tuple[str, ...]
    findings: tuple[Finding, ...]


class SchemaList(Report):
    """The names of all schemas."""

    schema_: Literal["guard/schemas/1"] = Field("guard/schemas/1", alias="schema")
    schemas: tuple[str, ...]


_Table = dict[str, Any]
SettingValue = str | int | float | bool | tuple[str, ...] | tuple[_Table, ...] | _Table | None


class SettingLine(Frozen):
    """One knob as it stands."""

    key: str
    value: SettingValue
    default: SettingValue
    origin: str
    variable: str
    user_only: bool
    description: str


class ConfigReport(Report):
    """Every setting in force."""

    schema_: Literal["guard/config/1"] = Field("guard/config/1", alias="schema")
    settings: tuple[SettingLine, ...]
    warnings: tuple[str, ...]


class DoctorCheck(Frozen):
    """One look at the machine, with the next command to type where something is to be done."""

    name: str
    state: Health
    found: str
    hint: str | None

    @classmethod
    def of(cls, name: str, state: Health, found: str, hint: str | None = None) -> "DoctorCheck":
        """Make a check whose texts are safe for a terminal and for JSON."""
        found, hint = escape(utf8_text(found)), escape(utf8_text(hint)) if hint else None
        return cls(name=name, state=state, found=found, hint=hint)


class DoctorReport(Report):
    """The health of the machine and the workspace."""

    schema_: Literal["guard/doctor/1"] = Field("guard/doctor/1", alias="schema")
    ok: bool
    checks: tuple[DoctorCheck, ...]
