"""Proof from end to end: real commits, real checkouts, real runs of pytest."""

import importlib.util
import json
import os
import py_compile
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support import git, run, write
from tests.support.checkouts import state_of
from tests.support.sessions import QUICK, script

PYTEST = f"{sys.executable} -m pytest -q -p no:cacheprovider"
ADD = "def add(a, b):\n    return a + b\n"
BROKEN = "def add(a, b):\n    return a - b\n"
TESTS = """import calc


def test_sum():
    assert calc.add(1, 2) == 3


def test_zero():
    assert calc.add(0, 0) == 0
"""


@pytest.fixture(autouse=True)
def project(repository: Path) -> Path:
    write(repository / "conftest.py", "")
    write(repository / "calc.py", ADD)
    write(repository / "tests/test_calc.py", TESTS)
    return save(repository, "add up")


def save(project: Path, message: str) -> Path:
    git(project, "add", "-A")
    git(project, "commit", "-qm", message)
    return project


def prove(*words: str, code: int = 0, command: str = PYTEST) -> dict[str, Any]:
    found = run("prove", "--format", "json", "--command", command, *words)
    assert found.code == code, found.err
    document: dict[str, Any] = json.loads(found.out)
    return document


def verdict(proof: dict[str, Any]) -> tuple[str, str]:
    return proof["result"], proof["reason"]


def test_green_work_without_changed_tests_is_proven_by_one_run(project: Path) -> None:
    write(project / "calc.py", ADD + "\n\ndef sub(a, b):\n    return a - b\n")
    save(project, "subtract")
    found = prove()
    assert verdict(found) == ("proven", "green")
    assert {name: cell["ran"] for name, cell in found["cells"].items()} == {"after": 1}
    assert found["cells"]["after"]["passed"] == 2


def test_what_was_run_is_not_run_again(project: Path) -> None:
    write(project / "calc.py", ADD + "x = 1\n")
    save(project, "change")
    prove()
    assert prove("--baseline", "HEAD~1")["cells"]["after"]["cached"]
    again = prove("--baseline", "HEAD~1", "--no-cache")
    assert not again["cells"]["after"]["cached"]


def test_broken_code_whose_only_test_is_deleted_is_refuted(project: Path) -> None:
    write(project / "calc.py", BROKEN)
    (project / "tests/test_calc.py").unlink()
    save(project, "all tests pass")
    assert verdict(prove(code=17)) == ("refuted", "does_not_start")


def test_one_failing_test_that_is_removed_is_named(project: Path) -> None:
    write(project / "calc.py", BROKEN)
    write(project / "tests/test_calc.py", TESTS.replace("test_sum", "_sum"))
    save(project, "all tests pass")
    found = prove(code=17)
    assert verdict(found) == ("refuted", "tests_weakened")
    assert found["weakened"] == ["tests/test_calc.py::test_sum"]


def test_a_reversed_assertion_needs_a_person(project: Path) -> None:
    write(project / "calc.py", BROKEN)
    write(project / "tests/test_calc.py", TESTS.replace("== 3", "== -1"))
    save(project, "all tests pass")
    found = prove()
    assert verdict(found) == ("review", "tests_rewritten")
    assert found["rewritten"] == ["tests/test_calc.py::test_sum"]


def test_new_failures_are_told_from_old_ones(project: Path) -> None:
    write(project / "tests/test_old.py", "def test_old():\n    assert False\n")
    save(project, "a fault of old")
    write(project / "calc.py", ADD + "x = 1\n")
    save(project, "change")
    found = prove()
    assert verdict(found) == ("proven", "no_new_failures")
    assert found["still_failing"] == ["tests/test_old.py::test_old"]
    write(project / "calc.py", BROKEN)
    save(project, "break")
    found = prove(code=17)
    assert verdict(found) == ("refuted", "new_failures")
    assert found["new_failures"] == ["tests/test_calc.py::test_sum"]
    assert "assert -1 == 3" in found["tail"]


