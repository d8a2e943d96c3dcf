"""What guard learns of each test from a real pytest, and what it makes of one that was tampered with."""

import pytest

from guard.core.prove.outcome import CellRun
from tests.support import write
from tests.support.checks import PYTEST, Checkout

ALL = """
import unittest
import pytest
def test_ok(): pass
def test_wrong(): assert 1 == 2
def test_not_raised():
    with pytest.raises(ValueError): pass
def test_broken(): raise ValueError("broken")
def test_signature(): (lambda: 1)(3)
def test_import(): import nowhere_at_all
def test_attribute():
    import json
    json.nowhere_at_all
def test_fixture(no_such_fixture): pass
@pytest.mark.skip
def test_skip(): pass
@pytest.mark.xfail
def test_expected(): assert 0
@pytest.mark.xfail(strict=True)
def test_unexpected(): pass
@pytest.fixture
def late():
    yield
    assert 0, "late"
def test_teardown(late): pass
class TestOld(unittest.TestCase):
    def test_wrong(self): self.assertEqual(1, 2)
    @unittest.skip("no")
    def test_skip(self): pass
    @unittest.expectedFailure
    def test_expected(self): self.fail()
"""
EXPECTED = {
    "test_ok": ("passed", ""),
    "test_wrong": ("failed", "assertion"),
    "test_not_raised": ("failed", "assertion"),
    "test_broken": ("failed", "error"),
    "test_signature": ("failed", "cannot_run"),
    "test_import": ("failed", "cannot_run"),
    "test_attribute": ("failed", "cannot_run"),
    "test_fixture": ("failed", "cannot_run"),
    "test_skip": ("skipped", ""),
    "test_expected": ("skipped", ""),
    "test_unexpected": ("failed", "assertion"),
    "test_teardown": ("failed", "assertion"),
    "TestOld::test_wrong": ("failed", "assertion"),
    "TestOld::test_skip": ("skipped", ""),
    "TestOld::test_expected": ("skipped", ""),
}
THREE = "def test_a(): pass\ndef test_b(): pass\ndef test_c(): pass\n"
RED = "def test_a(): assert 0\ndef test_b(): pass\ndef test_c(): pass\n"
ITEMS = "def pytest_collection_modifyitems(items):\n    "


@pytest.mark.parametrize("words", ["", "-n 2"], ids=["one process", "workers"])
def test_each_test_is_known_by_what_ended_it(checkout: Checkout, words: str) -> None:
    ran = checkout.run(f"{PYTEST} {words} -W error", {"tests/test_all.py": ALL})
    found = {name: (test.state, test.fault) for name, test in ran.tests.items()}
    assert found == {f"tests/test_all.py::{name}": what for name, what in EXPECTED.items()}
    assert (ran.exit_code, ran.granularity, ran.tampered) == (1, "tests", None)
    assert {test.file for test in ran.tests.values()} == {"tests/test_all.py"}
    assert "ValueError: broken" in ran.tests["tests/test_all.py::test_broken"].text


PRODUCT = """
import functools
class Thing:
    def __init__(self, name=""): self.name = name
    def broken(self): return self.nowhere
    def calls(self): return broken_call(1, 2)
def broken_call(): pass
def nothing(): return None
def names(): return unknown_name
def loads(): import nowhere_at_all
def wrap(function):
    @functools.wraps(function)
    def call(*args, **words): return function(*args, **words)
    return call
@wrap
def wrapped(): pass
"""
FAULTS = {
    "app.nowhere": "cannot_run",
    "from app import nowhere": "cannot_run",
    "import app.nowhere": "cannot_run",
    "nowhere()": "cannot_run",
    "app.Thing.nowhere": "cannot_run",
    "app.Thing().nowhere()": "cannot_run",
    "app.nothing(3)": "cannot_run",
    "app.nothing(a=3)": "cannot_run",
    "app.Thing(1, 2, 3)": "cannot_run",
    "app.wrapped(3)": "cannot_run",
    "monkeypatch.setattr(app, 'nowhere', 1)": "cannot_run",
    "monkeypatch.setattr('app.nowhere', 1)": "cannot_run",
    "mock.patch('app.nowhere').start()": "cannot_run",
    "import app_without_dependency": "cannot_run",
    "request.getfixturevalue('nowhere')": "cannot_run",
    "app.nothing().name": "error",
    "app.nothing() + 1": "error",
    "len(app.nothing())": "error",
    "app.Thing().broken()": "error",
    "app.Thing().calls()": "error",
    "app.names()": "error",
    "app.loads()": "error",
    "raise KeyError('a')": "error",
    "import app_that_raises": "error",
    "assert app.nothing()": "assertion",
    "pytest.fail('no')": "assertion",
    "app.wrapped(); raise AssertionError": "assertion",
}


