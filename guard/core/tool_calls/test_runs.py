"""Tell which tool calls ran tests, and how they ended.

A call counts only if its own exit code, or the totals that a test runner prints, tell the result. What only looks like a run
does not count: a command that is echoed, listed or asked for help, one whose failure is swallowed, a type check, a linter.
"""

import re
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from guard.core.base.first_use import late_pattern
from guard.core.tool_calls.edits import edits_code_by, is_edit_of_code
from guard.core.tool_calls.read import ToolCall
from guard.core.tool_calls.shell import (
    SimpleCommand,
    base_name,
    split_commands,
    without_documents,
    word_set,
)
from guard.core.tool_calls.test_commands import runs_tests

_POSERS = word_set(
    """
    tsc vue-tsc eslint tslint biome prettier stylelint ruff black isort flake8 pylint mypy pyright pyre clippy golangci-lint
    echo printf true : exit cat
    """
)
_SCRIPT_LINE = late_pattern(r"^(?:> (?!\S+@\S+ )|\$ )(.+)$", re.MULTILINE)
_SOME_LINES = 40
_TOTALS = late_pattern(
    r"(?<![\w.])([1-9]\d{0,5}) (?:tests? |specs? )?(?:passed|passing)\b|^# pass ([1-9]\d*)|Passed: +([1-9]\d*)"
    r"|^ok\s+[\w./-]+\s+[\d.(](?!.*\[no tests to run\])|^OK(?: \(([1-9]\d*) tests?)?"
    r"|(?<![\w.])([1-9]\d{0,5}) examples?, 0 failures|Tests run: ([1-9]\d*), Failures: 0, Errors: 0",
    re.MULTILINE,
)
_FAILED = late_pattern(
    r"(?<![\w.])([1-9]\d{0,5}) (?:tests? |specs? )?(?:failed|failing|failures?|errors?)\b|^# fail [1-9]|^FAILED\b|^FAIL\b"
    r"|--- FAIL|Failed: +[1-9]|test result: FAILED|(?:Failures|Errors): [1-9]",
    re.MULTILINE,
)
_NONE = late_pattern(
    r"no tests? (?:ran|found|specified|executed|files?\b|to run|is available|were found|matched)|collected 0 items"
    r"|(?<!\d)0 passing|# tests 0\b|(?<!\d)0 examples, 0 failures|Tests run: 0,|running 0 tests|(?<![\d.])0 passed|^1\.\.0$"
    r"|(?<![\w.])\d{1,6} (?:tests? )?(?:skipped|pending|deselected)\b",
    re.IGNORECASE | re.MULTILINE,
)
"""What a runner prints that ran nothing; beside a test that passed or failed it tells nothing."""
_DEFINED = late_pattern(
    r"([\w.-]+)\s*\(\s*\)\s*\{|\bfunction\s+([\w.-]+)\s*\{|\balias\s+([\w.-]+)="
)
_STRANGE_PATH = late_pattern(
    r"\bPATH=[\"']?(?:/tmp/|/var/tmp/|\.(?=[:/])|\$PWD|\$\(pwd\))(?!/?(?:node_modules|\.?venv)/)(?!\S*/(?:node_modules|\.?venv)/)"
)
_RAN_NONE = "Ran 0 tests"
_STATUS = late_pattern(r"\$\?|\$\{?PIPESTATUS\b.*|[1-9]\d*")


class SeenRun(NamedTuple):
    """A test run that a tool call shows."""

    command: str
    passed: bool | None
    """None if neither the exit code nor the totals tell."""
    tests: int
    """How many tests passed, as the runner prints it; 0 if it does not."""


def find_run(call: ToolCall) -> SeenRun | None:
    """Return the test run of a call; None if it ran no tests, or does not count."""
    text = call.command
    commands = split_commands(text)
    tests = [at for at, command in enumerate(commands) if runs_tests(command.words)]
    at = next((at for at in tests if not _is_swallowed(commands, at)), None)
    if at is None or _is_faked(text, commands[at]) or _poses(call.output):
        return None
    if _RAN_NONE in call.output:
        return None
    totals = [
        next(filter(None, found.groups()), "")
        for found in _TOTALS.finditer(call.output)
        if found[0].strip() not in text  # Else the command line itself printed it.
    ]
    passed, failed = sum(map(int, filter(None, totals))), _FAILED.search(call.output) is not None
    if _NONE.search(call.output) and not totals and not failed:
        return None
    exit_code = call.exit_code if _tells_exit(commands, at, text) else None
    if exit_code is None and call.failed and not (passed or failed):
        return None  # It was denied, or could not be started.
    result = (
        False if failed else exit_code == 0 if exit_code is not None else True if totals else None
    )
    return SeenRun(text, result, passed)