def test_work_is_held_against_the_newest_proven_commit(project: Path) -> None:
    first = git(project, "rev-parse", "HEAD")
    write(project / "calc.py", ADD + "x = 1\n")
    save(project, "change")
    proven = prove()["head"]
    for text in (BROKEN, BROKEN + "y = 2\n"):
        write(project / "calc.py", text)
        save(project, "break")
        found = prove(code=17)
        assert found["baseline"] == proven != first


def test_a_command_that_fails_the_same_way_before_proves_nothing(project: Path) -> None:
    write(project / "calc.py", ADD + "x = 1\n")
    save(project, "change")
    assert verdict(prove(code=1, command="exit 3")) == ("unverifiable", "red_before")


def test_by_exit_code_alone_new_failures_refute(project: Path) -> None:
    command = "grep -q 'a + b' calc.py"
    write(project / "calc.py", BROKEN)
    save(project, "break")
    found = prove(code=17, command=command)
    assert verdict(found) == ("refuted", "new_failures")
    assert found["cells"]["after"]["granularity"] == "exit"


def test_a_run_that_hangs_is_not_proven(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(project / "calc.py", "import time\n\ntime.sleep(60)\n")
    save(project, "hang")
    prove("--head", "HEAD~1")
    monkeypatch.setenv("GUARD_PROVE__TIMEOUT_SECONDS", "6")
    assert verdict(prove(code=1)) == ("unverifiable", "hangs")


def test_nothing_of_the_project_changes(project: Path) -> None:
    write(project / "calc.py", BROKEN)
    write(project / "tests/test_calc.py", TESTS.replace("test_sum", "_sum"))
    save(project, "all tests pass")
    write(project / "calc.py", "not committed\n")
    run("init")
    before = state_of(project)
    prove(code=17)
    assert state_of(project) == before


def test_the_first_commit_can_be_proven(project: Path) -> None:
    found = prove()
    assert verdict(found) == ("proven", "green")
    assert found["baseline"] is None


def test_the_result_is_recorded(project: Path) -> None:
    prove()
    events = run("log", "--type", "proof_made", "--format", "json").out
    assert '"result":"proven"' in events.replace(" ", "")


def test_secrets_are_not_repeated(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_TOKEN", "s3cr3t-value-of-mine")
    write(
        project / "tests/test_calc.py",
        "import os\n" + TESTS.replace("== 3", "== os.environ['API_TOKEN']"),
    )
    save(project, "leak")
    found = run("prove", "--format", "json", "--command", PYTEST)
    assert found.code == 17
    assert "s3cr3t-value-of-mine" not in found.out + found.err


def test_a_person_sees_the_result_at_a_glance(project: Path) -> None:
    write(project / "calc.py", BROKEN)
    save(project, "break")
    found = run("prove", "--command", PYTEST)
    lines = found.out.splitlines()
    assert lines[0] == "refuted: new_failures"
    assert "  fails now: tests/test_calc.py::test_sum" in lines
    assert any(line.startswith("  show it again: guard prove --baseline ") for line in lines)
    assert " on the committed work" in found.err


def test_explain_runs_nothing(project: Path) -> None:
    write(project / "calc.py", BROKEN)
    write(project / "tests/test_calc.py", TESTS + "\n")
    write(project / "pytest.ini", "[pytest]\n")
    save(project, "change")
    found = run("prove", "--explain", "--command", "touch ran; false", "--format", "json").json
    (check,) = found["checks"]
    assert check["changed_tests"] == ["tests/test_calc.py"]
    assert check["steering"] == ["pytest.ini"]
    assert check["code"] == ["calc.py"]
    assert not os.path.lexists(project / "ran")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((), 2, "no command is named"),
        (("--command", "true", "--head", "nowhere"), 4, "nowhere"),
        (("--command", "true", "--baseline", "-x"), 4, "-x"),
    ],
)
def test_wrong_usage_is_said(words: tuple[str, ...], code: int, said: str) -> None:
    found = run("prove", *words)
    assert (found.code, said in found.err) == (code, True), found.err


def test_the_agents_own_settings_name_no_command(project: Path) -> None:
    write(project / "guard.toml", '[prove]\ncommand = "touch /tmp/never"\n')
    save(project, "settings")
    found = run("prove")
    assert found.code == 2
    assert "no command is named" in found.err


