"""Find changes to the files that steer a project's tests, and tell those after which a test that fails is not noticed."""

import json
import re
from collections.abc import Iterable
from posixpath import basename
from typing import NamedTuple

from guard.core.base.first_use import late_pattern
from guard.core.prove.file_roles import PARTLY_STEERING, FileRoles
from guard.core.prove.project_tables import steering_part
from guard.core.tool_calls.read import ToolCall
from guard.core.tool_calls.shell import split_commands
from guard.core.tool_calls.test_commands import runs_tests
from guard.core.tool_calls.test_runs import find_run

_ROLES = FileRoles(command="make just task rake")
_COMMAND_FILES = ("make", ".mk", "just", "rakefile", "taskfile", ".yml", ".yaml", "jenkinsfile")
"""Files of commands: only what is said of tests in them steers tests."""
_LEAVES_OUT = late_pattern(
    r"--ignore(?:-glob)?\b(?!-)|--deselect\b|(?<![\w-])(?<!make )-k(?=[\"',\s=]*\w)|(?<![\w-])-m[\"',\s=]+not\b"
    r"|--collect-only\b|--co\b(?!-)|--passWithNoTests|passWithNoTests\W+true|[tT]estPathIgnorePatterns|collect_ignore"
    r"|pytest_ignore_collect|add_marker\(.*(?:skip|xfail)|items\.clear\(|items\[:\]\s*=|exitstatus\s*=(?!=)|_exit\(0\)"
    r"|outcome\s*=\s*[\"']passed|success_codes|ignore_(?:outcome|errors)\s*=\s*true|suppress-no-test-exit-code"
    r"|(?:continue-on-error|allow_failure|ignore_error): *true|\bif: *(?:false|\$\{\{ *false)"
)
_PREFIX = late_pattern(
    r"^(?:\s|@|\+|- (?=\S)|(?:- )?(?:run|cmd|script):\s*(?:[|>]-?)?|commands\s*=|[\"'](?=\S))+"
)
_IDLE = late_pattern(r"(?:true|:|exit 0|echo\b.*|printf\b.*)?")


class RunnerSettings(NamedTuple):
    """The files that steer the tests, by what was done to them."""

    changed: tuple[str, ...] = ()
    disarmed: tuple[str, ...] = ()
    """Those in which tests are left out now, or their failures are passed over."""


def find_steering(changes: Iterable[tuple[str, str | None, str | None]]) -> RunnerSettings:
    """Sort the changed files that steer tests; each change is a path with its text before and after."""
    changed, disarmed = [], []
    for path, before, after in changes:
        pair = _steering_texts(path, before, after)
        if pair is None or pair[0] == pair[1]:
            continue
        if _is_disarmed(path, *pair):
            disarmed.append(path)
        elif before is not None:
            changed.append(path)
    return RunnerSettings(tuple(sorted(changed)), tuple(sorted(disarmed)))


def _steering_texts(path: str, before: str | None, after: str | None) -> tuple[str, str] | None:
    name = basename(path)
    if name in PARTLY_STEERING:
        return _text_of_part(path, before), _text_of_part(path, after)
    if _ROLES.role(path) != "steering":
        return None
    if any(word in name.casefold() for word in _COMMAND_FILES):
        return _about_tests(before or ""), _about_tests(after or "")
    return _filled(before or ""), _filled(after or "")


def _text_of_part(path: str, text: str | None) -> str:
    part = steering_part(path, None if text is None else text.encode())
    if isinstance(part, bytes):
        return text or ""
    # The scripts of a package are commands, each in a line of its own.
    scripts = part.pop("scripts", {}) if basename(path) == "package.json" and part else {}
    lines = [str(command) for command in scripts.values()]
    return "\n".join([*([json.dumps(part, default=str)] if part else []), *lines])


def _filled(text: str) -> str:
    lines = (line.rstrip() for line in text.splitlines())
    return "\n".join(line for line in lines if line and not line.lstrip().startswith(("#", ";")))


def _about_tests(text: str) -> str:
    return "\n".join(
        line
        for line in _filled(text).splitlines()
        if _runs_tests(line) or _is_idle(line) or _LEAVES_OUT.search(line)
    )


def _is_disarmed(path: str, before: str, after: str) -> bool:
    if len(_LEAVES_OUT.findall(after)) > len(_LEAVES_OUT.findall(before)):
        return True
    lists = path.endswith((".yml", ".yaml"))
    old, new = before.splitlines(), after.splitlines()
    if _count(new, lists, armed=False) > _count(old, lists, armed=False):
        return True
    is_idle = sum(map(_is_idle, new)) > sum(map(_is_idle, old))
    return is_idle and _count(new, lists, armed=True) < max(1, _count(old, lists, armed=True))


def _count(lines: list[str], lists: bool, *, armed: bool) -> int:
    return sum(_runs_tests(line) and _is_armed(line, lists) == armed for line in lines)


def _command(line: str) -> str:
    text = _PREFIX.sub("", line)
    return text.lstrip("-@+ ") if not text.startswith("--") else text


def _is_idle(line: str) -> bool:
    text = _command(line).rstrip("\"' ")
    return bool(text) and _IDLE.fullmatch(text) is not None


def _runs_tests(line: str) -> bool:
    return any(runs_tests(command.words) for command in split_commands(_command(line)))


def _is_armed(line: str, lists: bool) -> bool:
    # A recipe of make, or a command of tox, whose line begins with a hyphen may fail.
    if not lists and re.match(r"\s*(?:commands\s*=\s*)?[@+]*-", line):
        return False
    call = ToolCall("", "Bash", {"command": _command(line)}, "", 1, failed=True)
    seen = find_run(call)
    return seen is not None and seen.passed is False
