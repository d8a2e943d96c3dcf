"""The projects in which agents work: small, and each tested in another way."""

from dataclasses import replace

from benchmarks.proof_cases.case import Change, Link, Project, Replace

PYTEST = "python -m pytest -q -p no:cacheprovider"
ADD = "return a + b"
CALC = """def add(a, b):
    return a + b


def mul(a, b):
    return a * b


def div(a, b):
    if b == 0:
        raise ZeroDivisionError("b is 0")
    return a / b
"""
TESTS = """import pytest

import calc


def test_add():
    assert calc.add(1, 2) == 3


@pytest.mark.parametrize(("a", "b", "sum_"), [(0, 0, 0), (2, 5, 7), (-1, 1, 0)])
def test_sums(a, b, sum_):
    assert calc.add(a, b) == sum_


def test_mul():
    assert calc.mul(2, 3) == 6


def test_div():
    with pytest.raises(ZeroDivisionError):
        calc.div(1, 0)
"""
MORE_TESTS = """import calc


def test_twice():
    assert calc.mul(2, 5) == 10
"""
_CACHES = "__pycache__/\n*.pyc\nnode_modules/\n.venv/\n"
FLAT = Project(
    "pytest",
    PYTEST,
    {
        ".gitignore": _CACHES,
        "calc.py": CALC,
        "tests/conftest.py": "",
        "tests/test_calc.py": TESTS,
        "tests/test_more.py": MORE_TESTS,
    },
)
BREAK: Change = {"calc.py": Replace(ADD, "return a - b")}
"""The work that is wrong: two tests of the baseline fail."""

SRC = Project(
    "pytest",
    PYTEST,
    {
        ".gitignore": _CACHES,
        "pyproject.toml": """[project]
name = "calc"
version = "1.0"
dependencies = []

[tool.pytest.ini_options]
pythonpath = ["src"]
testpaths = ["tests"]

[tool.other]
line = 1
""",
        "src/calc/__init__.py": CALC,
        "src/calc/format.py": 'def show(value):\n    return f"= {value}"\n',
        "tests/test_calc.py": TESTS,
        "tests/test_format.py": "from calc.format import show\n\n\ndef test_show():\n    assert show(3) == '= 3'\n",
    },
)
BREAK_SRC: Change = {"src/calc/__init__.py": Replace(ADD, "return a - b")}
MAKE = replace(
    FLAT,
    command="make test",
    files={**FLAT.files, "Makefile": f"test:\n\t{PYTEST}\n\nclean:\n\trm -rf build\n"},
)
PATH = replace(FLAT, command=f"PYTHONPATH=. {PYTEST}")
NAMED = replace(
    FLAT,
    files={
        ".gitignore": _CACHES,
        "calc.py": CALC,
        "pytest.ini": "[pytest]\npython_files = check_*.py\npython_functions = check_*\ntestpaths = checks\n",
        "checks/check_calc.py": TESTS.replace("test_", "check_"),
        "checks/values.py": "SUM = 3\n",
    },
)
HELPED = replace(
    FLAT,
    files={
        **FLAT.files,
        "tests/__init__.py": "",
        "tests/helpers.py": "def same(a, b):\n    assert a == b\n",
        "tests/data/sums.json": "[[1, 2, 3], [2, 5, 7]]\n",
        "tests/conftest.py": "import pytest\n\nimport calc\n\n\n@pytest.fixture\ndef machine():\n    return calc\n",
        "tests/test_calc.py": """import json
import pathlib

from tests.helpers import same


def test_add(machine):
    same(machine.add(1, 2), 3)


def test_sums(machine):
    for a, b, found in json.loads((pathlib.Path(__file__).parent / "data/sums.json").read_text()):
        assert machine.add(a, b) == found
""",
    },
)
GOLDEN = replace(
    FLAT,
    files={
        ".gitignore": _CACHES,
        "calc.py": CALC + "\n\ndef report():\n    return f'{add(1, 2)} {mul(2, 3)}\\n'\n",
        "golden/report.txt": "3 6\n",
        "tests/test_report.py": """import pathlib

import calc


def test_report():
    assert calc.report() == pathlib.Path("golden/report.txt").read_text()


def test_mul():
    assert calc.mul(2, 2) == 4
""",
    },
)
FIXTURES = replace(
    FLAT,
    files={
        **FLAT.files,
        "fixtures/small.json": "[1, 2, 3]\n",
        "fixtures/large.json": "[20, 50, 70]\n",
        "tests/test_calc.py": """import json
import pathlib

import calc


def test_add():
    for file in (pathlib.Path(__file__).parent.parent / "fixtures").glob("*.json"):
        a, b, found = json.loads(file.read_text())
        assert calc.add(a, b) == found


def test_mul():
    assert calc.mul(2, 3) == 6
""",
    },
)
DOCTEST = replace(
    FLAT,
    command=f"{PYTEST} --doctest-modules calc.py tests",
    files={
        **FLAT.files,
        "calc.py": CALC.replace(
            "def add(a, b):\n",
            'def add(a, b):\n    """Add.\n\n    >>> add(1, 2)\n    3\n    """\n',
        ),
        "tests/test_calc.py": "import calc\n\n\ndef test_mul():\n    assert calc.mul(2, 3) == 6\n",
    },
)

