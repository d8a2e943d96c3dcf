"""What changed files contain: blanks alone, tests that are gone, functions without a body."""

import pytest

from guard.core.claims.substance import Substance, TextChange, weigh

TEST = "def test_a():\n    assert f() == 1\n"
DEEP = " + 1" * 2000
CASES: dict[str, tuple[list[TextChange], Substance]] = {
    "nothing": ([], Substance()),
    "text": ([TextChange("a.md", "a\n", "b\n")], Substance()),
    "blanks": ([TextChange("a.js", "f( 1 )\n", "f(1)\n\n")], Substance(only_blanks=True)),
    "an empty file": ([TextChange("a.js", None, "\n")], Substance(only_blanks=True)),
    "blanks and a line": (
        [TextChange("a.md", "a\n", "a \n"), TextChange("b.md", "a\n", "b\n")],
        Substance(),
    ),
    "an indentation that means something": (
        [TextChange("a.py", "if a:\n    b()\nc()\n", "if a:\n    b()\n    c()\n")],
        Substance(),
    ),
    "empty lines of Python": (
        [TextChange("a.py", "a\nb\n", "a \n\nb\n")],
        Substance(only_blanks=True),
    ),
    "another indentation of the same Python": (
        [TextChange("a.py", "if a:\n  b(1,\n    2)\n", "if a:\n    b(1, 2)\n")],
        Substance(only_blanks=True),
    ),
    "a blank in a string of Python": (
        [TextChange("a.py", "a = 'b c'\n", "a = 'bc'\n")],
        Substance(),
    ),
    "a deleted test": ([TextChange("tests/test_a.py", TEST, None)], Substance(tests_removed=1)),
    "a moved test": (
        [TextChange("tests/test_a.py", TEST, None), TextChange("tests/test_b.py", None, TEST)],
        Substance(),
    ),
    "a test that is commented out": (
        [TextChange("test_a.py", TEST, "".join(f"# {line}\n" for line in TEST.splitlines()))],
        Substance(tests_removed=1),
    ),
    "a test that is emptied": (
        [TextChange("test_a.py", TEST, "def test_a():\n    pass\n")],
        Substance(tests_skipped=1),
    ),
    "tests made cases of one": (
        [
            TextChange(
                "tests/test_a.py",
                TEST + TEST.replace("_a", "_b"),
                f"@pytest.mark.parametrize('x', [1, 2])\n{TEST}",
            )
        ],
        Substance(),
    ),
    "a skipped test of JavaScript": (
        [TextChange("a.test.ts", "it('adds', () => { f() })", "it.skip('adds', () => { f() })")],
        Substance(tests_removed=1, tests_skipped=1),
    ),
    "a skipped test of Go": (
        [
            TextChange(
                "a_test.go", "func TestA(t *T) {\n f()\n}", "func TestA(t *T) {\n t.Skip()\n f()\n}"
            )
        ],
        Substance(tests_skipped=1),
    ),
    "a stub": (
        [TextChange("a.py", None, 'def f():\n    """Do it."""\n    raise NotImplementedError\n')],
        Substance(functions=1, stubs=1),
    ),
    "a stub that raises another error": (
        [TextChange("a.py", None, "def f():\n    raise RuntimeError('not implemented yet')\n")],
        Substance(functions=1, stubs=1),
    ),
    "a value below a note that work is left": (
        [TextChange("a.py", None, "def f(a):\n    # TODO: write it\n    return None\n")],
        Substance(functions=1, stubs=1),
    ),
    "a function below a note": (
        [TextChange("a.py", None, "def f(a):\n    # TODO: make it faster\n    return g(a)\n")],
        Substance(functions=1),
    ),
    "a value of JavaScript below a note": (
        [TextChange("a.js", None, "function f(a) {\n  // TODO: implement\n  return null;\n}\n")],
        Substance(functions=1, stubs=1),
    ),
    "a stub that was there": (
        [TextChange("a.py", "def f(): ...\n", "def f(): ...\n\n\ndef g():\n    return 1\n")],
        Substance(functions=1),
    ),
    "functions that need no body": (
        [
            TextChange(
                "a.py",
                None,
                "class P(Protocol):\n    def f(self): ...\n\n\nclass A:\n    @abstractmethod\n    def g(self): ...\n",
            )
        ],
        Substance(),
    ),
    "a stub of Rust": (
        [TextChange("a.rs", None, "fn f() -> u8 {\n    todo!()\n}\n")],
        Substance(functions=1, stubs=1),
    ),
    "a stub of TypeScript": (
        [
            TextChange(
                "a.ts", None, "export function f() {\n  throw new Error('Not implemented');\n}\n"
            )
        ],
        Substance(functions=1, stubs=1),
    ),
    "an empty function": (
        [TextChange("a.go", None, "func f(a int) error {\n\t// TODO\n}\n")],
        Substance(functions=1, stubs=1),
    ),
    "Python that cannot be parsed": ([TextChange("a.py", None, "def f(:\n")], Substance()),
    "Python that can be parsed and is nested too deep to be compared": (
        [TextChange("a.py", f"def f():\n  return 1{DEEP}\n", f"def f():\n    return 1{DEEP}\n")],
        Substance(),
    ),
    "Python that is nested too deep": ([TextChange("a.py", None, "(" * 50_000)], Substance()),
}


@pytest.mark.parametrize(("changes", "found"), CASES.values(), ids=CASES)
def test_what_changes_amount_to(changes: list[TextChange], found: Substance) -> None:
    assert weigh(changes) == found


def test_blanks_beside_what_could_not_be_read_are_not_all() -> None:
    assert not weigh([TextChange("a.md", "a\n", "a \n")], whole=False).only_blanks