@pytest.mark.parametrize("words", ["", "-n 2"], ids=["one process", "workers"])
def test_a_test_of_what_the_code_does_not_have_could_not_run(
    checkout: Checkout, words: str
) -> None:
    lines = ["from unittest import mock", "import pytest, app"]
    for number, body in enumerate(FAULTS):
        lines.append(f"def test_{number}(monkeypatch, request): {body}")
        lines.append(f"@pytest.fixture\ndef f{number}(monkeypatch, request): {body}")
        lines.append(f"def test_setup_{number}(f{number}): pass")
    files = {
        "test_all.py": "\n".join(lines),
        "app.py": PRODUCT,
        "app_without_dependency.py": "import nowhere_at_all\n",
        "app_that_raises.py": "raise ValueError\n",
    }
    ran = checkout.run(f"{PYTEST} {words}", files)
    for number, (body, kind) in enumerate(FAULTS.items()):
        for name in (f"test_{number}", f"test_setup_{number}"):
            assert (body, ran.tests[f"test_all.py::{name}"].fault) == (body, kind)


@pytest.mark.parametrize("words", ["", "-n 2"], ids=["one process", "workers"])
def test_what_did_not_run_is_named_with_its_reason(checkout: Checkout, words: str) -> None:
    test = (
        "import pytest\ndef test_a(): pass\n"
        "@pytest.mark.skip(reason='too slow')\ndef test_skip(): pass\n"
        "@pytest.mark.xfail(reason='bug 7')\ndef test_xfail(): assert 0\n"
        "def test_inside(): pytest.skip('not here')\n"
        "@pytest.mark.parametrize('a', [1, 2])\ndef test_left_out(a): pass\n"
    )
    ran = checkout.run(f"{PYTEST} {words} -k 'not left_out'", {"test_x.py": test})
    assert {name.partition("::")[2]: test.text for name, test in ran.tests.items()} == {
        "test_a": "",
        "test_skip": "Skipped: too slow",
        "test_xfail": "xfail: bug 7",
        "test_inside": "Skipped: not here",
    }
    assert ran.deselected == ("test_x.py::test_left_out[1]", "test_x.py::test_left_out[2]")
    assert ran.is_green


def test_files_that_guard_leaves_out_are_not_called_deselected(checkout: Checkout) -> None:
    files = {"test_x.py": THREE, "test_y.py": THREE}
    ran = checkout.run(PYTEST, files, select=frozenset({"test_x.py"}))
    assert (len(ran.passed), ran.deselected) == (3, ())


def test_a_session_that_a_hook_stops_is_not_whole(checkout: Checkout) -> None:
    stop = "def pytest_runtest_logfinish(): SESSION.shouldstop = 'enough'\n"
    start = "def pytest_sessionstart(session):\n    global SESSION\n    SESSION = session\n"
    ran = checkout.run(PYTEST, {"test_x.py": RED, "conftest.py": start + stop})
    assert (ran.is_whole, list(ran.tests)) == (False, ["test_x.py::test_a"])
    assert "stopped" in (ran.detail or "")


def test_a_command_may_have_options_for_pytest_in_the_environment(checkout: Checkout) -> None:
    ran = checkout.run(f"PYTEST_ADDOPTS=-qq {PYTEST}", {"test_x.py": THREE})
    assert (len(ran.passed), ran.is_green) == (3, True), ran.tail


