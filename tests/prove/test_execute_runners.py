"""What guard learns of each test from runners other than pytest: unittest, node, go and cargo, each as it is."""

import os
import pwd
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from guard.core.prove.outcome import CellRun
from tests.support import write
from tests.support.checks import PYTEST, Checkout

UNITTEST = f"{sys.executable} -m unittest"
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="there is no node")
needs_go = pytest.mark.skipif(shutil.which("go") is None, reason="there is no go")
RUST = {"RUSTUP_HOME": str(Path(pwd.getpwuid(os.getuid()).pw_dir) / ".rustup")}

CASES = """
import unittest
import app
class TestA(unittest.TestCase):
    def test_ok(self): self.assertEqual(app.one(), 1)
    def test_wrong(self): self.assertEqual(app.one(), 2)
    def test_gone(self): app.nowhere()
    def test_signature(self): app.one(1)
    def test_broken(self): app.broken()
    @unittest.skip("too slow")
    def test_skip(self): pass
    @unittest.expectedFailure
    def test_expected(self): self.fail()
    @unittest.expectedFailure
    def test_unexpected(self): pass
    def test_parts(self):
        for n in range(3):
            with self.subTest(n=n): self.assertLess(n, 2)
    def test_exit(self): raise SystemExit(0)
class TestB(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise ValueError("no service")
    def test_never(self): pass
"""
APP = "def one(): return 1\ndef broken(): return one().nowhere\n"
EXPECTED = {
    "TestA::test_ok": ("passed", ""),
    "TestA::test_wrong": ("failed", "assertion"),
    "TestA::test_gone": ("failed", "cannot_run"),
    "TestA::test_signature": ("failed", "cannot_run"),
    "TestA::test_broken": ("failed", "error"),
    "TestA::test_skip": ("skipped", ""),
    "TestA::test_expected": ("skipped", ""),
    "TestA::test_unexpected": ("failed", "assertion"),
    "TestA::test_parts": ("failed", "assertion"),
    "TestA::test_exit": ("failed", "error"),
    "setUpClass (tests.test_a.TestB)": ("failed", "error"),
}
OK_CASE = (
    "import unittest\nclass TestA(unittest.TestCase):\n    def test_ok(self): self.assertTrue(1)\n"
)


def states(ran: CellRun) -> dict[str, str]:
    return {name: test.state for name, test in ran.tests.items()}


@pytest.mark.parametrize(
    "command",
    [UNITTEST, f"{UNITTEST} -f", f"{UNITTEST} discover -v", f"cd . && {UNITTEST} tests.test_a"],
)
def test_each_test_of_unittest_is_known(checkout: Checkout, command: str) -> None:
    files = {"tests/__init__.py": "", "tests/test_a.py": CASES, "app.py": APP}
    ran = checkout.run(command, files)
    found = {name: (test.state, test.fault) for name, test in ran.tests.items()}
    assert found == {f"tests/test_a.py::{name}": what for name, what in EXPECTED.items()}
    assert (ran.exit_code, ran.granularity, ran.tampered, ran.detail) == (1, "tests", None, None)
    assert ran.tests["tests/test_a.py::TestA::test_skip"].text == "too slow"
    for test in ran.failed.values():
        assert "unittest/case.py" not in test.text
        assert str(checkout.folder) not in test.text + ran.tail
    assert {test.file for test in ran.tests.values()} == {"tests/test_a.py"}


def test_a_green_unittest_is_green_and_may_be_selected(checkout: Checkout) -> None:
    files = {"test_a.py": OK_CASE, "test_b.py": OK_CASE, "test_c.py": "import nowhere_at_all\n"}
    ran = checkout.run(UNITTEST, files, select=frozenset({"test_a.py"}))
    assert (states(ran), ran.is_green) == ({"test_a.py::TestA::test_ok": "passed"}, True), ran.tail
    ran = checkout.run(UNITTEST)
    assert (ran.uncollected, len(ran.passed), ran.is_green) == (("test_c.py",), 2, False)


