"""The real CLIs with guard in their sessions, as `guard install` sets it up for a project."""

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.support import Result
from tests.support.agent_clis import AgentCli

_TRUSTED = '[projects."{folder}"]\ntrust_level = "trusted"\n'
SETTINGS = {
    "claude": ".claude/settings.json",
    "codex": ".codex/hooks.json",
    "gemini": ".gemini/settings.json",
    "qwen": ".qwen/settings.json",
}
"""Where each CLI looks for a project's hooks."""


def with_guard(agent: AgentCli) -> AgentCli:
    """The CLI finds the program `guard` of this installation."""
    path = os.pathsep.join([agent.environ["PATH"], os.path.dirname(sys.executable)])
    return replace(agent, environ={**agent.environ, "PATH": path})


def installed(agent: AgentCli, *, trusted: bool = True) -> AgentCli:
    """The CLI in a project with guard's hooks; Codex runs those that a person has trusted, and only in a trusted folder."""
    agent = with_guard(agent)
    done = guard(agent, "install", agent.name, "--project")
    assert done.code == 0, done
    assert Path(SETTINGS[agent.name]).exists(), done
    if agent.name != "codex":
        return agent
    with Path(agent.environ["HOME"], ".codex", "config.toml").open("a") as config:
        config.write(_TRUSTED.format(folder=Path.cwd()))
    flags = ("--dangerously-bypass-hook-trust",) if trusted else ()
    return replace(agent, command=(*agent.command, *flags))


def guard(agent: AgentCli, *words: str) -> Result:
    """Guard as the CLI's hooks call it: with the same home and nothing else of the test's environment."""
    return agent.call("guard", *words)


def checked(agent: AgentCli) -> Any:
    """What a check of the session's work says, without a question to the session."""
    return guard(agent, "check", "--no-wait", "--no-probe", "--format", "json").json


def decisions(agent: AgentCli) -> list[tuple[str, str]]:
    """Each stop of the session: what guard decided, and why."""
    return [(one["decision"], one["reason"]) for one in events(agent, "stop_decided")]


def events(agent: AgentCli, *types: str) -> list[Any]:
    """The events of these types in guard's log."""
    wanted = [word for one in types for word in ("--type", one)]
    found: list[Any] = guard(agent, "log", "--format", "json", *wanted).json["events"]
    return found
