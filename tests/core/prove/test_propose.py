"""Which command is proposed for a project, by the files that it has."""

from typing import Any

import pytest

from guard.core.prove.propose import ProjectFacts, propose_command

TEST = {"tests/test_a.py": ""}
PYTEST = {**TEST, "pyproject.toml": "[tool.pytest.ini_options]\naddopts = '-ra'\n"}
SCRIPT = '{"scripts": {"test": "jest"}, "devDependencies": {"jest": "1"}}'
JEST = {"package.json": SCRIPT, "package-lock.json": ""}
MAKE = {"Makefile": ".PHONY: test\ntest: all\n\tpytest\n"}

PROJECTS: dict[str, tuple[dict[str, str], set[str], str | None]] = {
    "nothing": ({"README.md": ""}, set(), None),
    "options of pytest": (PYTEST, set(), "pytest -q"),
    "a conftest": ({**TEST, "tests/conftest.py": ""}, set(), "pytest -q"),
    "pytest among the requirements": (
        {**TEST, "requirements-dev.txt": "pytest>=8\n"},
        set(),
        "pytest -q",
    ),
    "a plugin of pytest alone names it not": (
        {**TEST, "requirements.txt": "pytest-sugar\n"},
        set(),
        "python3 -m unittest discover -s tests",
    ),
    "options of pytest and no tests": ({"pytest.ini": "[pytest]\n"}, set(), None),
    "an environment with pytest": (PYTEST, {".venv/bin/pytest"}, ".venv/bin/python -m pytest -q"),
    "an environment without pytest": (PYTEST, {".venv/bin/python"}, "pytest -q"),
    "uv": ({**PYTEST, "uv.lock": ""}, {".venv/bin/pytest"}, "uv run pytest -q"),
    "poetry": (
        {**TEST, "pyproject.toml": "[tool.poetry.group.dev.dependencies]\npytest = '*'\n"},
        set(),
        "poetry run pytest -q",
    ),
    "tox beside pytest": (
        {**TEST, "tox.ini": "[tox]\n[testenv]\n[pytest]\n"},
        set(),
        "tox",
    ),
    "tox beside pytest in an environment": (
        {**TEST, "tox.ini": "[testenv]\n[pytest]\n"},
        {"venv/bin/pytest"},
        "venv/bin/python -m pytest -q",
    ),
    "tox in pyproject": ({"pyproject.toml": "[tool.tox]\nlegacy_tox_ini = ''\n"}, set(), "tox"),
    "nox": ({"noxfile.py": ""}, set(), "nox"),
    "unittest": (TEST, set(), "python3 -m unittest discover -s tests"),
    "unittest in a package": (
        {**TEST, "tests/__init__.py": ""},
        set(),
        "python3 -m unittest discover -s tests -t .",
    ),
    "unittest in the root": ({"test_a.py": ""}, set(), "python3 -m unittest discover"),
    "unittest in an environment": (
        TEST,
        {".venv/bin/python"},
        ".venv/bin/python -m unittest discover -s tests",
    ),
    "npm": (JEST, set(), "npm test"),
    "pnpm": ({"package.json": SCRIPT, "pnpm-lock.yaml": ""}, set(), "pnpm test"),
    "yarn": ({"package.json": SCRIPT, "yarn.lock": ""}, set(), "yarn test"),
    "bun": ({"package.json": SCRIPT, "bun.lock": ""}, set(), "bun run test"),
    "what npm init writes": (
        {"package.json": '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}'},
        set(),
        None,
    ),
    "a watcher": ({"package.json": '{"scripts": {"test": "jest --watchAll"}}'}, set(), None),
    "node": ({"package.json": "{}", "test/a.test.mjs": ""}, set(), "node --test"),
    "Go": ({"go.mod": "module a\n", "a/a_test.go": ""}, set(), "go test ./..."),
    "Go without tests": ({"go.mod": "module a\n", "a/a.go": ""}, set(), None),
    "Rust": ({"Cargo.toml": "[package]\nname = 'a'\n"}, set(), "cargo test"),
    "a workspace of Rust": (
        {"Cargo.toml": "[workspace]\nmembers = ['a']\n"},
        set(),
        "cargo test --workspace",
    ),
    "make alone": (MAKE, set(), "make test"),
    "make beside one language": ({**MAKE, **PYTEST}, set(), "pytest -q"),
    "make beside two languages": ({**MAKE, **PYTEST, **JEST}, set(), "make test"),
    "a variable of make": ({"Makefile": "test := 1\ncheck: all\n"}, set(), "make check"),
    "broken files": (
        {"package.json": "[", "pyproject.toml": "= [", "Makefile": "all:\n"},
        set(),
        None,
    ),
    "files that hold something else": (
        {"package.json": '{"scripts": []}', "pyproject.toml": "tool = 1\n"},
        set(),
        None,
    ),
}


def proposed(files: dict[str, str], present: set[str]) -> Any:
    return propose_command(ProjectFacts(frozenset(files), files, frozenset(present)))


@pytest.mark.parametrize(("files", "present", "command"), PROJECTS.values(), ids=PROJECTS)
def test_the_command_that_is_proposed(
    files: dict[str, str], present: set[str], command: str | None
) -> None:
    found = proposed(files, present)
    assert (found.command if found else None) == command
    assert found is None or found.why


@pytest.mark.parametrize(
    ("files", "present", "keys"),
    [
        (PYTEST, {"venv/bin/pytest"}, {"share": ("venv",)}),
        ({**PYTEST, "uv.lock": ""}, set(), {"setup": "uv sync"}),
        (
            {
                **TEST,
                "uv.lock": "",
                "pyproject.toml": "[project.optional-dependencies]\ndev = ['pytest']\n",
            },
            set(),
            {"setup": "uv sync --all-extras"},
        ),
        (JEST, {"node_modules"}, {"share": ("node_modules",)}),
        (JEST, set(), {"setup": "npm ci"}),
        ({"package.json": '{"scripts": {"test": "node --test"}}'}, set(), {}),
        (
            {"package.json": SCRIPT.replace("{", '{"workspaces": ["a"], ', 1)},
            {"node_modules"},
            {"setup": "npm install"},
        ),
    ],
    ids=["venv", "uv", "an extra", "node_modules", "a lock file", "no dependencies", "workspaces"],
)
def test_what_a_checkout_needs_besides(
    files: dict[str, str], present: set[str], keys: dict[str, Any]
) -> None:
    found = proposed(files, present).settings()
    assert found.pop("command")
    assert found == keys
