"""Which tool calls ran tests: what counts, what only looks like it, and which of them are out of date."""

from typing import Any

import pytest

from guard.core.tool_calls.read import ToolCall
from guard.core.tool_calls.test_runs import SeenRun, find_run, runs_that_count


def shell(command: str, output: str = "", code: int | None = 0) -> ToolCall:
    return ToolCall("c1", "Bash", {"command": command}, output, code, bool(code))


def edit(path: str = "src/a.py", **given: Any) -> ToolCall:
    return ToolCall("c2", "Edit", {"file_path": path, **given}, "", None, False)


RAN = [
    "pytest",
    "pytest -q -p no:cacheprovider tests",
    "python -m pytest -x",
    "python3.12 -m unittest discover",
    "cd app && CI=1 npx jest --runInBand",
    "npm test",
    "npm run test:unit -- --coverage",
    "pnpm test",
    "yarn test",
    "bun test",
    "uv run pytest -q",
    "poetry run pytest",
    "timeout 60 pytest -q",
    "coverage run -m pytest && coverage report",
    "go test ./...",
    "cargo test --all",
    "cargo nextest run",
    "make test",
    "make -C app check",
    "./gradlew test",
    "mvn -q test",
    "node --test",
    "bundle exec rspec",
    "python manage.py test app",
    "./run_tests.sh",
    "/bin/bash -lc 'pytest -q'",
    'bash -c "cd app && npm test"',
    "docker compose exec web pytest",
    "guard agent test --task T1 --agent a1 -- pytest -q",
    "pytest -q || exit 1",
    "set -o pipefail; pytest | tee log",
    "# all of them\npytest",
]


@pytest.mark.parametrize("command", RAN)
def test_a_run_is_known_by_its_command_and_exit_code(command: str) -> None:
    good, bad = find_run(shell(command)), find_run(shell(command, code=1))
    assert (good and good.passed, bad and bad.passed) == (True, False)


NOT_RUN = [
    "ls",
    "echo pytest passed",
    "echo 'pytest -q' && echo '12 passed'",
    "printf '12 passed'",
    "cat <<EOF\npytest\n12 passed\nEOF",
    "grep -r pytest .",
    "pytest --collect-only -q",
    "pytest --co",
    "pytest --help",
    "pytest --version",
    "npx jest --listTests",
    "cargo test --no-run",
    "make -n test",
    "mvn install -DskipTests",
    "pytest || true",
    "pytest -q || echo ok",
    "npm test || :",
    "true || pytest",
    "pytest &",
    "! pytest",
    "pytest() { echo '3 passed'; }; pytest",
    "alias pytest='echo 3 passed'; pytest",
    "mypy .",
    "npx tsc --noEmit",
    "npm run lint",
    "npm run build",
    "ruff check tests",
    "cargo check --tests",
    "go vet ./...",
    "pip install pytest",
    "which pytest",
    "git commit -m 'pytest passes'",
    "# pytest",
    "unbalanced 'pytest",
    "",
]


@pytest.mark.parametrize("command", NOT_RUN)
def test_what_only_looks_like_a_run_is_none(command: str) -> None:
    assert find_run(shell(command, "12 passed in 0.1s")) is None


OUTPUT: dict[str, tuple[ToolCall, SeenRun | None]] = {
    "a pipe hides the exit code, the totals tell": (
        shell("pytest -q | tail -1", "12 passed in 0.10s"),
        SeenRun("pytest -q | tail -1", True, 12),
    ),
    "a pipe, and a failure": (
        shell("pytest -q | tail -1", "1 failed, 11 passed in 0.10s"),
        SeenRun("pytest -q | tail -1", False, 11),
    ),
    "a pipe that hides all": (shell("pytest | wc", "3"), SeenRun("pytest | wc", None, 0)),
    "something after it": (
        shell("pytest; echo done", "done"),
        SeenRun("pytest; echo done", None, 0),
    ),
    "no exit code is told": (
        shell("npm test", "Tests:       3 passed, 3 total", None),
        SeenRun("npm test", True, 3),
    ),
    "no test was found": (shell("pytest", "no tests ran in 0.01s", 5), None),
    "no test of unittest": (shell("python -m unittest", "Ran 0 tests in 0.000s\n\nOK"), None),
    "no test file": (shell("go test ./...", "?   \tapp\t[no test files]"), None),
    "the call was denied": (
        ToolCall("c", "Bash", {"command": "pytest"}, "denied", None, True),
        None,
    ),
    "a type check that poses as tests": (
        shell("npm test", "> app@1.0.0 test\n> tsc --noEmit\n"),
        None,
    ),
    "an echo that poses as tests": (
        shell("npm test", "> app@1.0.0 test\n> echo '3 passing'\n\n3 passing"),
        None,
    ),
    "a script that runs tests": (
        shell("npm test", "> app@1.0.0 test\n> node --test\n\n# pass 2\n# fail 0"),
        SeenRun("npm test", True, 2),
    ),
}


@pytest.mark.parametrize(("call", "seen"), OUTPUT.values(), ids=OUTPUT)
def test_the_result_is_read_where_it_can_be(call: ToolCall, seen: SeenRun | None) -> None:
    assert find_run(call) == seen


GREEN, RED = shell("pytest", "2 passed"), shell("pytest", "1 failed", 1)
ORDER: dict[str, tuple[list[ToolCall], list[bool]]] = {
    "an edit, then a run": ([edit(), GREEN], [True]),
    "a run, then an edit": ([GREEN, edit()], []),
    "a run, then an edit, then another": ([GREEN, edit(), GREEN], [True]),
    "a red run stays": ([RED, edit()], [False]),
    "a document may be edited afterwards": ([GREEN, edit("README.md")], [True]),
    "an edit that failed is none": ([GREEN, edit()._replace(failed=True)], [True]),
    "an edit by the shell": ([GREEN, shell("sed -i s/a/b/ src/a.py")], []),
    "a file written by the shell": ([GREEN, shell("cat > src/a.py <<E\nx\nE")], []),
    "an edit and a run in one": ([shell("sed -i s/a/b/ a.py && pytest")], [True]),
    "a run and an edit in one": ([shell("pytest && sed -i s/a/b/ a.py")], []),
    "a commit afterwards": ([GREEN, shell("git add -A && git commit -m 'Edit'")], [True]),
}


@pytest.mark.parametrize(("calls", "passed"), ORDER.values(), ids=ORDER)
def test_a_green_run_that_is_older_than_the_last_edit_does_not_count(
    calls: list[ToolCall], passed: list[bool]
) -> None:
    assert [run.passed for run in runs_that_count(calls)] == passed
