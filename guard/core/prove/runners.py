"""Tell which test runner a shell command starts, and how to make it say what each test did."""

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import Literal

Runner = Literal["pytest", "unittest", "node", "jest", "vitest", "go", "cargo"]

_SEPARATORS = re.compile(r"&&|\|\||[;&|\n()]")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_PYTHON = re.compile(r"python[\d.]*|pypy[\d.]*")
_WRAPPERS = {
    **dict.fromkeys(
        ("env", "exec", "time", "command", "nice", "nohup", "npx", "bunx", "xvfb-run"), 0
    ),
    **dict.fromkeys(("uv", "poetry", "pipenv", "hatch", "pdm", "rye", "pixi", "conda"), 1),
    "timeout": 1,
}
"""Programs that start another one, and how many words of their own come before it."""
_BY_NAME: dict[str, Runner] = {
    "pytest": "pytest",
    "py.test": "pytest",
    "jest": "jest",
    "vitest": "vitest",
}
_ISOLATING: frozenset[Runner] = frozenset(("node", "jest", "vitest"))
_SHARES_PROCESS = re.compile(
    r"isolation[= ]none|no-isolate|isolate[= ]false|(?<![\w-])(?:mocha|tape|jasmine)(?![\w-])"
)
_PACKAGE_MANAGERS = ("npm", "yarn", "pnpm", "bun")
_MOST_SCRIPTS = 4
_UNITTEST = re.compile(r"(?<!\S)-m\s*unittest(?=\s|$|[;&|)])")
_GO_TEST = re.compile(r"(?<![\w./-])go\s+test(?=\s|$|[;&|)])")
_CARGO_TEST = re.compile(
    r"(?<![\w./-])cargo\s+(?:\+\S+\s+)?test(?=\s|$|[;&|)])(?![^;&|\n]*--no-fail-fast)"
)
_JS_RUNNER = re.compile(r"(?<![\w@.-])(?:[\w./-]*/)?(?:jest|vitest)(?:\s+run)?(?=\s|$|[;&|)])")
_PYTHON_PATH = re.compile(r"(?<![\w$-])PYTHONPATH=(?P<empty>(?=[\s;&|)]|$|\"\"|''))?")
_SCRIPT = re.compile(
    r"(?<![\w./-])(?:npm|yarn|pnpm|bun)\s+(?:-\S+\s+)*(?:run(?:-script)?\s+)?([\w:.-]+)([^;&|\n)]*)"
)


@dataclass(frozen=True)
class NamedRunner:
    """The runner of a command."""

    runner: Runner
    takes_options: bool = True
    """Whether options that are added to the command reach it."""
    is_isolated: bool = False
    """Whether Python ignores its environment there, as with `python -I`."""
    script: str | None = None
    """The script of package.json through which it is started."""


def name_runners(command: str, scripts: Mapping[str, str] | None = None) -> tuple[NamedRunner, ...]:
    """Name the runners that a command starts; `scripts` are those of the folder's package.json."""
    return tuple(dict.fromkeys(_name(command, scripts or {}, _MOST_SCRIPTS)))


def _name(command: str, scripts: Mapping[str, str], depth: int) -> Iterator[NamedRunner]:
    for words in _simple_commands(command):
        found = _name_simple(_unwrap(words), scripts, depth)
        if found is not None:
            yield found


def _simple_commands(command: str) -> Iterator[list[str]]:
    for part in _SEPARATORS.split(command):
        try:
            words = shlex.split(part, comments=True)
        except ValueError:
            continue
        if words:
            yield words


def _unwrap(words: list[str]) -> list[str]:
    """Drop variables and the programs that only start another one."""
    while words:
        name = words[0].rpartition("/")[2]
        if _ASSIGNMENT.fullmatch(words[0]):
            words = words[1:]
        elif name in _WRAPPERS and len(words) > 1 + _WRAPPERS[name]:
            if (
                name in ("uv", "poetry", "pipenv", "hatch", "pdm", "rye", "pixi", "conda")
                and words[1] != "run"
            ):
                return words
            words = words[1 + _WRAPPERS[name] :]
            while words and words[0].startswith("-") and words[0] != "-m":
                words = words[1:]
            if words[:1] == ["-m"]:
                words = ["python", *words]
        else:
            return words
    return words


def _name_simple(words: list[str], scripts: Mapping[str, str], depth: int) -> NamedRunner | None:
    if not words:
        return None
    name = words[0].rpartition("/")[2]
    if name in _BY_NAME:
        return NamedRunner(_BY_NAME[name])
    if _PYTHON.fullmatch(name) or name in ("coverage", "coverage3"):
        return _name_python(words)
    if name == "node":
        return _name_node(words)
    if name in ("go", "cargo"):
        return NamedRunner("go" if name == "go" else "cargo") if "test" in words[1:3] else None
    if name in _PACKAGE_MANAGERS:
        return _name_script(words, scripts, depth)
    return None