def test_a_file_that_cannot_be_loaded_is_named(checkout: Checkout) -> None:
    files = {"tests/test_a.py": THREE, "tests/test_b.py": "import nowhere_at_all\n"}
    ran = checkout.run(f"{PYTEST} --continue-on-collection-errors", files)
    assert ran.uncollected == ("tests/test_b.py",)
    assert len(ran.passed) == 3
    assert not ran.is_green


# As pytest-forked does it.
FORKED = """
import pickle, os, tempfile
from _pytest.runner import runtestprotocol
import pytest
@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item):
    path = tempfile.mktemp()
    if not (pid := os.fork()):
        with open(path, "wb") as file:
            pickle.dump([r._to_json() for r in runtestprotocol(item, log=False)], file)
        os._exit(0)
    os.waitpid(pid, 0)
    with open(path, "rb") as file:
        for found in pickle.load(file):
            item.ihook.pytest_runtest_logreport(report=pytest.TestReport._from_json(found))
    return True
"""
# As pytest-rerunfailures does it.
AGAIN = """
from _pytest.runner import runtestprotocol
import pytest
def pytest_runtest_protocol(item, nextitem):
    for last in (False, True):
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        is_red = any(report.failed for report in reports)
        for report in reports:
            if report.failed and not last:
                report.outcome = "rerun"
            item.ihook.pytest_runtest_logreport(report=report)
        if not is_red:
            break
    return True
"""
HONEST = {
    "a test is chosen by name": ("-k test_a", {"test_x.py": THREE}, 0, 1),
    "none is chosen": ("-k nothing", {"test_x.py": THREE}, 5, 0),
    "none is chosen by workers": ("-n 2 -k nothing", {"test_x.py": THREE}, 5, 0),
    "there is none": ("", {"a.py": ""}, 5, 0),
    "it would stop at the first failure": ("-x", {"test_x.py": RED}, 1, 2),
    "it would stop at a failure": ("-x", {"test_x.py": THREE}, 0, 3),
    "workers would stop at a failure": ("-n 2 -x", {"test_x.py": THREE}, 0, 3),
    "workers would stop at the first failure": ("-n 1 --maxfail=1", {"test_x.py": RED}, 1, 2),
    "it would step": ("--stepwise", {"test_x.py": RED}, 1, 2),
    "the settings would stop it": (
        "",
        {"test_x.py": RED, "pytest.ini": "[pytest]\naddopts = -qq --exitfirst --tb=no\n"},
        1,
        2,
    ),
    "only what failed last would run": (
        "--lf",
        {"test_x.py": THREE, ".pytest_cache/v/cache/lastfailed": '{"test_x.py::test_b": true}'},
        0,
        3,
    ),
    "each test runs in a process of its own": (
        "-p forked",
        {"test_x.py": RED, "forked.py": FORKED},
        1,
        2,
    ),
    "failed tests run again": ("-p again", {"test_x.py": RED, "again.py": AGAIN}, 1, 2),
    "only names are listed": ("--collect-only", {"test_x.py": THREE}, 0, 0),
    "a worker crashes": (
        "-n 2",
        {"test_x.py": f"{THREE}import os\ndef test_d(): os._exit(0)\n"},
        1,
        3,
    ),
    "everything is strict": (
        "--strict-config --strict-markers -W error",
        {"test_x.py": THREE},
        0,
        3,
    ),
    "items are left out": (
        "",
        {"test_x.py": THREE, "conftest.py": f"{ITEMS}items[:] = items[:1]\n"},
        0,
        1,
    ),
    "items are left out last of all": (
        "",
        {
            "test_x.py": THREE,
            "conftest.py": "import pytest\n@pytest.hookimpl(hookwrapper=True, tryfirst=True)\n"
            f"{ITEMS}yield\n    items[:] = items[:1]\n",
        },
        0,
        1,
    ),
    "strangers are skipped": (
        "",
        {
            "test_x.py": THREE,
            "conftest.py": "import pytest\ndef pytest_runtest_setup(item):\n"
            "    if 'test_x' not in item.nodeid: pytest.skip('stranger')\n",
        },
        0,
        3,
    ),
    "strangers are refused": (
        "",
        {
            "test_x.py": THREE,
            "conftest.py": "def pytest_runtest_setup(item):\n    assert 'test_x' in item.nodeid\n",
        },
        0,
        3,
    ),
    "all that was collected is looked at": (
        "",
        {
            "test_x.py": THREE,
            "conftest.py": "def pytest_collection_finish(session):\n"
            "    assert all('test_x' in item.nodeid for item in session.items)\n",
        },
        0,
        3,
    ),
    "a fixture everywhere fails": (
        "",
        {
            "test_x.py": THREE,
            "conftest.py": "import pytest\n@pytest.fixture(autouse=True)\ndef x(): raise ValueError\n",
        },
        1,
        0,
    ),
    "tests have other names": (
        "",
        {
            "check_x.py": "def it_works(): pass\n",
            "pytest.ini": "[pytest]\npython_functions=it_*\npython_files=check_*.py\n",
        },
        0,
        1,
    ),
    "the process ends at the end of the session": (
        "",
        {
            "test_x.py": THREE,
            "conftest.py": "import os\ndef pytest_sessionfinish(exitstatus): os._exit(exitstatus)\n",
        },
        0,
        3,
    ),
}


