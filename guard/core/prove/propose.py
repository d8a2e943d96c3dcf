"""Propose the command that proves work, from the files of a project, and say why."""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from posixpath import basename
from typing import Any

from guard.core.base.fields import Frozen, Line

PROJECT_FILES = (
    *("pyproject.toml", "setup.cfg", "tox.ini", "pytest.ini", "noxfile.py", "requirements.txt"),
    *("requirements-dev.txt", "requirements-test.txt", "dev-requirements.txt"),
    *("package.json", "go.mod", "Cargo.toml", "Makefile", "makefile", "GNUmakefile"),
)
"""The files whose text a proposal looks at, in the root of the work tree."""
ENVIRONMENTS = (".venv", "venv")
_MAKE_TEST = re.compile(r"^(test|check)[ \t]*:(?!=)", re.MULTILINE)
_PYTEST = re.compile(r"(?<![\w-])pytest(?![\w-])")
_LOCKS = (
    ("pnpm-lock.yaml", "pnpm", "pnpm install --frozen-lockfile"),
    ("yarn.lock", "yarn", "yarn install"),
    ("bun.lock", "bun run", "bun install --frozen-lockfile"),
    ("bun.lockb", "bun run", "bun install --frozen-lockfile"),
    ("package-lock.json", "npm", "npm ci"),
)


class CommandProposal(Frozen):
    """A command that could prove work in this project, with the other keys of `[prove]` that it needs."""

    command: str
    setup: str
    """The command that prepares a checkout; empty if none is needed."""
    share: tuple[str, ...]
    """Folders of the work tree that a checkout needs."""
    why: tuple[Line, ...]
    """What of the project speaks for it."""

    def settings(self) -> dict[str, Any]:
        given = {"command": self.command, "setup": self.setup, "share": self.share}
        return {name: value for name, value in given.items() if value}

    def toml(self) -> list[str]:
        # A JSON text or list of texts is a TOML value, too.
        return [
            "[prove]",
            *(f"{name} = {json.dumps(value)}" for name, value in self.settings().items()),
        ]


@dataclass(frozen=True)
class ProjectFacts:
    """What a project has."""

    paths: frozenset[str]
    """Its files, also those that are not committed yet, but not those that git ignores."""
    texts: Mapping[str, str]
    """The text of `PROJECT_FILES`."""
    present: frozenset[str] = frozenset()
    """What is there of programs in virtual environments, and `node_modules`."""

    def has(self, *patterns: str) -> bool:
        return any(fnmatchcase(basename(path), p) for path in self.paths for p in patterns)

    def table(self, name: str, *keys: str) -> Any:
        """Return a value of a TOML file; None if it has none, or cannot be read."""
        try:
            found: Any = tomllib.loads(self.texts.get(name, ""))
        except (ValueError, RecursionError):
            return None
        for key in keys:
            found = found.get(key) if isinstance(found, dict) else None
        return found


def propose_command(facts: ProjectFacts) -> CommandProposal | None:
    """Return the command that runs the project's tests; None if nothing shows what does.

    If the project has tests in several languages and a Makefile runs its tests, that one is proposed.
    """
    found = [*_python(facts), *_javascript(facts), *_others(facts)]
    made = _make(facts)
    if made is not None and len(found) != 1:
        return made
    return found[0] if found else None


def _proposal(
    command: str, *why: str, setup: str = "", share: tuple[str, ...] = ()
) -> CommandProposal:
    return CommandProposal(command=command, setup=setup, share=share, why=why)


def _python(facts: ProjectFacts) -> Iterator[CommandProposal]:
    tests = facts.has("test_*.py", "*_test.py")
    reason = _why_pytest(facts) if tests else None
    tool = _python_tool(facts)
    if reason is not None:
        yield _call_pytest(facts, reason, tool)
    elif tool is not None:
        yield tool
    elif tests:
        yield _call_unittest(facts)


def _why_pytest(facts: ProjectFacts) -> str | None:
    for name, table in (("setup.cfg", "[tool:pytest]"), ("tox.ini", "[pytest]")):
        if table in facts.texts.get(name, ""):
            return f"{name} has {table}"
    if facts.table("pyproject.toml", "tool", "pytest") is not None:
        return "pyproject.toml has options of pytest"
    for name in ("pytest.ini", "conftest.py"):
        if facts.has(name):
            return f"the project has {name}"
    named = (name for name in PROJECT_FILES if name.endswith((".toml", ".cfg", ".txt")))
    return next(
        (f"{name} names pytest" for name in named if _PYTEST.search(facts.texts.get(name, ""))),
        None,
    )


def _python_tool(facts: ProjectFacts) -> CommandProposal | None:
    if "tox.ini" in facts.texts and "[testenv" in facts.texts["tox.ini"]:
        return _proposal("tox", "tox.ini names test environments")
    if facts.table("pyproject.toml", "tool", "tox") is not None:
        return _proposal("tox", "pyproject.toml has settings of tox")
    return _proposal("nox", "the project has noxfile.py") if "noxfile.py" in facts.texts else None


