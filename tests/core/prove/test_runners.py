"""Which runners a command starts, and how it is changed to make them report."""

import pytest

from guard.core.prove.runners import (
    call_cargo_for_all,
    call_go_with_json,
    call_javascript_with_json,
    call_unittest_module,
    lead_python_path,
    name_runners,
)

SCRIPTS = {
    "test": "jest --ci",
    "unit": "vitest run",
    "check": "eslint . && npm run test",
    "loop": "npm run loop",
    "node": "node --test",
}


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("pytest", ["pytest"]),
        ("pytest -q tests", ["pytest"]),
        (".venv/bin/pytest", ["pytest"]),
        ("python -m pytest -x", ["pytest"]),
        ("python3.11 -W error -m pytest", ["pytest"]),
        ("uv run pytest", ["pytest"]),
        ("uv run --frozen python -m pytest", ["pytest"]),
        ("poetry run pytest && ruff check", ["pytest"]),
        ("A=1 B=2 timeout 60 pytest", ["pytest"]),
        ("coverage run -m pytest", ["pytest"]),
        ("cd sub; python -m unittest discover", ["unittest"]),
        ("node --test", ["node"]),
        ("npx jest", ["jest"]),
        ("npx vitest run", ["vitest"]),
        ("npm test", ["jest"]),
        ("npm run unit", ["vitest"]),
        ("pnpm check", ["jest"]),
        ("npm run node", ["node"]),
        ("npm run loop", []),
        ("go test ./...", ["go"]),
        ("go vet ./...", []),
        ("cargo test --workspace", ["cargo"]),
        ("cargo build", []),
        ("pytest a && npm test && go test ./...", ["pytest", "jest", "go"]),
        ("make check", []),
        ("tox -e py311", []),
        ("echo 'unclosed", []),
        ("", []),
    ],
)
def test_runners_are_named_by_the_words_of_the_command(command: str, names: list[str]) -> None:
    assert [named.runner for named in name_runners(command, SCRIPTS)] == names


def test_options_reach_a_script_of_one_command_only() -> None:
    assert name_runners("npm test", SCRIPTS)[0].takes_options
    assert not name_runners("npm run check", SCRIPTS)[0].takes_options


@pytest.mark.parametrize(
    ("command", "changed"),
    [
        ("npx jest src", "npx jest {} src"),
        ("npm test", "npm test -- {}"),
        ("npm test -- --ci", "npm test -- --ci {}"),
        ("cd a && npm test && echo done", "cd a && npm test -- {} && echo done"),
        ("yarn test", "yarn test {}"),
    ],
)
def test_jest_writes_its_report(command: str, changed: str) -> None:
    named = name_runners(command, SCRIPTS)[0]
    found = call_javascript_with_json(command, named, "/r")
    assert found == changed.format("--bail=0 --json --outputFile=/r/jest-1.json")


def test_other_runners_are_called_with_a_report() -> None:
    assert call_unittest_module("python -m unittest -v; x", "a.b") == "python -m a.b -v; x"
    assert call_unittest_module("python -m unittests", "a.b") == "python -m unittests"
    assert call_go_with_json("cd x && go test ./...") == "cd x && go test -json ./..."
    assert call_cargo_for_all("cargo test -q") == "cargo test --no-fail-fast -q"
    assert call_cargo_for_all("cargo test --no-fail-fast") == "cargo test --no-fail-fast"


@pytest.mark.parametrize(
    ("command", "changed"),
    [
        ("PYTHONPATH=. pytest", "PYTHONPATH=/r:. pytest"),
        ("export PYTHONPATH=src:lib; pytest", "export PYTHONPATH=/r:src:lib; pytest"),
        ('env PYTHONPATH="src" pytest', 'env PYTHONPATH=/r:"src" pytest'),
        ("PYTHONPATH=$PWD/src pytest", "PYTHONPATH=/r:$PWD/src pytest"),
        ("PYTHONPATH= pytest", "PYTHONPATH=/r pytest"),
        ("PYTHONPATH='' pytest", "PYTHONPATH=/r'' pytest"),
        ("export PYTHONPATH=", "export PYTHONPATH=/r"),
        ("MY_PYTHONPATH=. pytest --PYTHONPATH=.", "MY_PYTHONPATH=. pytest --PYTHONPATH=."),
        ("pytest", "pytest"),
    ],
)
def test_guards_folder_goes_first_where_a_command_sets_pythonpath(
    command: str, changed: str
) -> None:
    assert lead_python_path(command, "/r") == changed


def test_guards_folder_is_quoted_for_the_shell() -> None:
    assert lead_python_path("PYTHONPATH=. x", "/a b") == "PYTHONPATH='/a b:'. x"