@pytest.mark.parametrize(("words", "files", "code", "passed"), HONEST.values(), ids=HONEST)
def test_an_honest_run_is_not_called_tampered(
    checkout: Checkout, words: str, files: dict[str, str], code: int, passed: int
) -> None:
    ran = checkout.run(f"{PYTEST} {words}", files)
    assert (ran.tampered, ran.exit_code, len(ran.passed)) == (None, code, passed), ran.tail
    assert ran.is_green == (code == 0 and passed > 0)


HOOKS = "import os, sys, pytest\n"
TAMPERED = {
    "reports are turned into successes": HOOKS
    + "@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_makereport(item, call):\n"
    "    found = (yield).get_result()\n    found.outcome, found.longrepr = 'passed', None\n",
    "failures are turned into skips": HOOKS
    + "@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_makereport(item, call):\n"
    "    found = (yield).get_result()\n"
    "    if found.failed: found.outcome, found.wasxfail = 'skipped', 'later'\n",
    "exceptions are taken away": HOOKS
    + "@pytest.hookimpl(tryfirst=True)\ndef pytest_runtest_makereport(item, call):\n    call.excinfo = None\n",
    "tests are not called": HOOKS + "def pytest_pyfunc_call(pyfuncitem): return True\n",
    "the loop reports what it did not run": HOOKS
    + "from _pytest.reports import TestReport\ndef pytest_runtestloop(session):\n"
    "    for item in session.items:\n        for when in ('setup', 'call', 'teardown'):\n"
    "            session.config.hook.pytest_runtest_logreport(report=TestReport(\n"
    "                item.nodeid, item.location, {}, 'passed', None, when))\n    return True\n",
    "items vanish after the collection": HOOKS
    + "@pytest.hookimpl(tryfirst=True)\ndef pytest_runtestloop(session): del session.items[1:]\n",
}


@pytest.mark.parametrize("conftest", TAMPERED.values(), ids=TAMPERED)
def test_a_runner_that_reports_the_canaries_wrong_is_tampered_with(
    checkout: Checkout, conftest: str
) -> None:
    ran = checkout.run(
        PYTEST, {"test_x.py": "def test_ok(): pass\n" + RED, "conftest.py": conftest}
    )
    assert ran.exit_code == 0
    assert ran.tampered