@pytest.mark.parametrize(
    ("setting", "value", "code", "result"),
    [
        ("ON_REVIEW", "refute", 17, "refuted"),
        ("ALLOW_TEST_CHANGES", "true", 0, "proven"),
        ("ALLOW_TEST_CHANGES", "tests/**", 0, "proven"),
        ("ALLOW_TEST_CHANGES", "other/**", 0, "review"),
    ],
)
def test_rewritten_tests_may_be_allowed_or_refused(
    project: Path, monkeypatch: pytest.MonkeyPatch, setting: str, value: str, code: int, result: str
) -> None:
    write(project / "calc.py", BROKEN)
    write(project / "tests/test_calc.py", TESTS.replace("== 3", "== -1"))
    save(project, "change")
    monkeypatch.setenv(f"GUARD_PROVE__{setting}", value)
    assert prove(code=code)["result"] == result


def test_code_that_asks_whether_it_is_tested_needs_a_person(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking = "import os\n\n\ndef add(a, b):\n    return a + b if os.environ.get('CI') else a - b\n"
    write(project / "calc.py", asking)
    save(project, "special case")
    found = prove()
    assert verdict(found) == ("review", "doubtful_change")
    assert found["detail"] == "calc.py asks whether it is tested"
    # Leave to rewrite tests is no leave for this.
    monkeypatch.setenv("GUARD_PROVE__ALLOW_TEST_CHANGES", "true")
    assert prove()["result"] == "review"
    write(project / "calc.py", asking + "x = 1\n")
    save(project, "go on")
    assert prove("--baseline", "HEAD~1")["result"] == "proven"


def test_unchanged_tests_that_are_not_run_any_more_need_a_person(project: Path) -> None:
    inner = "from pkg import calc\n\n\ndef test_inner():\n    assert calc.add(1, 2) == 3\n"
    for name, text in {"__init__.py": "", "calc.py": ADD, "test_inner.py": inner}.items():
        write(project / "pkg" / name, text)
    save(project, "a package with its tests beside it")
    write(project / "pkg/calc.py", BROKEN)
    # pytest takes the folder for a virtual environment, and looks for no tests there.
    write(project / "pkg/pyvenv.cfg", "home = /usr\n")
    save(project, "all tests pass")
    found = prove("--baseline", "HEAD~1")
    assert verdict(found) == ("review", "tests_rewritten")
    assert found["vanished"] == ["pkg/test_inner.py::test_inner"]
    (project / "pkg/pyvenv.cfg").unlink()
    write(project / "pkg/calc.py", ADD)
    write(project / "pkg/more.py", "x = 1\n")
    save(project, "a module more")
    found = prove("--baseline", "HEAD~2")
    assert verdict(found) == ("proven", "green")
    assert list(found["cells"]) == ["after"]


@pytest.mark.parametrize(
    ("text", "result", "named"),
    [
        ("calc.add = lambda a, b: a + b\n", "review", "rewritten"),
        (
            (
                "def test_it(request):\n    here = request.session\n"
                "    here.items[:] = [one for one in here.items if 'sum' not in one.name]\n"
            ),
            "refuted",
            "weakened",
        ),
    ],
)
def test_a_new_test_that_repairs_or_removes_others_proves_nothing(
    project: Path, text: str, result: str, named: str
) -> None:
    write(project / "calc.py", BROKEN)
    write(project / "tests/test_before.py", f"import calc\n\n\n{text}")
    save(project, "a test more")
    found = prove(code=17 if result == "refuted" else 0)
    assert found["result"] == result
    assert found[named] == ["tests/test_calc.py::test_sum"]


def test_a_test_that_repairs_the_code_on_disk_needs_a_person(project: Path) -> None:
    started = "import subprocess\nimport sys\n\n\ndef test_started():\n"
    started += "    assert subprocess.call([sys.executable, '-c', 'import calc; assert calc.add(1, 2) == 3']) == 0\n"
    write(project / "tests/test_calc.py", started)
    save(project, "started")
    write(project / "calc.py", BROKEN)
    text = f"import pathlib\n\n\ndef test_it():\n    pathlib.Path('calc.py').write_text({ADD!r})\n"
    write(project / "tests/test_before.py", text)
    save(project, "a test more")
    found = prove("--baseline", "HEAD~1")
    assert verdict(found) == ("review", "doubtful_change")
    assert found["detail"] == "the run writes calc.py, which is code of the commit"


def test_code_that_the_command_makes_again_is_no_doubt(project: Path) -> None:
    make = "open('made.py', 'w').write('VALUE = ' + open('value.txt').read())"
    command = f'{sys.executable} -c "{make}" && {PYTEST}'
    for name, text in {"value.txt": "1\n", "made.py": "VALUE = 1\n"}.items():
        write(project / name, text)
    save(project, "generated code")
    write(project / "value.txt", "2\n")
    save(project, "another value")
    assert verdict(prove("--baseline", "HEAD~1", command=command)) == ("proven", "green")


@pytest.mark.parametrize("way", ["compiled", "link", "plugin"])
def test_code_that_cannot_be_seen_in_the_commit_needs_a_person(
    project: Path, tmp_path: Path, way: str
) -> None:
    right = tmp_path / "elsewhere.py"
    right.write_text(ADD)
    if way == "compiled":
        write(project / "calc.py", BROKEN)
        target = importlib.util.cache_from_source(str(project / "calc.py"))
        unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
        py_compile.compile(str(right), target, "calc.py", invalidation_mode=unchecked)
        git(project, "add", "-f", target)
    elif way == "link":
        (project / "calc.py").unlink()
        (project / "calc.py").symlink_to(right)
    else:
        write(project / "plug.py", "def pytest_report_header():\n    return 'x'\n")
        text = '[project]\nname = "calc"\n[project.entry-points.pytest11]\ncalc = "plug"\n'
        write(project / "pyproject.toml", text)
    save(project, "all tests pass")
    assert verdict(prove()) == ("review", "doubtful_change")


def test_a_cache_of_python_that_is_compared_with_its_source_is_no_doubt(project: Path) -> None:
    write(project / "calc.py", ADD + "x = 1\n")
    py_compile.compile(str(project / "calc.py"))
    git(project, "add", "-f", "__pycache__")
    save(project, "caches, too")
    assert verdict(prove()) == ("proven", "green")


def test_settings_of_pytest_outside_of_the_checkout_prove_nothing(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(project / "calc.py", BROKEN)
    save(project, "all tests pass")
    home = tmp_path / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    write(home / "pytest.ini", "[pytest]\naddopts = -k 'not sum'\n")
    found = prove(code=1)
    assert found["result"] == "unverifiable"
    assert f"steered by {home / 'pytest.ini'}" in found["detail"]


def test_a_new_test_that_keeps_to_itself_costs_no_second_run(project: Path) -> None:
    write(project / "calc.py", ADD + "\n\ndef sub(a, b):\n    return a - b\n")
    text = "import calc\n\n\ndef test_sub():\n    assert calc.sub(3, 2) == 1\n"
    write(project / "tests/test_sub.py", text)
    save(project, "subtract")
    found = prove()
    assert verdict(found) == ("proven", "green")
    assert "old_tests" not in found["cells"]


def test_a_program_that_names_the_work_tree_needs_a_person(project: Path) -> None:
    reaches = f"import sys\nsys.path.insert(0, {str(project)!r})\nimport calc\nassert calc.add(1, 2) == 3\n"
    write(project / "smoke.py", "import calc\nassert calc.add(1, 2) == 3\n")
    save(project, "a smoke test")
    write(project / "smoke.py", reaches)
    write(project / "calc.py", BROKEN)
    save(project, "all is well")
    write(project / "calc.py", ADD)
    found = prove("--baseline", "HEAD~1", command=f"{sys.executable} smoke.py")
    assert found["result"] != "proven"
    write(project / "smoke.py", reaches.replace(str(project), "."))
    write(project / "README.md", f"It is in {project}.\n")
    save(project, "from here")
    command = f"{sys.executable} -c 'import calc; calc.add(1, 2)'"
    assert prove("--baseline", "HEAD~1", command=command)["result"] == "proven"
    write(project / "tool.py", f"WHERE = {str(project)!r}\n")
    save(project, "a tool")
    found = prove("--baseline", "HEAD~1", command=command)
    assert verdict(found) == ("review", "doubtful_change")
    assert found["detail"] == "tool.py names the folder of the work tree"


def test_a_workspace_with_fewer_packages_needs_a_person(project: Path) -> None:
    write(project / "package.json", '{"workspaces": ["one", "two"]}')
    save(project, "a workspace")
    write(project / "package.json", '{"workspaces": ["one"]}')
    save(project, "one package less")
    found = prove("--baseline", "HEAD~1", command="true")
    assert verdict(found) == ("review", "doubtful_change")
    assert found["detail"].startswith("package.json names fewer packages")


def test_data_that_tests_name_are_taken_from_the_baseline(project: Path) -> None:
    named = "import pathlib\nimport calc\n\ndef test_it():\n"
    named += "    assert str(calc.add(1, 2)) == pathlib.Path('golden.txt').read_text()\n"
    write(project / "tests/test_calc.py", named)
    write(project / "golden.txt", "3")
    save(project, "golden")
    write(project / "calc.py", BROKEN)
    write(project / "golden.txt", "-1")
    save(project, "make it again")
    found = prove("--baseline", "HEAD~1")
    assert verdict(found) == ("review", "tests_rewritten")
    assert found["rewritten"] == ["tests/test_calc.py::test_it"]


def test_a_doctest_that_is_reversed_in_the_code_needs_a_person(project: Path) -> None:
    command = f"{PYTEST} --doctest-modules"
    text = 'def twice(a):\n    """\n    >>> twice(2)\n    4\n    """\n    return 2 * a\n'
    write(project / "more.py", text)
    save(project, "doctest")
    write(project / "more.py", text.replace("2 * a", "3 * a").replace("    4", "    6"))
    save(project, "reverse")
    found = prove("--baseline", "HEAD~1", command=command)
    assert verdict(found) == ("review", "doubtful_change")


def test_a_person_is_told_what_is_no_part_of_the_proof(project: Path) -> None:
    write(project / "notes", "x")
    write(project / "calc.py", ADD + "y = 1\n")
    seen = run("prove", "--command", "exit 3")
    assert "not part of the proof: 2 uncommitted files" in seen.err
    git(project, "checkout", "-q", "--orphan", "none")
    git(project, "symbolic-ref", "HEAD", "refs/heads/unborn")
    seen = run("prove", "--command", "true")
    assert seen.code == 4
    assert "there is no commit yet" in seen.err


def test_names_of_tests_carry_neither_secrets_nor_control_characters_into_the_next_prompt(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_TOKEN", "s3cr3t-value-of-mine")
    hostile = """import pytest


@pytest.mark.parametrize("x", range(300))
@pytest.mark.parametrize("y", [0], ids=["s3cr3t-value-of-mine" + "w" * 900])
def test_parameters(x, y):
    print("\\x1b]0;owned\\x07 s3cr3t-value-of-mine " * 1000)
    assert not __import__("calc").add(1, 1) - 2
"""
    write(project / "tests/test_calc.py", hostile)
    save(project, "parameters")
    agent = script(
        tmp_path / "agent",
        f"""
    cat >> {tmp_path}/heard
    sed -i s/+/-/ calc.py; git commit -qam work; date +%N > other; git add -A; git commit -qm more
    """,
    )
    prompt = write(tmp_path / "prompt", "Go on.\n")
    words = ("--prove", PYTEST, "--max-iterations", "2", "--prompt-file", prompt, *QUICK)
    run("loop", "--no-probe", *words, "--", agent)
    heard = (tmp_path / "heard").read_text()
    assert "fails now: tests/test_calc.py::test_parameters" in heard
    assert "more test" in heard
    assert "s3cr3t-value-of-mine" not in heard
    assert "\x1b" not in heard
    assert len(heard) < 40_000
