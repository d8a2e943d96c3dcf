"""`guard prove --held`: which changed lines a test holds, found by taking back each part of the work."""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

import guard
from tests.support import git, run, write
from tests.support.checkouts import state_of
from tests.support.sessions import started, until

PYTEST = f"{sys.executable} -m pytest -q -p no:cacheprovider"
ADD = "def add(a, b):\n    return a + b\n"
MUL = "\n\ndef mul(a, b):\n    return a * b\n"
SUB = "\n\ndef sub(a, b):\n    return a - b\n"
TEST = "import calc\n\n\ndef test_add():\n    assert calc.add(1, 2) == 3\n"
TEST_MUL = "\n\ndef test_mul():\n    assert calc.mul(2, 3) == 6\n"


@pytest.fixture(autouse=True)
def project(repository: Path) -> Path:
    write(repository / "conftest.py", "")
    save(repository, {"calc.py": ADD, "tests/test_calc.py": TEST})
    return repository


def save(project: Path, files: dict[str, str | None]) -> str:
    for name, text in files.items():
        if text is None:
            (project / name).unlink()
        else:
            write(project / name, text)
    git(project, "add", "-A")
    git(project, "commit", "-qm", "work")
    return git(project, "rev-parse", "HEAD").strip()


def held(*words: str, command: str = PYTEST, code: int = 0, **env: str) -> dict[str, Any]:
    found = run("prove", "--held", "--format", "json", "--command", command, *words, env=env)
    assert found.code == code, found.err
    document: dict[str, Any] = json.loads(found.out)
    return document


def counts(document: dict[str, Any]) -> tuple[int, int, int]:
    return document["held"], document["not_held"], document["untried"]


def test_an_added_function_without_a_test_is_not_held(project: Path) -> None:
    save(project, {"calc.py": ADD + MUL + SUB, "tests/test_calc.py": TEST + TEST_MUL})
    found = held()
    hunks = found["files"][0]["hunks"]
    assert [(one["line"], one["result"], one["by"], one["tests"]) for one in hunks] == [
        (5, "held", "failing_test", ["tests/test_calc.py::test_mul"]),
        (9, "not_held", None, []),
    ]
    assert counts(found) == (2, 2, 0)
    assert [file["path"] for file in found["files"]] == ["calc.py"]


def test_people_see_which_lines_no_test_would_miss(project: Path) -> None:
    save(project, {"calc.py": ADD + SUB, "README.md": "Adds and subtracts.\n"})
    found = run("prove", "--held", "--command", PYTEST)
    assert found.code == 0
    assert "held by a test: 0 of 2 changed lines, not held: 2" in found.out
    assert "no test notices without lines 5 to 6" in found.out
    assert "left out, no test can hold it: README.md" in found.out
    assert "0 of 1 part tried" in found.err


def test_changed_removed_and_unreadable_lines_are_taken_back(project: Path) -> None:
    save(project, {"calc.py": "# sums\nimport os\n\n\n" + ADD + MUL})
    save(
        project,
        {
            "calc.py": "# products\n\n\ndef add(a, b):\n    return b + a\n" + MUL,
            "other.py": "import calc\n",
            "tests/test_other.py": "import other\n\n\ndef test_it():\n    assert other.calc\n",
        },
    )
    found = held()
    by_file = {
        file["path"]: [
            (one["line"], one["removes"], one["result"], one["by"]) for one in file["hunks"]
        ]
        for file in found["files"]
    }
    # The first part of calc.py exchanges a comment and removes an import.
    assert by_file["calc.py"] == [(1, False, "not_held", None), (5, False, "not_held", None)]
    assert by_file["other.py"] == [(1, False, "held", "no_start")]


def test_a_file_that_was_removed_counts_with_its_lines(project: Path) -> None:
    save(project, {"old.py": "x = 1\ny = 2\n"})
    save(project, {"old.py": None})
    (file,) = held()["files"]
    assert (file["not_held"], file["hunks"][0]["removes"]) == (2, True)


def test_a_test_that_neither_came_along_nor_names_the_file_holds_lines_too(project: Path) -> None:
    test = "import pkg\n\n\ndef test_pkg():\n    assert pkg.value() == 1\n"
    inner = "from pkg import deep\n\n\ndef value():\n    return deep.ONE\n"
    save(project, {"tests/test_all.py": test, "pkg/__init__.py": inner, "pkg/deep.py": "ONE = 5\n"})
    save(project, {"pkg/deep.py": "ONE = 1\n"})
    (file,) = held()["files"]
    assert file["hunks"][0]["tests"] == ["tests/test_all.py::test_pkg"]