def _name_python(words: list[str]) -> NamedRunner | None:
    if "-m" not in words[:-1]:
        return None
    place = words.index("-m")
    module = words[place + 1]
    flags = [word for word in words[1:place] if word.startswith("-") and not word.startswith("--")]
    is_isolated = any(set(flag) & {"I", "E"} for flag in flags)
    if module == "pytest":
        return NamedRunner("pytest", is_isolated=is_isolated)
    if module in ("coverage",) and "run" in words:
        return _name_python(["coverage", *words[place + 2 :]])
    return NamedRunner("unittest", is_isolated=is_isolated) if module == "unittest" else None


def _name_node(words: list[str]) -> NamedRunner | None:
    if "--test" in words:
        return NamedRunner("node", takes_options="--watch" not in words)
    for word in words[1:]:
        name = word.rpartition("/")[2].removesuffix(".js").removesuffix(".mjs")
        if name in ("jest", "vitest"):
            return NamedRunner(_BY_NAME[name])
    return None


def _name_script(words: list[str], scripts: Mapping[str, str], depth: int) -> NamedRunner | None:
    names = [
        word
        for word in words[1:]
        if not word.startswith("-") and word not in ("run", "run-script", "exec")
    ]
    if not names:
        return None
    name = "test" if names[0] in ("t", "tst") else names[0]
    if name in scripts and depth > 0:
        found = next(_name(scripts[name], scripts, depth - 1), None)
        if found is None:
            return None
        # Options at the end of a script of several commands would go to the last of them.
        is_one = len(list(_simple_commands(scripts[name]))) == 1
        return NamedRunner(found.runner, is_one, script=name)
    return NamedRunner(_BY_NAME[name]) if name in ("jest", "vitest") else None


def package_scripts(data: bytes | None) -> dict[str, str]:
    """Return the scripts of a package.json."""
    with suppress(ValueError, RecursionError):
        found = json.loads(data or b"{}")
        scripts = found.get("scripts") if isinstance(found, dict) else None
        if isinstance(scripts, dict):
            return {str(name): text for name, text in scripts.items() if isinstance(text, str)}
    return {}


def keeps_files_apart(command: str, scripts: Mapping[str, str]) -> bool:
    """Tell whether all runners of a command give each file of JavaScript a process or a realm of its own."""
    named = {named.runner for named in name_runners(command, scripts)}
    words = "\n".join((command, *scripts.values()))
    return bool(named & _ISOLATING) and _SHARES_PROCESS.search(words) is None


def call_unittest_module(command: str, module: str) -> str:
    """Run this module in place of `unittest`."""
    return _UNITTEST.sub(f"-m {module}", command)


def lead_python_path(command: str, folder: str) -> str:
    """Put a folder first where the command sets PYTHONPATH: it would replace the one in the environment."""

    def first(found: re.Match[str]) -> str:
        # An empty part would stand for the current folder.
        return found[0] + shlex.quote(folder if found["empty"] is not None else f"{folder}:")

    return _PYTHON_PATH.sub(first, command)


def call_go_with_json(command: str) -> str:
    return _GO_TEST.sub("go test -json", command)


def call_cargo_for_all(command: str) -> str:
    """Make cargo run the tests of all targets, also when those of one fail."""
    return _CARGO_TEST.sub(lambda found: f"{found[0]} --no-fail-fast", command)


def call_javascript_with_json(command: str, named: NamedRunner, reports: str) -> str:
    """Make jest or vitest write its results as JSON into the folder `reports`, a file for each call."""
    numbers = count(1)

    def options() -> str:
        file = shlex.quote(f"{reports}/{named.runner}-{next(numbers)}.json")
        if named.runner == "jest":
            return f"--bail=0 --json --outputFile={file}"
        return f"--bail=0 --reporter=default --reporter=json --outputFile.json={file}"

    if named.script is None:
        return _JS_RUNNER.sub(lambda found: f"{found[0]} {options()}", command)

    def add(found: re.Match[str]) -> str:
        if found[1] not in (named.script, "t", "tst"):
            return found[0]
        needs_dashes = found[0].startswith("npm") and " -- " not in f"{found[0]} "
        words = found[0].rstrip()
        return f"{words}{' --' if needs_dashes else ''} {options()}{found[0].removeprefix(words)}"

    return _SCRIPT.sub(add, command)
