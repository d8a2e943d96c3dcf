"""Files that steer the tests: what a change to them leaves out or passes over."""

import json

import pytest

from guard.core.claims.runner_settings import RunnerSettings, find_steering

MAKE = "build:\n\tcc a.c\n\ntest:\n\tpytest -q\n"
CI = "jobs:\n  test:\n    steps:\n      - run: pip install .\n      - run: pytest -q\n"
PYPROJECT = '[project]\nname = "a"\n\n[tool.pytest.ini_options]\naddopts = "-q"\n'


def package(script: str, **others: object) -> str:
    return json.dumps({"name": "a", "scripts": {"test": script, "lint": "eslint ."}, **others})


DISARMED: dict[str, tuple[str, str | None, str | None]] = {
    "--ignore in pytest.ini": (
        "pytest.ini", "[pytest]\n", "[pytest]\naddopts = --ignore=tests/test_a.py\n"),
    "a new pytest.ini": ("pytest.ini", None, "[pytest]\naddopts = --deselect tests/test_a.py::test_a\n"),
    "-k in pyproject.toml": ("pyproject.toml", PYPROJECT, PYPROJECT.replace("-q", "-q -k 'not slow'")),
    "-k in a list": (
        "pyproject.toml", PYPROJECT, PYPROJECT.replace('"-q"', '["-q", "-k", "smoke"]')),
    "-m not": ("pyproject.toml", PYPROJECT, PYPROJECT.replace("-q", "-m 'not unit'")),
    "--ignore in setup.cfg": ("setup.cfg", "[metadata]\nname=a\n", "[tool:pytest]\naddopts=--ignore=tests\n"),
    "-k in tox.ini": ("tox.ini", "[testenv]\ncommands = pytest\n", "[testenv]\ncommands = pytest -k smoke\n"),
    "tox ignores the failure": (
        "tox.ini", "[testenv]\ncommands = pytest\n", "[testenv]\ncommands = - pytest\n"),
    "collect_ignore in conftest.py": ("conftest.py", "import os\n", "collect_ignore = ['tests/test_a.py']\n"),
    "an exit status in conftest.py": (
        "tests/conftest.py", "", "def pytest_sessionfinish(session):\n    session.exitstatus = 0\n"),
    "test is true": ("package.json", package("jest"), package("true")),
    "an unknown program is true": ("package.json", package("node check.js"), package("true")),
    "test is echo": ("package.json", package("vitest run"), package("echo ok")),
    "test is exit 0": ("package.json", package("mocha"), package("exit 0")),
    "jest || true": ("web/package.json", package("jest"), package("jest || true")),
    "jest; exit 0": ("package.json", package("jest"), package("jest; exit 0")),
    "jest without tests": ("package.json", package("jest"), package("jest --passWithNoTests")),
    "jest's ignored paths": (
        "package.json", package("jest"), package("jest", jest={"testPathIgnorePatterns": ["a"]})),
    "a config of jest": (
        "jest.config.js", "module.exports = {}\n", "module.exports = {testPathIgnorePatterns: ['a']}\n"),
    "make: || true": ("Makefile", MAKE, MAKE.replace("-q", "-q || true")),
    "make: a hyphen": ("Makefile", MAKE, MAKE.replace("\tpytest", "\t-pytest")),
    "make: a silent hyphen": ("Makefile", MAKE, MAKE.replace("\tpytest", "\t@-pytest")),
    "make: ; true": ("Makefile", MAKE, MAKE.replace("-q", "-q; true")),
    "make: nothing": ("Makefile", MAKE, MAKE.replace("pytest -q", "@true")),
    "make: words": ("Makefile", MAKE, MAKE.replace("pytest -q", "@echo all tests passed")),
    "make: --ignore": ("Makefile", MAKE, MAKE.replace("-q", "-q --ignore=tests/test_a.py")),
    "just: || true": ("justfile", "test:\n    cargo test\n", "test:\n    cargo test || true\n"),
    "a workflow: || true": (".github/workflows/ci.yml", CI, CI.replace("-q", "-q || true")),
    "a workflow that goes on": (
        ".github/workflows/ci.yml", CI, f"{CI}        continue-on-error: true\n"),
    "a step that never runs": (".github/workflows/ci.yml", CI, f"{CI}        if: false\n"),
}  # fmt: skip
CHANGED: dict[str, tuple[str, str | None, str | None]] = {
    "an option": ("pytest.ini", "[pytest]\n", "[pytest]\naddopts = -x\n"),
    "the files of tests": ("pyproject.toml", PYPROJECT, f'{PYPROJECT}python_files = "check_*.py"\n'),
    "a deleted config": ("pytest.ini", "[pytest]\naddopts = --strict-markers\n", None),
    "another --ignore": ("pytest.ini", "[pytest]\naddopts=--ignore=a\n", "[pytest]\naddopts=--ignore=b\n"),
    "another runner": ("package.json", package("jest"), package("vitest run")),
    "a fixture": ("tests/conftest.py", "import os\n", "import sys\n"),
    "an option in a recipe": ("Makefile", MAKE, MAKE.replace("-q", "-x")),
    "a step of a workflow": (".github/workflows/ci.yml", CI, CI.replace("-q", "-vv")),
}  # fmt: skip
NEITHER: dict[str, tuple[str, str | None, str | None]] = {
    "code": ("a.py", "a\n", "b  # --ignore=tests, pytest || true\n"),
    "a dependency": ("pyproject.toml", PYPROJECT, PYPROJECT.replace('"a"', '"b"')),
    "another script": ("package.json", package("jest"), package("jest").replace("eslint .", "true")),
    "another recipe": ("Makefile", MAKE, MAKE.replace("cc a.c", "cc -O2 a.c || true")),
    "make -k": ("Makefile", MAKE, f"{MAKE}all:\n\tmake -k build\n"),
    "another step": (".github/workflows/ci.yml", CI, CI.replace("install .", "install -e .")),
    "a comment": ("pytest.ini", "[pytest]\n", "# --ignore=a\n[pytest]\n"),
    "a new Makefile": ("Makefile", None, MAKE),
    "a new conftest.py": ("tests/conftest.py", None, "import pytest\n"),
    "a new config": ("pyproject.toml", None, PYPROJECT),
    "a new package.json": ("package.json", None, package("jest")),
    "a broken file": ("package.json", "{", "{"),
}  # fmt: skip


@pytest.mark.parametrize("change", DISARMED.values(), ids=DISARMED)
def test_tests_are_left_out_or_their_failures_passed_over(
    change: tuple[str, str | None, str | None],
) -> None:
    assert find_steering([change]) == RunnerSettings(disarmed=(change[0],))


@pytest.mark.parametrize("change", CHANGED.values(), ids=CHANGED)
def test_what_steers_tests_is_changed(change: tuple[str, str | None, str | None]) -> None:
    assert find_steering([change]) == RunnerSettings(changed=(change[0],))


@pytest.mark.parametrize("change", NEITHER.values(), ids=NEITHER)
def test_other_changes_steer_nothing(change: tuple[str, str | None, str | None]) -> None:
    assert find_steering([change]) == RunnerSettings()