def runs_that_count(calls: Iterable[ToolCall]) -> tuple[SeenRun, ...]:
    """Return the test runs of a session in their order; a green one that is older than the last edit is left out."""
    runs: list[SeenRun] = []
    for call in calls:
        seen = run_that_counts(call)
        if edits_code(call):
            runs = [run for run in runs if run.passed is False]
        if seen is not None:
            runs.append(seen)
    return tuple(runs)


def run_that_counts(call: ToolCall) -> SeenRun | None:
    """Return the test run of a call; None also for a green one after which the same command line edits code."""
    seen = find_run(call)
    return None if seen is not None and seen.passed and _edits_afterwards(call) else seen


def edits_code(call: ToolCall) -> bool:
    """Tell whether a call edits code, so that a test run before it is out of date."""
    text = call.command
    if text:
        return any(edits_code_by(command.words, text) for command in split_commands(text))
    return is_edit_of_code(call)


def _edits_afterwards(call: ToolCall) -> bool:
    # In one command line, an edit before the run is tested by it.
    behind = False
    for command in reversed(split_commands(call.command)):
        if runs_tests(command.words):
            return behind
        behind |= edits_code_by(command.words, call.command)
    return False


def _is_faked(text: str, command: SimpleCommand) -> bool:
    # The command line itself defines what it calls a test runner, or puts one of its own before others.
    shown = without_documents(text)
    defined = {name for found in _DEFINED.findall(shown) for name in found if name}
    return not defined.isdisjoint(map(base_name, command.words)) or bool(
        _STRANGE_PATH.search(shown)
    )


def _is_swallowed(commands: list[SimpleCommand], at: int) -> bool:
    command = commands[at]
    if command.after == "||" and not _passes_on(commands[at + 1 : at + 2]):
        return True
    if command.after == "&" or command.before == "||":
        return True
    return any(
        before.words[0] == "exit" or (before.words == ("false",) and before.after == "&&")
        for before in commands[:at]
        if before.before not in ("&&", "||")
    )


def _passes_on(following: list[SimpleCommand]) -> bool:
    # A bare `exit` or `return` passes the failure on, too.
    words = following[0].words if following else ()
    return words[:1] == ("false",) or (
        words[:1] in (("exit",), ("return",)) and all(map(_STATUS.fullmatch, words[1:]))
    )


def _tells_exit(commands: list[SimpleCommand], at: int, text: str) -> bool:
    """Tell whether the exit code of the whole is that of the tests, or at least 0 only if they passed."""
    if _ends_with_status(commands[at + 1 :]):
        return True
    if commands[at].after == "|" and "pipefail" not in text:
        return False
    behind = commands[at:]
    if any(before.after == "||" and not _passes_on([after]) for before, after in pairwise(behind)):
        return False
    return all(command.after in ("&&", "|", "||") for command in behind[:-1]) or "set -e" in text


def _ends_with_status(behind: list[SimpleCommand]) -> bool:
    # `pytest; exit $?`, `pytest | tee log; exit ${PIPESTATUS[0]}`
    words = behind[-1].words if behind else ()
    is_exit = words[:1] in (("exit",), ("return",)) and len(words) == 2 and words[1][0] == "$"
    return is_exit and all(command.before == "|" for command in behind[:-1])


def _poses(output: str) -> bool:
    # Package managers and make print what they run.
    printed = _SCRIPT_LINE.findall(output[:4000])
    if not printed and not _TOTALS.search(output):
        lines = output[:4000].splitlines()[:_SOME_LINES]
        printed = [line for line in lines if base_name(line.partition(" ")[0]) in _POSERS]
        printed += [line for line in lines if runs_tests(tuple(line.split()))]
    commands = [command for script in printed for command in split_commands(script)]
    return bool(commands) and all(
        base_name(command.words[0]) in _POSERS
        or (command.words[0] == "cargo" and command.words[1:2] in (("check",), ("clippy",)))
        for command in commands
    )