def test_a_command_without_single_tests_holds_by_its_exit_code(project: Path) -> None:
    save(project, {"calc.py": ADD + MUL + SUB})
    command = f"{sys.executable} -c 'import calc; assert calc.mul(2, 3) == 6'"
    hunks = held(command=command)["files"][0]["hunks"]
    assert [(one["result"], one["by"]) for one in hunks] == [
        ("held", "exit_code"),
        ("not_held", None),
    ]


def test_a_part_without_which_the_tests_hang_is_held(project: Path) -> None:
    loop = "def wait(done=False):\n    while not done:\n        pass\n    return 1\n"
    test = "import calc\n\n\ndef test_wait():\n    assert calc.wait() == 1\n"
    save(project, {"calc.py": loop, "tests/test_calc.py": "def test_no():\n    pass\n"})
    save(project, {"calc.py": loop.replace("False", "True"), "tests/test_calc.py": test})
    found = held(GUARD_PROVE__TIMEOUT_SECONDS="5")
    assert [(one["result"], one["by"]) for one in found["files"][0]["hunks"]] == [("held", "hang")]


def test_a_test_that_only_sometimes_passes_holds_nothing(project: Path, tmp_path: Path) -> None:
    marks = str(tmp_path / "turn")
    flaky = (
        "import os\n\n\ndef test_turns():\n"
        f"    with open({marks!r}, 'a') as file:\n        file.write('x')\n"
        f"    assert os.path.getsize({marks!r}) != 2\n"
    )
    save(project, {"calc.py": ADD + SUB, "tests/test_turns.py": flaky})
    assert counts(held()) == (0, 2, 0)


def test_red_tests_tell_nothing(project: Path) -> None:
    save(project, {"calc.py": ADD.replace("+", "-")})
    found = held(code=1)
    assert found["ended"] == "unverifiable"
    assert "not green" in found["detail"]
    assert found["files"][0]["untried"] == 1
    said = run("prove", "--held", "--command", PYTEST)
    assert said.out.startswith("unverifiable: the tests of the work are not green")


def test_nothing_of_the_project_changes_and_nothing_is_recorded(project: Path) -> None:
    save(project, {"calc.py": ADD + SUB})
    write(project / "calc.py", "uncommitted\n")
    before = state_of(project)
    held()
    assert state_of(project) == before
    assert json.loads(run("log", "--format", "json").out)["events"] == []


def test_the_time_limit_gives_what_is_done(project: Path) -> None:
    save(project, {"calc.py": ADD + "\n\ndef most():\n    return 1\n    return 2\n" + SUB})
    slow = "if ! grep -q sub calc.py; then sleep 600; fi"
    found = held("--max-time", "15", command=slow)
    assert found["ended"] == "max_time"
    # The largest part comes first.
    assert counts(found) == (0, 3, 2)
    assert "the time was over" in run("prove", "--held", "--max-time", "3", "--command", slow).out


def test_ctrl_c_gives_what_is_done(project: Path, tmp_path: Path) -> None:
    save(project, {"calc.py": ADD + "\n\ndef most():\n    return 1\n    return 2\n" + SUB})
    waits = f"if ! grep -q sub calc.py; then touch {tmp_path}/slow; sleep 987022; fi"
    words = ("prove", "--held", "--format", "json", "--command", waits)
    with started(*words, listen=True) as process:
        until((tmp_path / "slow").exists)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    document = json.loads(out)
    assert document["ended"] == "interrupted"
    assert counts(document) == (0, 3, 2)
    cache = Path(os.environ["HOME"]) / ".cache/guard/prove"
    assert list(cache.glob("*/scratch/*")) == []


def test_a_line_that_the_second_check_holds_is_held(project: Path) -> None:
    save(project, {"calc.py": ADD + MUL + SUB, "tests/test_calc.py": TEST + TEST_MUL})
    checks = [
        {"name": "unit", "command": PYTEST},
        {"name": "other", "command": f"{sys.executable} -c 'import calc; calc.sub(1, 2)'"},
        {"name": "lint", "command": "false", "kind": "exit"},
    ]
    found = run(
        "prove", "--held", "--format", "json", env={"GUARD_PROVE__CHECK": json.dumps(checks)}
    )
    document = json.loads(found.out)
    assert counts(document) == (4, 0, 0)
    assert [one["name"] for one in document["checks"]] == ["unit", "other"]


@pytest.mark.parametrize(
    "words",
    [("--accept", "HEAD"), ("--explain",), ("--calibrate", "2"), ("--receipt", "r.json")],
    ids=" ".join,
)
def test_what_makes_no_sense_beside_it_is_refused(words: tuple[str, ...]) -> None:
    assert run("prove", "--held", "--command", "true", *words).code == 2


def test_python_gets_the_same(project: Path) -> None:
    save(project, {"calc.py": ADD + SUB})
    found = guard.find_held(command=PYTEST, repo=project)
    assert (found.held, found.not_held, found.ended) == (0, 2, "complete")
