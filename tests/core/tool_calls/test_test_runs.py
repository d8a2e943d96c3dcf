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
    "tox -e py312",
    "nox -s tests",
    "hatch test",
    "hatch run test",
    "pdm run test",
    "uvx pytest",
    "pipx run pytest",
    "mise run test",
    "turbo run test",
    "docker exec app pytest",
    'docker exec -w /app -u root app sh -c "cd /app && pytest"',
    "docker compose run --rm web npm test",
    "kubectl exec pod -- pytest",
    "ssh host 'cd app && pytest'",
    "direnv exec . pytest",
    "nix develop -c pytest",
    "(cd x && pytest)",
    ".venv/bin/python -m pytest -q",
    "sudo -u app pytest",
    "timeout -s KILL 60 pytest",
    "env -i PATH=/usr/bin pytest",
    "export PATH=$HOME/.local/bin:$PATH && pytest",
    "npm --prefix app test",
    "npm exec jest",
    "pytest -k list",
    "ctest -V",
    "mvn -V -B test",
    "bash scripts/test.sh",
    "node test.js",
    "php artisan test",
    "nx test app",
    "python -c 'import pytest; raise SystemExit(pytest.main())'",
    "cat > a.js <<'E'\nfunction f() {\n}\nE\nnpm test",
    "pytest -x || true; pytest",
    "# don't stop\npytest -q",
    "cd app # it's there\nnpm test",
    "pytest -q; exit $?",
    "pytest | tee log; exit ${PIPESTATUS[0]}",
    "pytest || exit $?",
    "cd app || exit 1; pytest",
    "eval 'pytest -q'",
    "npx c8 npm test",
    "npx tsx --test a.ts",
    "composer run test",
    "cargo llvm-cov",
    "dune runtest",
    "pdm test",
    "py -3 -m pytest",
    "node node_modules/jest/bin/jest.js",
    "xargs pytest < list",
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
    "pytest || exit 0",
    "pytest || return 0",
    "false && pytest",
    "exit 0; pytest",
    "pytest --cache-show",
    "pytest --fixtures-per-test",
    "make -i test",
    "make -t test",
    "go test -c",
    "go test -list . ./...",
    "gradle test -m",
    "npm run test:setup",
    "function pytest { true; }; pytest",
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
    "npm install jest",
    "yarn add jest",
    "npm ls jest",
    "uv add pytest",
    "uv pip install pytest",
    "poetry add --group dev pytest",
    "poetry show pytest",
    "sudo apt-get install -y bats",
    "command -v pytest",
    "timeout 60 grep pytest x",
    "docker run --name pytest img",
    "docker build -t pytest .",
    "docker exec app grep pytest x",
    "tox -e lint",
    "tox -e mypy,flake8",
    "nox -s lint",
    "gradle build -x test",
    "npm run test:types",
    "npm run test:lint",
    "npm test --if-present",
    "make lint-tests",
    "make format-check",
    "cargo nextest list",
    "coverage run app.py",
    "PATH=/tmp/fake:$PATH pytest",
    "docker run " * 2000,
    "env " * 5000 + "pytest",
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
    "an echo of totals beside it": (
        shell("pytest -q >/dev/null; echo '12 passed'", "12 passed"),
        SeenRun("pytest -q >/dev/null; echo '12 passed'", None, 0),
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
    "a type check that poses as tests, of yarn": (
        shell("yarn test", "yarn run v1.22\n$ tsc --noEmit\nDone in 1s"),
        None,
    ),
    "a type check that poses as tests, of make": (
        shell("make test", "mypy .\nSuccess: no issues found in 3 source files"),
        None,
    ),
    "a linter before the tests": (
        shell("make test", "ruff check .\nAll checks passed!\npytest -q\n3 passed"),
        SeenRun("make test", True, 3),
    ),
    "an `or` further behind": (
        shell("pytest -q >log && echo good || echo bad", "bad"),
        SeenRun("pytest -q >log && echo good || echo bad", None, 0),
    ),
    "the output in a variable": (
        shell("out=$(pytest -q 2>&1); echo $out", "12 passed in 1s"),
        SeenRun("out=$(pytest -q 2>&1); echo $out", True, 12),
    ),
    "all tests are skipped": (shell("pytest", "12 skipped in 0.1s"), None),
    "all tests of Jest are skipped": (shell("jest", "Tests:       12 skipped, 12 total"), None),
    "some tests are skipped": (
        shell("pytest", "3 passed, 12 skipped"),
        SeenRun("pytest", True, 3),
    ),
    "no test of Go is chosen": (
        shell("go test -run X ./...", "ok  \tapp\t0.01s [no tests to run]"),
        None,
    ),
    "some packages of Go have no tests": (
        shell("go test ./...", "?   app/cmd [no test files]\nok   app/pkg 0.012s"),
        SeenRun("go test ./...", True, 0),
    ),
    "no example": (shell("rspec", "0 examples, 0 failures"), None),
    "no test of Deno": (shell("deno test", "ok | 0 passed | 0 failed"), None),
    "no test of Maven": (shell("mvn test", "Tests run: 0, Failures: 0, Errors: 0"), None),
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
    "a new branch afterwards": ([GREEN, shell("git checkout -b fix")], [True]),
    "the stash is listed": ([GREEN, shell("git stash list; git merge-base a b")], [True]),
    "changes are staged anew": ([GREEN, shell("git reset -q HEAD a.py")], [True]),
    "a hard reset": ([GREEN, shell("git reset -q --hard HEAD~1")], []),
    "a formatter only checks": ([GREEN, shell("ruff format --check . && black --check .")], [True]),
    "a formatter writes": ([GREEN, shell("black .")], []),
    "a file is removed": ([GREEN, shell("git rm src/a.py")], []),
    "a container that is removed": ([shell("docker run --rm web pytest tests/test_a.py")], [True]),
    "words of a message": ([GREEN, shell("git commit -m 'sed -i' -m 'git merge x'")], [True]),
    "a word that is printed": ([GREEN, shell("echo 'rm a.py'; grep -rn '> a.py' .")], [True]),
    "a copy elsewhere": (
        [GREEN, shell("git show HEAD:a.py > /tmp/a.py; cp a.py /tmp/b.py")],
        [True],
    ),
    "a new branch, quietly": ([GREEN, shell("git checkout -q -b fix")], [True]),
    "another branch": ([GREEN, shell("git switch main")], []),
    "a folder is removed": ([GREEN, shell("rm -rf src")], []),
    "what was built is removed": ([GREEN, shell("rm -rf build .pytest_cache")], [True]),
    "an edit in place, in long": ([GREEN, shell("sed --in-place s/a/b/ a.py")], []),
    "an edit of many files": ([GREEN, shell("grep -l a . | xargs sed -i s/a/b/")], []),
    "an edit of what is found": ([GREEN, shell("find . -exec sed -i s/a/b/ {} +")], []),
    "a script writes a file": ([GREEN, shell("python - <<'E'\nopen('a.py', 'w')\nE")], []),
    "a script reads a file": ([GREEN, shell("python -c \"print(open('a.py').read())\"")], [True]),
    "a target formats": ([GREEN, shell("npm run format")], []),
    "a target checks the format": ([GREEN, shell("npm run format:check")], [True]),
    "an edit by a tool of a server": (
        [GREEN, edit()._replace(tool="mcp__filesystem__write_file")],
        [],
    ),
    "a tool of a server that edits no file": (
        [GREEN, edit("")._replace(tool="mcp__tracker__create_issue")],
        [True],
    ),
    "a file is viewed": (
        [GREEN, edit(command="view")._replace(tool="str_replace_based_edit_tool")],
        [True],
    ),
    "requirements": ([GREEN, edit("requirements-dev.txt")], []),
    "a patch": ([GREEN, shell("apply_patch <<'E'\n*** Begin Patch\nE")], []),
    "a red run, then a green one": ([RED, edit(), GREEN], [False, True]),
    "a green run, then a red one": ([GREEN, RED], [True, False]),
    "a commit afterwards": ([GREEN, shell("git add -A && git commit -m 'Edit'")], [True]),
}


@pytest.mark.parametrize(("calls", "passed"), ORDER.values(), ids=ORDER)
def test_a_green_run_that_is_older_than_the_last_edit_does_not_count(
    calls: list[ToolCall], passed: list[bool]
) -> None:
    assert [run.passed for run in runs_that_count(calls)] == passed