NOT_GREEN = {
    "the process ends early": (f"{PYTEST}", HOOKS + "def pytest_runtest_setup(): os._exit(0)\n"),
    "the process ends before the collection": (f"{PYTEST}", HOOKS + "os._exit(0)\n"),
    "the session is told to stop": (
        PYTEST,
        HOOKS + "def pytest_runtest_teardown(): pytest.exit('enough', returncode=0)\n",
    ),
    "the exit code is changed": (
        PYTEST,
        HOOKS + "def pytest_sessionfinish(session): session.exitstatus = 0\n",
    ),
    "one report is changed": (
        PYTEST,
        HOOKS + "@pytest.hookimpl(tryfirst=True)\ndef pytest_runtest_logreport(report):\n"
        "    if 'test_a' in report.nodeid: report.outcome = 'passed'\n",
    ),
    "one report is changed where it is made": (
        PYTEST,
        HOOKS + "@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_makereport(item, call):\n"
        "    found = (yield).get_result()\n"
        "    if 'test_a' in item.nodeid: found.outcome = 'passed'\n",
    ),
    "nothing is collected": (PYTEST, HOOKS + f"{ITEMS}items.clear()\n"),
    "the failure is swallowed by the shell": (f"{PYTEST} || true", ""),
    "pytest is replaced": (f"{PYTEST}; exit 0", HOOKS + "sys.exit(0)\n"),
}


@pytest.mark.parametrize(("command", "conftest"), NOT_GREEN.values(), ids=NOT_GREEN)
def test_a_run_that_only_looks_green_is_not(
    checkout: Checkout, command: str, conftest: str
) -> None:
    ran = checkout.run(command, {"test_x.py": RED, "conftest.py": conftest})
    assert not ran.is_green or ran.tampered, ran.tail


def test_only_selected_files_are_loaded(checkout: Checkout) -> None:
    files = {
        "tests/conftest.py": "import pytest\n@pytest.fixture\ndef one(): return 1\n",
        "tests/test_a.py": "def test_a(one): assert one == 1\n",
        "tests/test_b.py": "raise SystemExit('not to be loaded')\n",
    }
    select = frozenset({"tests/test_a.py"})
    for words in ("", "tests/test_b.py tests/test_a.py"):
        ran = checkout.run(f"{PYTEST} {words}", files, select=select)
        assert list(ran.tests) == ["tests/test_a.py::test_a"]
        assert ran.is_green


def test_a_failure_at_the_end_of_the_session_belongs_to_the_last_test(checkout: Checkout) -> None:
    late = "@pytest.fixture(autouse=True, scope='session')\ndef x():\n    yield\n    raise ValueError('late')\n"
    ran = checkout.run(PYTEST, {"test_x.py": THREE, "conftest.py": f"import pytest\n{late}"})
    assert list(ran.failed) == ["test_x.py::test_c"]
    assert (ran.exit_code, ran.tampered) == (1, None)


def test_a_pytest_that_a_test_starts_is_not_this_run(checkout: Checkout) -> None:
    inner = (
        "import subprocess, sys\ndef test_inner(tmp_path):\n"
        "    (tmp_path / 'test_i.py').write_text('def test_f(): assert 0')\n"
        "    words = [sys.executable, '-m', 'pytest', '-p', 'no:cacheprovider', str(tmp_path)]\n"
        "    assert subprocess.run(words).returncode == 1\n"
    )
    ran = checkout.run(PYTEST, {"test_x.py": inner})
    assert list(ran.tests) == ["test_x.py::test_inner"]
    assert ran.is_green


@pytest.mark.parametrize(
    ("command", "files"),
    [
        (f"cd sub && {PYTEST}", {"sub/pytest.ini": "[pytest]\n", "sub/test_x.py": THREE}),
        (f"{PYTEST} sub && {PYTEST} other", {"sub/test_x.py": THREE, "other/test_y.py": THREE}),
        ("make check", {"Makefile": f"check:\n\t{PYTEST}\n", "sub/test_x.py": THREE}),
    ],
    ids=["in a folder", "twice", "by make"],
)
def test_tests_are_named_from_the_root_of_the_checkout(
    checkout: Checkout, command: str, files: dict[str, str]
) -> None:
    ran = checkout.run(command, files)
    assert ran.is_green, ran.tail
    assert "sub/test_x.py::test_a" in ran.tests


