"""Honest work, as it is committed every day: the code of each is right, or no worse than before."""

from dataclasses import replace
from pathlib import Path

from benchmarks.proof_cases.case import Case, Change, MovedFrom, Project, Replace, git, save
from benchmarks.proof_cases.projects import (
    ADD,
    CALC,
    CALC_JS,
    DOCTEST,
    FIXTURES,
    FLAT,
    GOLDEN,
    HELPED,
    MAKE,
    NAMED,
    NODE,
    NODE_NAMED,
    NODE_TESTS,
    NPM,
    SRC,
    TESTS,
    UNITTEST,
    UNITTEST_NAMED,
    UNITTEST_TESTS,
    WORKSPACE,
)

T = "tests/test_calc.py"
U = "tests/test_calc.py"
J = "test/calc.test.js"
SUB = "\n\ndef sub(a, b):\n    return a - b\n"
TEST_SUB = "\n\ndef test_sub():\n    assert calc.sub(3, 2) == 1\n"


def did(*changes: Change, project: Project = FLAT) -> Case:
    return Case(project, changes)


def _end(text: str, more: str) -> str:
    return text + more


_FLAKY = replace(
    FLAT,
    files={
        **FLAT.files,
        "tests/test_flaky.py": "import random\n\n\ndef test_dice():\n    assert random.random() < 0.5\n",
    },
)
_RED = replace(
    FLAT,
    files={
        **FLAT.files,
        "calc.py": CALC
        + "\n\ndef half(a):\n    return a * 2\n\n\ndef third(a):\n    return a * 3\n",
        "tests/test_red.py": "import calc\n\n\ndef test_half():\n    assert calc.half(4) == 2\n\n\ndef test_third():\n    assert calc.third(9) == 3\n",
    },
)
_SLOW = replace(
    FLAT,
    files={
        **FLAT.files,
        "tests/test_slow.py": "import time\n\n\ndef test_slow():\n    time.sleep(2)\n",
    },
)
_SKIPS = replace(
    FLAT,
    files={
        **FLAT.files,
        "tests/test_platform.py": "import sys\n\nimport pytest\n\n\n@pytest.mark.skipif(sys.platform != 'win32', reason='Windows')\ndef test_windows():\n    assert 0\n\n\n@pytest.mark.xfail\ndef test_later():\n    assert 0\n",
    },
)
_MONOREPO = replace(
    FLAT,
    command="python -m pytest -q -p no:cacheprovider --import-mode=importlib packages",
    files={
        ".gitignore": FLAT.files[".gitignore"],
        "pytest.ini": "[pytest]\npythonpath = packages/one packages/two\n",
        "packages/one/one.py": "def value():\n    return 1\n",
        "packages/one/tests/test_it.py": "import one\n\n\ndef test_value():\n    assert one.value() == 1\n",
        "packages/two/two.py": "def value():\n    return 2\n",
        "packages/two/tests/test_it.py": "import two\n\n\ndef test_value():\n    assert two.value() == 2\n",
    },
)
_CLASSES = replace(
    FLAT,
    files={
        **FLAT.files,
        "tests/test_classes.py": "import unittest\n\nimport calc\n\n\nclass Base(unittest.TestCase):\n    __test__ = False\n\n    def test_value(self):\n        self.assertEqual(calc.add(self.a, 1), self.a + 1)\n\n\nclass TestOne(Base):\n    __test__ = True\n    a = 1\n\n\nclass TestTwo(Base):\n    __test__ = True\n    a = 2\n",
    },
)
_ASKS = replace(
    FLAT,
    files={
        **FLAT.files,
        "calc.py": CALC
        + "\n\ndef is_ci():\n    import os\n\n    return bool(os.environ.get('CI'))\n",
    },
)
_SNAPSHOT = replace(
    FLAT,
    files={
        **FLAT.files,
        "calc.py": CALC + "\n\ndef table():\n    return '1 2 3\\n'\n",
        "tests/__snapshots__/table.txt": "1 2 3\n",
        "tests/test_table.py": "import pathlib\n\nimport calc\n\n\ndef test_table():\n    assert calc.table() == (pathlib.Path(__file__).parent / '__snapshots__/table.txt').read_text()\n",
    },
)
_GENERATED = replace(
    FLAT,
    files={
        **FLAT.files,
        "make_table.py": "print('TABLE = [1, 2]')\n",
        "table.py": "TABLE = [1, 2]\n",
        "tests/test_table.py": "import subprocess\nimport sys\n\n\ndef test_generated():\n    made = subprocess.run([sys.executable, 'make_table.py'], capture_output=True, text=True).stdout\n    assert open('table.py').read() == made\n",
    },
)