HOSTILE_CASES = {
    "the process ends": "import os; os._exit(0)",
    "the process ends in a test": "import os\nclass T(unittest.TestCase):\n    def test_x(self): os._exit(0)",
    "tests are not called": "unittest.TestCase.run = lambda self, result=None: result.addSuccess(self)",
    "assertions hold": "unittest.TestCase.assertEqual = lambda *_: None",
    "suites are empty": "unittest.TestSuite.run = lambda self, result, debug=False: result",
    "there are no tests": "unittest.TestCase.__test__ = False; del TestA",
}


@pytest.mark.parametrize("code", HOSTILE_CASES.values(), ids=HOSTILE_CASES)
def test_a_unittest_that_only_looks_green_is_not(checkout: Checkout, code: str) -> None:
    ran = checkout.run(f"{UNITTEST} || true", {"test_a.py": f"{OK_CASE}\n{code}\n"})
    assert ran.exit_code == 0
    assert not ran.is_green or ran.tampered, ran.tail


NODE_TESTS = {
    "test/a.test.js": """
const {test, describe, it} = require('node:test');
const assert = require('node:assert');
const app = require('../app');
test('ok', () => {});
test('wrong', () => assert.strictEqual(app.one(), 2));
test('gone', () => app.nowhere());
test('broken', () => app.broken());
test('twice', () => {});
test('twice', () => { throw new Error('second') });
test('later', {todo: 'bug 7'}, () => assert.fail());
describe('suite', () => {
  it('inside', () => {});
  it('left out', {skip: 'too slow'}, () => {});
  describe('deep', () => { it('inside', () => assert.ok(false)); });
});
""",
    "test/b.test.js": "require('./nowhere');\n",
    "test/c.test.mjs": "import {nowhere} from '../app.mjs';\n",
    "test/d.test.js": "require('node:assert').ok(true);\n",
    "test/e.test.js": "require('node:assert').ok(false);\n",
    "app.js": "exports.one = () => 1;\nexports.broken = () => exports.nowhere();\n",
    "app.mjs": "export const one = 1;\n",
}


@needs_node
@pytest.mark.parametrize(
    "command",
    ["node --test test/", "npm test", "node --test --test-reporter=tap test/"],
)
def test_each_test_of_node_is_known(checkout: Checkout, command: str) -> None:
    package = '{"scripts": {"test": "node --test test/"}}'
    ran = checkout.run(command, {**NODE_TESTS, "package.json": package})
    assert {name: (test.state, test.fault) for name, test in ran.tests.items()} == {
        "test/a.test.js::ok": ("passed", ""),
        "test/a.test.js::wrong": ("failed", "assertion"),
        "test/a.test.js::gone": ("failed", "cannot_run"),
        "test/a.test.js::broken": ("failed", "error"),
        "test/a.test.js::twice": ("passed", ""),
        "test/a.test.js::twice (2)": ("failed", "error"),
        "test/a.test.js::later": ("skipped", ""),
        "test/a.test.js::suite > inside": ("passed", ""),
        "test/a.test.js::suite > left out": ("skipped", ""),
        "test/a.test.js::suite > deep > inside": ("failed", "assertion"),
        "test/d.test.js": ("passed", ""),
        "test/e.test.js": ("failed", "assertion"),
    }, ran.tail
    assert set(ran.uncollected) == {"test/b.test.js", "test/c.test.mjs"}
    assert (ran.exit_code, ran.tampered, ran.detail) == (1, None, None)
    assert ran.tests["test/a.test.js::suite > left out"].text == "too slow"
    assert "second" in ran.tests["test/a.test.js::twice (2)"].text


NODE_RED = "const {test} = require('node:test'); const assert = require('node:assert');\n"
HOSTILE_NODE = {
    "a file ends its process": f"process.exit(0);\n{NODE_RED}test('a', () => assert.ok(false));\n",
    "a file ends its process for good": f"process.reallyExit(0);\n{NODE_RED}test('a', () => assert.ok(false));\n",
    "a test ends its process": f"{NODE_RED}test('b', () => process.exit(0)); test('a', () => assert.ok(false));\n",
    "assertions hold": f"{NODE_RED}assert.ok = () => {{}}; test('a', () => assert.ok(false));\n",
    "tests are not called": f"{NODE_RED}test.node = require('node:test');\n"
    "test.node.test = () => {}; test.node.test('a', () => assert.ok(false));\n",
}


