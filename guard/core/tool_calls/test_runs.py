"""Tell which tool calls ran tests, and how they ended.

A call counts only if its own exit code, or the totals that a test runner prints, tell the result. What only looks like a run
does not count: a command that is echoed, listed or asked for help, one whose failure is swallowed, a type check, a linter.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from guard.core.tool_calls.read import ToolCall
from guard.core.tool_calls.shell import SimpleCommand, split_commands


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_RUNNERS = _words(
    """
    pytest py.test jest vitest mocha ava jasmine karma tox nox rspec phpunit pest ctest gotestsum ginkgo nosetests nose2 behave
    stestr trial bats busted cargo-nextest
    """
)
_WITH_VERB: dict[str, re.Pattern[str]] = {
    name: re.compile(verbs)
    for names, verbs in (
        (
            "go deno bun dotnet swift mix flutter dart lein stack cabal bazel meson zig sbt playwright",
            r"test",
        ),
        ("cargo", r"t|test|nextest"),
        ("cypress", r"run"),
        ("mvn mvnw gradle gradlew", r"test|verify|install|check|build|.*[Tt]est"),
        (
            "make gmake just task ninja rake rails invoke",
            r"(?:.*[-_:])?(?:tests?|check|spec)(?:[-_:].*)?",
        ),
        ("npm pnpm yarn bun", r"t|tst|(?:.*[-_:])?(?:tests?|spec|jest|vitest|mocha)(?:[-_:].*)?"),
        ("coverage", r"run"),
    )
    for name in names.split()
}
_MODULES = _words("pytest unittest nose2 tox nox behave doctest coverage")
_PREFIXES = _words(
    """
    env time nice timeout gtimeout sudo nohup stdbuf xvfb-run command exec uv poetry pipenv pdm hatch rye bundle npx pnpm yarn
    bunx conda mamba cross-env dotenv docker podman docker-compose guard then do else if while { !
    """
)
_PYTHON = re.compile(r"(?:python|pypy)[\d.]*")
_SCRIPT = re.compile(r"(?:run[-_]?)?(?:all[-_]?)?tests?(?:[-_.]\w+)*|test[-_]\w+(?:\.\w+)?")
_ASSIGNMENT = re.compile(r"\w+=[^$`]*")
_NOT_RUN = re.compile(
    r"--collect-only|--co|--help|-h|--version|-V|--list|--list-?[tT]ests|--no-run|--dry-run|--just-print|--fixtures|--markers"
    r"|--setup-plan|--setup-only|--show-?[cC]onfig|-DskipTests.*|-Dmaven\.test\.skip.*|--skip-tests|list|-N"
)
_FAKED = re.compile(r"\b[\w.-]+\s*\(\)\s*\{|\balias \w|\bPATH=|\bfunction \w")
_POSERS = _words(
    """
    tsc vue-tsc eslint tslint biome prettier stylelint ruff black isort flake8 pylint mypy pyright pyre clippy golangci-lint
    echo printf true : exit cat
    """
)
_SCRIPT_LINE = re.compile(r"^> (?!\S+@\S+ )(.+)$", re.MULTILINE)
_PASSED = re.compile(
    r"(?<![\w.])(\d{1,6}) (?:tests? |specs? )?(?:passed|passing)\b|^# pass (\d+)|^ok\s+\S+\s+[\d.(]|Passed: +(\d+)"
    r"|^OK(?: \((\d+) tests?)?|(?<![\w.])(\d{1,6}) examples?, 0 failures|Tests run: (\d+), Failures: 0, Errors: 0",
    re.MULTILINE,
)
_FAILED = re.compile(
    r"(?<![\w.])([1-9]\d{0,5}) (?:tests? |specs? )?(?:failed|failing|failures?|errors?)\b|^# fail [1-9]|^FAILED\b|^FAIL\b"
    r"|--- FAIL|Failed: +[1-9]|test result: FAILED|(?:Failures|Errors): [1-9]",
    re.MULTILINE,
)
_NONE = re.compile(
    r"no tests? (?:ran|found|specified|files?\b)|collected 0 items|\bRan 0 tests|No tests found|(?<!\d)0 passing|# tests 0\b"
    r"|running 0 tests(?![\s\S]*running [1-9])|no test specified",
    re.IGNORECASE,
)
_EDITING = re.compile(
    r"\bsed\b[^|;&]*\s-i|\bperl\b[^|;&]*\s-\w*i"
    r"|\bgit (?:apply|checkout|restore|reset|revert|merge|pull|rebase|cherry-pick|am|stash)\b"
    r"|\bpatch\s+-|\b(?:black|isort)\b|\bruff format\b|--fix\b|--write\b"
    r"|(?:>|\btee\b(?: -a)?)\s*[\w./-]+\.(?:py|js|jsx|ts|tsx|mjs|go|rs|java|kt|rb|php|c|h|cpp|cs|swift)\b"
)
_DOCUMENTS = (".md", ".mdx", ".rst", ".txt", ".adoc")


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
    at = next((at for at, command in enumerate(commands) if _is_test(command)), None)
    if at is None or _FAKED.search(text) or _is_swallowed(commands, at) or _poses(call.output):
        return None
    totals = [next(filter(None, found), "") for found in _PASSED.findall(call.output)]
    passed, failed = sum(map(int, filter(None, totals))), _FAILED.search(call.output) is not None
    if _NONE.search(call.output) and not passed and not failed:
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
    if call.edits:
        return not call.failed and not call.path.casefold().endswith(_DOCUMENTS)
    return _EDITING.search(call.command) is not None


def _edits_afterwards(call: ToolCall) -> bool:
    # In one command line, an edit before the run is tested by it.
    edit = list(_EDITING.finditer(call.command))
    commands = [command for command in split_commands(call.command) if _is_test(command)]
    return bool(edit and commands) and edit[-1].start() > call.command.rfind(commands[-1].words[0])


def _is_test(command: SimpleCommand) -> bool:
    words = list(command.words)
    if any(_NOT_RUN.fullmatch(word) for word in words[1:]) or (
        words[0] == "make" and "-n" in words
    ):
        return False
    while words and _ASSIGNMENT.fullmatch(words[0]):
        words.pop(0)
    if words[:1] == ["!"]:
        return False
    if _runs_tests(words):
        return True
    if not words or words[0] not in _PREFIXES:
        return False
    return any(_runs_tests(words[at:]) for at in range(1, min(len(words), 10)))


def _runs_tests(words: list[str]) -> bool:
    if not words:
        return False
    name, rest = words[0].rpartition("/")[2], words[1:]
    if name in _RUNNERS or ("/" in words[0] and _SCRIPT.fullmatch(name)):
        return True
    if _PYTHON.fullmatch(name):
        return _is_python_test(rest)
    if name == "node":
        return "--test" in rest
    verbs = _WITH_VERB.get(name)
    given = [
        word for word in rest if not word.startswith("-") and word not in ("run", "run-script")
    ]
    if name in ("cypress", "coverage"):
        given = rest
    return verbs is not None and any(verbs.fullmatch(word) for word in given[:4])


def _is_python_test(rest: list[str]) -> bool:
    if "-m" in rest:
        module = rest[rest.index("-m") + 1 :]
        return bool(module) and module[0].partition(".")[0] in _MODULES
    scripts = [word for word in rest if not word.startswith("-")]
    if scripts[:1] and scripts[0].rpartition("/")[2] in ("manage.py", "setup.py"):
        return "test" in scripts
    return bool(scripts) and _SCRIPT.fullmatch(scripts[0].rpartition("/")[2]) is not None


def _is_swallowed(commands: list[SimpleCommand], at: int) -> bool:
    command = commands[at]
    follows = commands[at + 1].words[:1] if at + 1 < len(commands) else ()
    # `pytest || exit 1` passes the failure on.
    if command.after == "||" and follows not in (("exit",), ("return",), ("false",)):
        return True
    return command.after == "&" or command.words[0] == "!" or command.before == "||"


def _tells_exit(commands: list[SimpleCommand], at: int, text: str) -> bool:
    """Tell whether the exit code of the whole is that of the tests, or at least 0 only if they passed."""
    if commands[at].after == "|" and "pipefail" not in text:
        return False
    behind = commands[at:-1]
    return all(command.after in ("&&", "|", "||") for command in behind) or "set -e" in text


def _poses(output: str) -> bool:
    # A package manager prints the script that it runs.
    scripts = _SCRIPT_LINE.findall(output[:4000])
    commands = [command for script in scripts for command in split_commands(script)]
    return bool(commands) and all(
        command.words[0].rpartition("/")[2] in _POSERS
        or (command.words[0] == "cargo" and command.words[1:2] in (("check",), ("clippy",)))
        for command in commands
    )