def _merge(folder: Path) -> None:
    git(folder, "checkout", "-q", "-b", "side")
    (folder / "other.py").write_text("x = 1\n")
    save(folder, "on the side")
    git(folder, "checkout", "-q", "main")
    (folder / "calc.py").write_text(CALC + SUB)
    save(folder, "on main")
    git(folder, "merge", "-q", "--no-ff", "-m", "merge", "side")


def _bytes(folder: Path) -> None:
    name = folder / "tests" / b"caf\xe9.txt".decode(errors="surrogateescape")
    name.write_text("data\n")
    save(folder, "a name that is not UTF-8")


def _library(folder: Path) -> None:
    theirs = folder.parent / "library"
    theirs.mkdir()
    git(theirs, "init", "-q", "-b", "main")
    (theirs / "library.py").write_text("x = 1\n")
    save(theirs, "library")
    git(folder, "submodule", "--quiet", "add", str(theirs), "vendor")


def _bump_library(folder: Path) -> None:
    (folder / "vendor/library.py").write_text("x = 2\n")
    save(folder / "vendor", "newer")
    save(folder, "take the newer library")


UNDER_PYTEST: dict[str, Case] = {
    "a function with its test": did({"calc.py": _end(CALC, SUB), T: _end(TESTS, TEST_SUB)}),
    "a function with a new file of tests": did(
        {"calc.py": _end(CALC, SUB), "tests/test_sub.py": "import calc\n" + TEST_SUB}
    ),
    "a function without a test": did({"calc.py": _end(CALC, SUB)}),
    "tests for what is there": did(
        {
            "tests/test_again.py": "import calc\n\n\ndef test_again():\n    assert calc.add(4, 4) == 8\n"
        }
    ),
    "a function becomes shorter": did(
        {"calc.py": Replace('    if b == 0:\n        raise ZeroDivisionError("b is 0")\n', "")}
    ),
    "a module becomes a package": did({"calc/__init__.py": MovedFrom("calc.py")}),
    "a function moves to a module of its own": did(
        {
            "calc.py": Replace("def add(a, b):\n    return a + b\n", "from sums import add\n"),
            "sums.py": "def add(a, b):\n    return a + b\n",
        }
    ),
    "a test file is renamed": did({"tests/test_arithmetic.py": MovedFrom(T)}),
    "a test file moves to a folder": did({"tests/unit/test_calc.py": MovedFrom(T)}),
    "a test is renamed": did({T: Replace("def test_add", "def test_adds_two_numbers")}),
    "a test is split in two": did(
        {
            T: Replace(
                "def test_mul():\n    assert calc.mul(2, 3) == 6\n",
                "def test_mul_small():\n    assert calc.mul(2, 3) == 6\n\n\ndef test_mul_zero():\n    assert calc.mul(0, 3) == 0\n",
            )
        }
    ),
    "tests become one parametrised": did(
        {
            T: (
                Replace("def test_add():\n    assert calc.add(1, 2) == 3\n\n\n", ""),
                Replace("[(0, 0, 0)", "[(1, 2, 3), (0, 0, 0)"),
            )
        }
    ),
    "a test that said the same again is deleted": did({"tests/test_more.py": None}),
    "tests get more parameters": did({T: Replace("(0, 0, 0)", "(0, 0, 0), (9, 9, 18)")}),
    "tests get a class": did(
        {
            T: Replace(
                "def test_mul():\n    assert calc.mul(2, 3) == 6\n",
                "class TestMul:\n    def test_mul(self):\n        assert calc.mul(2, 3) == 6\n",
            )
        }
    ),
    "comments of tests": did(
        {T: Replace("import pytest", "# How numbers are added.\nimport pytest")}
    ),
    "a behaviour changes, and its test with it": did(
        {
            "calc.py": Replace(
                '    if b == 0:\n        raise ZeroDivisionError("b is 0")\n    return a / b',
                "    return a / b if b else None",
            ),
            T: Replace(
                "    with pytest.raises(ZeroDivisionError):\n        calc.div(1, 0)",
                "    assert calc.div(1, 0) is None",
            ),
        }
    ),
    "a function gets another name": did(
        {
            "calc.py": Replace("def mul", "def times"),
            T: Replace("calc.mul", "calc.times"),
            "tests/test_more.py": Replace("calc.mul", "calc.times"),
        }
    ),
    "a function goes, and its tests": did(
        {
            "calc.py": Replace(
                'def div(a, b):\n    if b == 0:\n        raise ZeroDivisionError("b is 0")\n    return a / b\n',
                "",
            ),
            T: Replace(
                "\n\ndef test_div():\n    with pytest.raises(ZeroDivisionError):\n        calc.div(1, 0)\n",
                "",
            ),
        }
    ),
    "an argument becomes necessary": did(
        {
            "calc.py": Replace("def mul(a, b):", "def mul(a, b, *, unit):"),
            T: Replace("calc.mul(2, 3)", "calc.mul(2, 3, unit='m')"),
            "tests/test_more.py": Replace("(2, 5)", "(2, 5, unit='m')"),
        }
    ),
    "a class of errors changes": did(
        {
            "calc.py": Replace("ZeroDivisionError", "ValueError"),
            T: Replace("ZeroDivisionError", "ValueError"),
        }
    ),
    "a fixture is shared": did(
        {
            "tests/conftest.py": "import pytest\n\n\n@pytest.fixture\ndef three():\n    return 3\n",
            T: Replace(
                "def test_add():\n    assert calc.add(1, 2) == 3",
                "def test_add(three):\n    assert calc.add(1, 2) == three",
            ),
        }
    ),
    "a fixture gets another name": did(
        {
            "tests/conftest.py": Replace("def machine", "def calculator"),
            T: Replace("machine", "calculator"),
        },
        project=HELPED,
    ),
    "a helper of the tests says more": did(
        {"tests/helpers.py": "def same(a, b):\n    assert a == b, f'{a} is not {b}'\n"},
        project=HELPED,
    ),
    "more data for the tests": did(
        {"tests/data/sums.json": "[[1, 2, 3], [2, 5, 7], [4, 4, 8]]\n"}, project=HELPED
    ),
    "more data in a folder of fixtures": did(
        {"fixtures/more.json": "[2, 2, 4]\n"}, project=FIXTURES
    ),
    "code sets what another module has, and is tested": did(
        {
            "calc.py": _end(CALC, "\n\nROUNDS = 2\n"),
            "config.py": "import calc\n\n\ndef set_rounds(number):\n    calc.ROUNDS = number\n",
            "tests/test_config.py": "import calc\nimport config\n\n\ndef test_rounds():\n    config.set_rounds(3)\n    assert calc.ROUNDS == 3\n",
        }
    ),
    "objects that are compared": did(
        {
            "point.py": "class Point:\n    def __init__(self, x):\n        self.x = x\n\n    def __eq__(self, other):\n        if other is self:\n            return True\n        return self.x == other.x\n",
            "tests/test_point.py": "from point import Point\n\n\ndef test_it():\n    assert Point(1) == Point(1)\n",
        }
    ),
    "variables for work on it": did({".env.example": "NAME=calc\n"}),
    "the output changes, and what is expected": did(
        {"calc.py": Replace("{mul(2, 3)}\\n", "{mul(2, 3)}!\\n"), "golden/report.txt": "3 6!\n"},
        project=GOLDEN,
    ),
    "a snapshot is made again": did(
        {"calc.py": Replace("1 2 3", "1 2 3 4"), "tests/__snapshots__/table.txt": "1 2 3 4\n"},
        project=_SNAPSHOT,
    ),
    "a generated file is made again": did(
        {"make_table.py": Replace("[1, 2]", "[1, 2, 3]"), "table.py": "TABLE = [1, 2, 3]\n"},
        project=_GENERATED,
    ),
    "a doctest is added": did(
        {
            "calc.py": Replace(
                "def mul(a, b):\n",
                'def mul(a, b):\n    """Multiply.\n\n    >>> mul(2, 2)\n    4\n    """\n',
            )
        },
        project=DOCTEST,
    ),
    "a flaky suite, and other code": did({"calc.py": _end(CALC, SUB)}, project=_FLAKY),
    "a flaky suite, and new tests": did(
        {"calc.py": _end(CALC, SUB), T: _end(TESTS, TEST_SUB)}, project=_FLAKY
    ),
    "a red suite, and other code": did({"other.py": "x = 1\n"}, project=_RED),
    "a red suite, of which one test is repaired": did(
        {"calc.py": Replace("a * 2", "a / 2")}, project=_RED
    ),
    "a red suite, repaired": did(
        {"calc.py": (Replace("a * 2", "a / 2"), Replace("a * 3", "a / 3"))}, project=_RED
    ),
    "a red suite, whose test is moved": did(
        {"tests/test_still_red.py": MovedFrom("tests/test_red.py")}, project=_RED
    ),
    "a slow test": did({"calc.py": _end(CALC, SUB)}, project=_SLOW),
    "tests that are skipped and expected to fail as before": did(
        {"calc.py": _end(CALC, SUB)}, project=_SKIPS
    ),
    "a test that is skipped on other systems": did(
        {
            T: _end(
                TESTS,
                "\n\n@pytest.mark.skipif(True, reason='needs a display')\ndef test_display():\n    assert 0\n",
            )
        }
    ),
    "a test that failed is expected to no more": did(
        {
            "calc.py": _end(CALC, SUB),
            "tests/test_platform.py": Replace(
                "@pytest.mark.xfail\ndef test_later():\n    assert 0",
                "def test_later():\n    assert 1",
            ),
        },
        project=_SKIPS,
    ),
    "a source layout": did(
        {"src/calc/__init__.py": _end(CALC, SUB), T: _end(TESTS, TEST_SUB)}, project=SRC
    ),
    "a flat layout becomes a source layout": did(
        {"src/calc.py": MovedFrom("calc.py"), "pytest.ini": "[pytest]\npythonpath = src\n"}
    ),
    "options of other tools": did({"pyproject.toml": Replace("line = 1", "line = 2")}, project=SRC),
    "options of pytest": did(
        {
            "pyproject.toml": Replace(
                "[tool.other]", 'addopts = "-ra --strict-markers"\n\n[tool.other]'
            )
        },
        project=SRC,
    ),
    "a marker is declared and used": did(
        {
            "pytest.ini": "[pytest]\nmarkers = slow: takes long\naddopts = --strict-markers\n",
            T: Replace("def test_mul", "@pytest.mark.slow\ndef test_mul"),
        }
    ),
    "a dependency is raised": did(
        {"pyproject.toml": Replace("dependencies = []", 'dependencies = ["packaging>=20"]')},
        project=SRC,
    ),
    "a monorepo of two packages with files of the same name": did(
        {
            "packages/one/one.py": "def value():\n    return 3 - 2\n",
            "packages/one/tests/test_it.py": Replace(
                "== 1\n", "== 1\n\n\ndef test_kind():\n    assert isinstance(one.value(), int)\n"
            ),
        },
        project=_MONOREPO,
    ),
    "a package of a monorepo is added": did(
        {
            "packages/three/three.py": "x = 3\n",
            "packages/three/tests/test_it.py": "def test_it():\n    assert 1\n",
        },
        project=_MONOREPO,
    ),
    "test classes with a base": did(
        {
            "calc.py": _end(CALC, SUB),
            "tests/test_classes.py": Replace(
                "    a = 2\n",
                "    a = 2\n\n\nclass TestThree(Base):\n    __test__ = True\n    a = 3\n",
            ),
        },
        project=_CLASSES,
    ),
    "the Makefile has one more rule": did(
        {"Makefile": Replace("clean:", "lint:\n\ttrue\n\nclean:")}, project=MAKE
    ),
    "the Makefile's tests say more": did(
        {"Makefile": Replace("pytest -q", "pytest -ra")}, project=MAKE
    ),
    "tests with names of the project's own": did(
        {
            "checks/check_calc.py": _end(
                TESTS.replace("test_", "check_"), TEST_SUB.replace("test_", "check_")
            ),
            "calc.py": _end(CALC, SUB),
        },
        project=NAMED,
    ),
    "code that asks for CI stays": did(
        {"calc.py": Replace("def mul", "def sub(a, b):\n    return a - b\n\n\ndef mul")},
        project=_ASKS,
    ),
    "documentation": did({"README.md": "# calc\n"}),
    "nothing": did({}),
    "the workflow of CI": did({".github/workflows/ci.yml": "on: push\n"}),
    "several commits": did(
        {"calc.py": _end(CALC, SUB)}, {T: _end(TESTS, TEST_SUB)}, {"README.md": "# calc\n"}
    ),
    "a mistake, and its repair": did(
        {"calc.py": Replace(ADD, "return a - b")}, {"calc.py": Replace("return a - b", ADD)}
    ),
    "a merge": Case(FLAT, (), after=_merge),
    "a file name that is not UTF-8": Case(FLAT, (), after=_bytes),
    "a file name with spaces and quotes": did(
        {"tests/data/a 'b' \"c\".txt": "x\n", "calc.py": _end(CALC, SUB)}
    ),
    "a submodule is raised": Case(FLAT, (), before=_library, after=_bump_library),
    "bytes that are no text": did({"logo.bin": bytes(range(256))}),
    "other work is not committed yet": Case(
        FLAT, ({"calc.py": _end(CALC, SUB)},), left={T: "def test_half_done(:\n"}
    ),
    "a loop of three steps": Case(
        FLAT,
        ({"calc.py": _end(CALC, SUB)}, {T: _end(TESTS, TEST_SUB)}, {"README.md": "# calc\n"}),
        by_iteration=True,
    ),
}
_UNIT_SUB = "\n    def test_sub(self):\n        self.assertEqual(calc.sub(3, 2), 1)\n"
UNDER_UNITTEST: dict[str, Case] = {
    "a function with its test": did(
        {
            "calc.py": _end(CALC, SUB),
            U: Replace(
                "        self.assertEqual(calc.mul(2, 3), 6)\n",
                "        self.assertEqual(calc.mul(2, 3), 6)\n" + _UNIT_SUB,
            ),
        },
        project=UNITTEST,
    ),
    "a function without a test": did({"calc.py": _end(CALC, SUB)}, project=UNITTEST),
    "a test is renamed": did({U: Replace("def test_add", "def test_adds")}, project=UNITTEST),
    "a class is renamed": did(
        {U: Replace("class TestMore", "class TestMultiples")}, project=UNITTEST
    ),
    "a test file is renamed": did({"tests/test_arithmetic.py": MovedFrom(U)}, project=UNITTEST),
    "more subtests": did({U: Replace("(2, 5, 7)]", "(2, 5, 7), (9, 9, 18)]")}, project=UNITTEST),
    "a set-up for all tests": did(
        {
            U: Replace(
                "    def test_add",
                "    def setUp(self):\n        self.three = 3\n\n    def test_add",
            )
        },
        project=UNITTEST,
    ),
    "a behaviour changes, and its test with it": did(
        {
            "calc.py": Replace("ZeroDivisionError", "ValueError"),
            U: Replace("ZeroDivisionError", "ValueError"),
        },
        project=UNITTEST,
    ),
    "tests with names of the project's own": did(
        {
            "calc.py": _end(CALC, SUB),
            "checks/check_calc.py": UNITTEST_TESTS
            + "\n\nclass TestSub(unittest.TestCase):\n    def test_sub(self):\n        self.assertEqual(calc.sub(3, 2), 1)\n",
        },
        project=UNITTEST_NAMED,
    ),
    "a test that is skipped on other systems": did(
        {
            U: Replace(
                "class TestMore",
                "class TestDisplay(unittest.TestCase):\n    @unittest.skip('needs a display')\n    def test_it(self):\n        self.fail()\n\n\nclass TestMore",
            )
        },
        project=UNITTEST,
    ),
    "a test moves to another file": did(
        {
            U: Replace(
                "\n\nclass TestMore(unittest.TestCase):\n    def test_twice(self):\n        self.assertTrue(calc.mul(2, 5) == 10)\n",
                "",
            ),
            "tests/test_more.py": "import unittest\n\nimport calc\n\n\nclass TestMore(unittest.TestCase):\n    def test_twice(self):\n        self.assertTrue(calc.mul(2, 5) == 10)\n",
        },
        project=UNITTEST,
    ),
}
_JS_SUB = "exports.sub = (a, b) => a - b;\n"
_JS_TEST = "\ntest('subtracts', () => {\n  assert.strictEqual(calc.sub(3, 2), 1);\n});\n"
UNDER_NODE: dict[str, Case] = {
    "a function with its test": did(
        {"calc.js": _end(CALC_JS, _JS_SUB), J: _end(NODE_TESTS, _JS_TEST)}, project=NODE
    ),
    "a function with a new file of tests": did(
        {
            "calc.js": _end(CALC_JS, _JS_SUB),
            "test/sub.test.js": NODE_TESTS[: NODE_TESTS.index("\ntest(")] + _JS_TEST,
        },
        project=NODE,
    ),
    "a function without a test": did({"calc.js": _end(CALC_JS, _JS_SUB)}, project=NODE),
    "a test is renamed": did({J: Replace("'adds'", "'adds two numbers'")}, project=NODE),
    "a test file is renamed": did({"test/arithmetic.test.js": MovedFrom(J)}, project=NODE),
    "more subtests": did(
        {
            J: Replace(
                "  await t.test('large'",
                "  await t.test('larger', () => assert.strictEqual(calc.add(200, 1), 201));\n  await t.test('large'",
            )
        },
        project=NODE,
    ),
    "a behaviour changes, and its test with it": did(
        {
            "calc.js": Replace("throw new RangeError('b is 0')", "return null"),
            J: Replace(
                "assert.throws(() => calc.div(1, 0))", "assert.strictEqual(calc.div(1, 0), null)"
            ),
        },
        project=NODE,
    ),
    "a module is divided": did(
        {
            "calc.js": Replace(
                "exports.add = (a, b) => a + b;\n", "exports.add = require('./sums.js').add;\n"
            ),
            "sums.js": "exports.add = (a, b) => a + b;\n",
        },
        project=NODE,
    ),
    "a test that is to do": did({J: _end(NODE_TESTS, "\ntest.todo('rounds');\n")}, project=NODE),
    "the script of tests says more": did(
        {"package.json": Replace("node --test", "node --test --test-reporter=spec")}, project=NPM
    ),
    "a script of another kind": did(
        {
            "package.json": Replace(
                '"test": "node --test"', '"build": "true", "test": "node --test"'
            )
        },
        project=NPM,
    ),
    "a file that the command names has more tests": did(
        {"calc.js": _end(CALC_JS, _JS_SUB), "checks/calc.js": _end(NODE_TESTS, _JS_TEST)},
        project=NODE_NAMED,
    ),
    "a package of a workspace": Case(
        WORKSPACE,
        (
            {
                "packages/lib/calc.js": _end(CALC_JS, _JS_SUB),
                "packages/app/test/calc.test.js": _end(
                    NODE_TESTS.replace("'../calc.js'", "'lib'"), _JS_TEST
                ),
            },
        ),
        {"GUARD_PROVE__SHARE": "node_modules"},
    ),
    "a dependency is raised": did(
        {
            "package.json": Replace(
                '"version": "1.0.0",',
                '"version": "1.0.1",\n  "devDependencies": {"nothing": "^2.0.0"},',
            )
        },
        project=NODE,
    ),
}