@needs_node
@pytest.mark.parametrize("code", HOSTILE_NODE.values(), ids=HOSTILE_NODE)
def test_a_node_that_only_looks_green_is_not(checkout: Checkout, code: str) -> None:
    ok = "const {test} = require('node:test'); test('ok', () => {});\n"
    ran = checkout.run("node --test", {"test/a.test.js": code, "test/b.test.js": ok})
    assert not ran.is_green or ran.tampered, ran.tail
    assert ran.tests["test/b.test.js::ok"].state == "passed"


@needs_node
def test_a_script_that_has_a_reporter_of_its_own_is_heard(checkout: Checkout) -> None:
    files = {
        "package.json": '{"scripts": {"test": "node --test --test-reporter=spec"}}',
        "test/a.test.js": "require('node:test')('works', () => {});\n",
    }
    run = checkout.run("npm test", files)
    assert (run.exit_code, list(run.passed)) == (0, ["test/a.test.js::works"])


@needs_node
def test_a_green_node_is_green_and_code_of_the_work_tree_is_named(checkout: Checkout) -> None:
    write(checkout.project / "mine.js", "exports.one = 1;\n")
    ok = "const {test} = require('node:test'); test('ok', () => {});\n"
    inner = (
        "test('inner', () => { require('node:child_process').execFileSync(process.execPath, "
        "['--test', 'other/x.js'], {env: {...process.env, NODE_TEST_CONTEXT: undefined}}) });\n"
    )
    files = {"test/a.test.js": ok, "test/b.test.js": ok + inner, "other/x.js": ok}
    ran = checkout.run("node --test test/", files)
    assert (len(ran.tests), ran.is_green, ran.foreign_code) == (3, True, ()), ran.tail
    mine = f"require({str(checkout.project / 'mine.js')!r});\n"
    ran = checkout.run("node --test test/", {"test/a.test.js": ok + mine})
    assert ran.foreign_code == ("mine.js",)


def test_several_runners_of_one_command_are_heard(checkout: Checkout) -> None:
    files = {"tests/test_p.py": "def test_p(): pass\n", "unit/test_a.py": OK_CASE}
    both = f"{PYTEST} tests && {UNITTEST} discover unit"
    ran = checkout.run(both, files)
    assert states(ran) == {
        "tests/test_p.py::test_p": "passed",
        "unit/test_a.py::TestA::test_ok": "passed",
    }
    assert ran.is_green
    # The second never runs, and nothing says why.
    ran = checkout.run(f"{PYTEST} tests; exit 0; {UNITTEST} discover unit")
    assert (ran.exit_code, ran.is_green) == (0, False)
    assert "unittest wrote no report" in (ran.detail or "")


GO: Mapping[str, str] = {
    "go.mod": "module example.com/calc\n\ngo 1.19\n",
    "calc.go": "package calc\n\nfunc Add(a, b int) int { return a + b }\n",
    "calc_test.go": """package calc

import "testing"

func TestOk(t *testing.T)   { if Add(1, 2) != 3 { t.Fatal("no") } }
func TestBad(t *testing.T)  { t.Errorf("it is %d", Add(1, 1)) }
func TestSkip(t *testing.T) { t.Skip("too slow") }
func TestSub(t *testing.T)  { t.Run("one", func(t *testing.T) {}) }
""",
    "sub/sub.go": "package sub\n",
    "sub/sub_test.go": 'package sub\n\nimport "testing"\n\nfunc TestGone(t *testing.T) { Nowhere() }\n',
    "pan/pan_test.go": 'package pan\n\nimport "testing"\n\nfunc TestPanic(t *testing.T) { panic("oh") }\n',
    "none/none.go": "package none\n",
}
GO_TEST = "GOFLAGS=-mod=mod GOTOOLCHAIN=local go test ./..."