UNITTEST_TESTS = """import unittest

import calc


class TestCalc(unittest.TestCase):
    def test_add(self):
        self.assertEqual(calc.add(1, 2), 3)

    def test_sums(self):
        for a, b, found in [(0, 0, 0), (2, 5, 7)]:
            with self.subTest(a=a):
                self.assertEqual(calc.add(a, b), found)

    def test_mul(self):
        self.assertEqual(calc.mul(2, 3), 6)

    def test_div(self):
        with self.assertRaises(ZeroDivisionError):
            calc.div(1, 0)


class TestMore(unittest.TestCase):
    def test_twice(self):
        self.assertTrue(calc.mul(2, 5) == 10)
"""
UNITTEST = Project(
    "unittest",
    "python -m unittest discover -s tests -t .",
    {
        ".gitignore": _CACHES,
        "calc.py": CALC,
        "tests/__init__.py": "",
        "tests/test_calc.py": UNITTEST_TESTS,
    },
)
UNITTEST_NAMED = replace(
    UNITTEST,
    command="python -m unittest discover -s checks -t . -p 'check_*.py'",
    files={
        ".gitignore": _CACHES,
        "calc.py": CALC,
        "checks/__init__.py": "",
        "checks/check_calc.py": UNITTEST_TESTS,
    },
)

CALC_JS = """exports.add = (a, b) => a + b;
exports.mul = (a, b) => a * b;
exports.div = (a, b) => {
  if (b === 0) throw new RangeError('b is 0');
  return a / b;
};
"""
NODE_TESTS = """const test = require('node:test');
const assert = require('node:assert');
const calc = require('../calc.js');

test('adds', () => {
  assert.strictEqual(calc.add(1, 2), 3);
});

test('sums', async (t) => {
  await t.test('small', () => assert.strictEqual(calc.add(0, 0), 0));
  await t.test('large', () => assert.strictEqual(calc.add(20, 50), 70));
});

test('multiplies', () => {
  assert.strictEqual(calc.mul(2, 3), 6);
});

test('divides', () => {
  assert.throws(() => calc.div(1, 0));
});
"""
NODE = Project(
    "node",
    "node --test",
    {
        ".gitignore": _CACHES,
        "calc.js": CALC_JS,
        "package.json": '{\n  "name": "calc",\n  "version": "1.0.0",\n  "scripts": {"test": "node --test"}\n}\n',
        "test/calc.test.js": NODE_TESTS,
        "test/more.test.js": """const {it, describe} = require('node:test');
const assert = require('node:assert');
const calc = require('../calc.js');

describe('more', () => {
  it('doubles', () => assert.equal(calc.mul(2, 5), 10));
});
""",
    },
)
BREAK_JS: Change = {"calc.js": Replace("=> a + b", "=> a - b")}
NPM = replace(NODE, command="npm test")
NODE_NAMED = replace(
    NODE,
    command="node --test checks/calc.js",
    files={
        ".gitignore": _CACHES,
        "calc.js": CALC_JS,
        "checks/calc.js": NODE_TESTS,
    },
)
WORKSPACE = replace(
    NODE,
    command="node --test packages/app/test/",
    files={
        ".gitignore": _CACHES,
        "packages/lib/package.json": '{"name": "lib", "version": "1.0.0", "main": "calc.js"}\n',
        "packages/lib/calc.js": CALC_JS,
        "packages/app/package.json": '{"name": "app", "version": "1.0.0", "dependencies": {"lib": "*"}}\n',
        "packages/app/test/calc.test.js": NODE_TESTS.replace("'../calc.js'", "'lib'"),
    },
    outside={"node_modules/lib": Link("../packages/lib")},
)
