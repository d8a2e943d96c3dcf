"""`guard config`."""

import json
from typing import Any

import click

from guard.context.invocation import Invocation
from guard.context.output import prints_report
from guard.context.workspace import show_place
from guard.core.base.fields import Section
from guard.core.base.text import escape
from guard.core.config.resolve import Resolved, knobs, value_of
from guard.core.log.reports import ConfigReport, SettingLine

_ADDRESSES = ("workspace", "rescue.remote")
"""Settings that may hold an address with a password."""


@click.command("config")
@prints_report
def command(guard: Invocation, form: str) -> None:
    """List every setting with its value and where the value comes from.

    Sources, weakest first: pyproject.toml ([tool.guard]), guard.toml, the user's config.toml, GUARD_* variables,
    command-line options. What is wrong in the project's files is a warning, in the others an error (exit code 4).
    """
    resolved = guard.config
    flag = guard.workspace_option
    report = ConfigReport(settings=tuple(_lines(resolved, flag)), warnings=resolved.warnings)
    guard.output.document(report, form, _text)


def _lines(resolved: Resolved, workspace_flag: str | None) -> list[SettingLine]:
    given = {"workspace": workspace_flag} if workspace_flag else {}
    return [
        SettingLine(
            key=knob.key,
            value=_shown(knob.key, given.get(knob.key, _plain(value_of(resolved, knob)))),
            default=knob.default,
            origin="command line"
            if knob.key in given
            else resolved.origins.get(knob.key, "default"),
            variable=knob.variable,
            user_only=knob.user_only,
            description=knob.description,
        )
        for knob in knobs()
    ]


def _shown(key: str, value: Any) -> Any:
    """Return a value without the password that an address may have in it."""
    return show_place(value) if key in _ADDRESSES and isinstance(value, str) else value


def _plain(value: Any) -> Any:
    """Return a value with its tables as JSON has them."""
    if isinstance(value, Section):
        return value.model_dump(mode="json")
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    return {key: _plain(each) for key, each in value.items()} if isinstance(value, dict) else value


def _text(report: ConfigReport) -> str:
    rows = [
        (line.key, escape(json.dumps(line.value, ensure_ascii=False)), line.origin)
        for line in report.settings
    ]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    return "\n".join(
        f"{key:{widths[0]}}  {value:{widths[1]}}  {escape(origin)}" for key, value, origin in rows
    )