def test_code_of_the_work_tree_is_named(checkout: Checkout) -> None:
    write(checkout.project / "src" / "mine.py", "VALUE = 1\n")
    write(checkout.project / ".venv" / "pyvenv.cfg", "")
    write(checkout.project / ".venv" / "lib" / "other.py", "VALUE = 1\n")
    paths = [str(checkout.project / "src"), str(checkout.project / ".venv" / "lib")]
    test = f"import sys\nsys.path[:0] = {paths}\nimport mine, other\ndef test_a(): pass\n"
    ran = checkout.run(PYTEST, {"test_x.py": test})
    assert ran.foreign_code == ("src/mine.py",)


def test_a_python_that_ignores_its_environment_counts_by_exit_code(checkout: Checkout) -> None:
    command = PYTEST.replace(" -m ", " -I -m ")
    ran: CellRun = checkout.run(command, {"test_x.py": THREE})
    assert (ran.granularity, ran.exit_code) == ("exit", 0), ran.tail


PATCHES = {
    "assertions of unittest": "unittest.TestCase.assertEqual = lambda self, *given: None",
    "assertions of mocks": "mock.Mock.assert_called_with = lambda self, *given: None",
    "what is expected to be raised": "pytest.raises = lambda *given: contextlib.suppress(Exception)",
    "how tests are run": "_pytest.python.Function.runtest = lambda self, real=_pytest.python.Function.runtest: real(self)",
}


@pytest.mark.parametrize("patch", PATCHES.values(), ids=PATCHES)
def test_code_that_changes_the_runner_is_named(checkout: Checkout, patch: str) -> None:
    imports = (
        "import contextlib, unittest\nfrom unittest import mock\nimport _pytest.python, pytest\n"
    )
    files = {"test_x.py": "import app\ndef test_ok(): pass\n", "app.py": imports + patch}
    ran = checkout.run(PYTEST, files)
    assert ran.patched is not None
    assert ran.patched.startswith("app.py replaces "), ran.patched
    # What the tests do to the runner is found by trying the tests of the baseline.
    files = {"test_x.py": "def test_ok(): pass\n", "conftest.py": imports + patch}
    assert checkout.run(PYTEST, files).patched is None


def test_an_installed_copy_that_differs_is_foreign_code(checkout: Checkout) -> None:
    packages = checkout.project.parent / "env/lib/python3/site-packages"
    files = {
        "test_x.py": "import app\ndef test_ok(): pass\n",
        "src/app/__init__.py": "x = 1\n",
        "pytest.ini": f"[pytest]\npythonpath = {packages}\n",
    }
    write(packages / "app/__init__.py", "x = 1\n")
    assert checkout.run(PYTEST, files).foreign_code == ()
    write(packages / "app/__init__.py", "x = 2\n")
    (found,) = checkout.run(PYTEST, files).foreign_code
    assert found.endswith("site-packages/app/__init__.py")


@pytest.mark.parametrize("path", ["src", '"src"', "$PWD/src:."])
def test_a_command_that_sets_pythonpath_says_what_each_test_did(
    checkout: Checkout, path: str
) -> None:
    files = {"src/calc.py": "", "tests/test_it.py": "import calc\n" + RED}
    run = checkout.run(f"PYTHONPATH={path} {PYTEST}", files)
    assert run.granularity == "tests"
    assert sorted(run.failed) == ["tests/test_it.py::test_a"]
    assert len(run.passed) == 2


def test_a_recipe_that_sets_pythonpath_counts_by_its_exit_code(checkout: Checkout) -> None:
    files = {
        "src/calc.py": "",
        "Makefile": f"test:\n\tPYTHONPATH=src {PYTEST}\n",
        "tests/test_it.py": "import calc\n" + THREE,
    }
    green = checkout.run("make test", files)
    assert (green.granularity, green.exit_code, green.is_green) == ("exit", 0, True)
    red = checkout.run("make test", {"tests/test_it.py": "import calc\n" + RED})
    assert (red.granularity, red.is_green) == ("exit", False)