def _call_pytest(facts: ProjectFacts, reason: str, tool: CommandProposal | None) -> CommandProposal:
    manager = _package_manager(facts, "pytest -q", reason)
    if manager is not None:
        return manager
    for folder in ENVIRONMENTS:
        if f"{folder}/bin/pytest" in facts.present:
            command, said = f"{folder}/bin/python -m pytest -q", f"{folder} has pytest"
            return _proposal(command, reason, said, share=(folder,))
    if tool is not None:
        return tool.model_copy(update={"why": (reason, *tool.why)})
    return _proposal("pytest -q", reason, "the pytest that your shell finds is used")


def _call_unittest(facts: ProjectFacts) -> CommandProposal:
    folder = next((name for name in ("tests", "test") if _has_tests(facts, name)), None)
    where = f" discover -s {folder}" if folder else " discover"
    if folder and f"{folder}/__init__.py" in facts.paths:
        where += " -t ."
    reason = f"{folder or 'the project'} has test files, and nothing names pytest"
    words = f"-m unittest{where}"
    manager = _package_manager(facts, f"python {words}", reason)
    if manager is not None:
        return manager
    for name in ENVIRONMENTS:
        if f"{name}/bin/python" in facts.present:
            command, said = f"{name}/bin/python {words}", f"{name} is its environment"
            return _proposal(command, reason, said, share=(name,))
    return _proposal(f"python3 {words}", reason)


def _has_tests(facts: ProjectFacts, folder: str) -> bool:
    return any(fnmatchcase(path, f"{folder}/*test*.py") for path in facts.paths)


def _package_manager(facts: ProjectFacts, words: str, reason: str) -> CommandProposal | None:
    """Return the call through uv or poetry, if one of them keeps the project's environment."""
    extras = facts.table("pyproject.toml", "project", "optional-dependencies")
    needed = " --all-extras" if _PYTEST.search(json.dumps(extras, default=str)) else ""
    if "uv.lock" in facts.paths or facts.table("pyproject.toml", "tool", "uv") is not None:
        said = "uv keeps its environment"
        return _proposal(f"uv run {words}", reason, said, setup=f"uv sync{needed}")
    is_poetry = facts.table("pyproject.toml", "tool", "poetry") is not None
    if "poetry.lock" in facts.paths or is_poetry:
        said = "poetry keeps its environment"
        return _proposal(f"poetry run {words}", reason, said, setup=f"poetry install{needed}")
    return None


def install_command(facts: ProjectFacts) -> str:
    """Return the command that installs what a lock file of the project names; empty if it has none."""
    locks = [(name, install) for name, _, install in _LOCKS]
    locks += [("uv.lock", "uv sync"), ("poetry.lock", "poetry install")]
    return next((install for name, install in locks if name in facts.paths), "")


def _javascript(facts: ProjectFacts) -> Iterator[CommandProposal]:
    package = _package_json(facts)
    scripts = package.get("scripts") if package is not None else None
    script = scripts.get("test") if isinstance(scripts, dict) else None
    if isinstance(script, str) and script.strip():
        # What `npm init` writes runs no test, and a watcher never ends.
        if "no test specified" not in script and "--watch" not in script:
            yield _call_script(facts, package or {})
    elif facts.has("*.test.js", "*.test.mjs", "*.test.cjs"):
        yield _proposal("node --test", "the project has test files for node, and no test script")


def _package_json(facts: ProjectFacts) -> dict[str, Any] | None:
    try:
        found = json.loads(facts.texts.get("package.json", ""))
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _call_script(facts: ProjectFacts, package: dict[str, Any]) -> CommandProposal:
    locked = next((lock for lock in _LOCKS if lock[0] in facts.paths), None)
    program, install = (locked[1], locked[2]) if locked is not None else ("npm", "npm install")
    command, reason = f"{program} test", "package.json has a test script"
    if not any(package.get(name) for name in ("dependencies", "devDependencies")):
        return _proposal(command, reason)
    if "node_modules" in facts.present and not package.get("workspaces"):
        return _proposal(command, reason, "node_modules is there", share=("node_modules",))
    said = f"{locked[0]} names what it needs" if locked is not None else "it has dependencies"
    return _proposal(command, reason, said, setup=install)


def _others(facts: ProjectFacts) -> Iterator[CommandProposal]:
    if "go.mod" in facts.texts and facts.has("*_test.go"):
        yield _proposal("go test ./...", "the project has go.mod and test files for Go")
    if "Cargo.toml" in facts.texts:
        is_workspace = facts.table("Cargo.toml", "workspace") is not None
        command = "cargo test --workspace" if is_workspace else "cargo test"
        yield _proposal(command, "the project has Cargo.toml")


def _make(facts: ProjectFacts) -> CommandProposal | None:
    for name in ("GNUmakefile", "makefile", "Makefile"):
        targets = [found[1] for found in _MAKE_TEST.finditer(facts.texts.get(name, ""))]
        if targets:
            target = "test" if "test" in targets else targets[0]
            return _proposal(f"make {target}", f"{name} has the target {target}")
    return None