@needs_go
def test_each_test_of_go_is_known(checkout: Checkout) -> None:
    ran = checkout.run(GO_TEST, GO)
    assert {name: (test.state, test.fault) for name, test in ran.tests.items()} == {
        ".::TestOk": ("passed", ""),
        ".::TestBad": ("failed", "assertion"),
        ".::TestSkip": ("skipped", ""),
        ".::TestSub": ("passed", ""),
        ".::TestSub/one": ("passed", ""),
        "pan::TestPanic": ("failed", "error"),
    }, ran.tail
    assert ran.uncollected == ("sub",)
    assert (ran.granularity, ran.exit_code != 0, ran.is_green) == ("tests", True, False)
    assert "it is 2" in ran.tests[".::TestBad"].text
    # A person reads the lines, not the JSON.
    assert "--- FAIL: TestBad" in ran.tail
    assert '"Action"' not in ran.tail
    chosen = checkout.run(GO_TEST, select=frozenset({"pan/pan_test.go"}))
    assert list(chosen.tests) == ["pan::TestPanic"]


@needs_go
def test_a_go_package_that_ends_before_its_tests_is_not_green(checkout: Checkout) -> None:
    files = {
        "go.mod": GO["go.mod"],
        "calc.go": 'package calc\n\nimport "os"\n\nfunc init() { os.Exit(0) }\n',
        "calc_test.go": 'package calc\n\nimport "testing"\n\nfunc TestA(t *testing.T) { t.Fatal() }\n',
        "ok/ok_test.go": 'package ok\n\nimport "testing"\n\nfunc TestA(t *testing.T) {}\n',
    }
    ran = checkout.run(GO_TEST, files)
    assert (ran.exit_code, len(ran.passed), ran.is_green) == (0, 1, False)
    assert "before its tests" in (ran.detail or "")


CARGO: Mapping[str, str] = {
    "Cargo.toml": '[package]\nname = "calc"\nversion = "0.1.0"\nedition = "2021"\n',
    "src/lib.rs": """pub fn add(a: i32, b: i32) -> i32 { a + b }
#[cfg(test)]
mod tests {
    #[test]
    fn ok() { assert_eq!(super::add(1, 2), 3); }
    #[test]
    fn bad() { assert_eq!(super::add(1, 2), 4); }
    #[test]
    fn broken() { panic!("oh"); }
    #[test]
    #[ignore = "too slow"]
    fn slow() {}
    #[test]
    #[should_panic]
    fn panics() { panic!("as it should"); }
}
""",
    "tests/it.rs": "#[test]\nfn whole() { assert_eq!(calc::add(1, 1), 2); }\n",
}


def test_each_test_of_cargo_is_known(checkout: Checkout) -> None:
    if checkout.run("cargo --version", kind="exit", environ=RUST).exit_code != 0:
        pytest.skip("there is no cargo")
    ran = checkout.run("cargo test --offline", CARGO, environ=RUST)
    assert {name: (test.state, test.fault) for name, test in ran.tests.items()} == {
        "src/lib.rs::tests::ok": ("passed", ""),
        "src/lib.rs::tests::bad": ("failed", "assertion"),
        "src/lib.rs::tests::broken": ("failed", "error"),
        "src/lib.rs::tests::slow": ("skipped", ""),
        "src/lib.rs::tests::panics": ("passed", ""),
        "tests/it.rs::whole": ("passed", ""),
    }, ran.tail
    assert (ran.granularity, ran.is_green, ran.detail) == ("tests", False, None)
    assert "left: 3" in ran.tests["src/lib.rs::tests::bad"].text
    ends = "#[test]\nfn a() { std::process::exit(0) }\n#[test]\nfn b() { panic!() }\n"
    ran = checkout.run("cargo test --offline --test it", {"tests/it.rs": ends}, environ=RUST)
    assert (ran.exit_code, ran.is_green) == (0, False)
    ran = checkout.run(
        "cargo test --offline", {"tests/it.rs": "#[test]\nfn a() { calc::gone() }\n"}
    )
    assert (ran.has_started, ran.is_green) == (False, False)
