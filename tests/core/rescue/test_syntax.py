"""Files that parse, that do not, and those of which guard cannot tell."""

import sys

import pytest

from guard.core.rescue.change import Changed
from guard.core.rescue.commit_message import wip_subject
from guard.core.rescue.groups import Group, mark_wip
from guard.core.rescue.syntax import CONFLICT, find_fault, find_new_fault

MARKERS = b"<<<<<<< HEAD\na\n=======\nb\n>>>>>>> theirs\n"
DEEP = 100_000

BROKEN = {
    "a cut function": ("a.py", b"def broken(:\n    pass\n"),
    "a cut string": ("a.py", b"x = '''never closed\n"),
    "a stub file": ("a.pyi", b"def f(->\n"),
    "a script": ("bin/tool", b"#!/usr/bin/env python3\nif:\n"),
    "zeros after a crash": ("a.py", b"\0" * 64),
    "bytes that are not UTF-8": ("a.py", b"x = 'caf\xe9'\n"),
    "a print statement": ("a.py", b"print 'x'\n"),
    "JSON": ("package.json", b'{"a": 1,, "b": 2}'),
    "JSON that was cut": ("package.json", b'{"a": 1, "b": '),
    "a notebook": ("a.ipynb", b'{"cells": ['),
    "TOML": ("pyproject.toml", b"[project\nname = 1\n"),
    "TOML with a key twice": ("a.toml", b"a = 1\na = 2\n"),
    "markers in Python": ("a.py", MARKERS),
    "markers in JSON": ("a.json", b"{\n" + MARKERS + b"}\n"),
    "markers in any text": ("a.go", b"package a\n" + MARKERS),
    "markers with Windows line ends": ("a.go", MARKERS.replace(b"\n", b"\r\n")),
    "markers of half a conflict": ("a.js", b"<<<<<<< HEAD\na\n=======\nb\n"),
    "markers in a template": ("templates/a.py", MARKERS),
}

FINE = {
    "Python": ("a.py", b"def f():\n    return 1\n"),
    "an empty module": ("__init__.py", b""),
    "an empty JSON file": ("a.json", b"\n"),
    "another encoding": ("a.py", b"# -*- coding: latin-1 -*-\nx = 'caf\xe9'\n"),
    "a byte order mark": ("a.py", b"\xef\xbb\xbfx = 1\n"),
    "an encoding of the project's own": ("a.py", b"# coding: pyxl\nx = <b></b>\n"),
    "a doubtful escape": ("a.py", b"x = '\\d'\ny = 1 is 1\n"),
    "Python 2 by its first line": ("a.py", b"#!/usr/bin/python2.7\nprint 'x'\n"),
    "a script of Python 2": ("tool", b"#!/usr/bin/env python2\nprint 'x'\n"),
    "exceptions in the manner of Python 2 or 3.14": (
        "a.py",
        b"try:\n    f()\nexcept A, B:\n    pass\n",
    ),
    "a type alias of Python 3.12": ("a.py", b"type X = int\n"),
    "a type parameter of Python 3.12": ("a.py", b"def f[T](x: T) -> T:\n    return x\n"),
    "an f-string of Python 3.12": ("a.py", b"x = f'{d['a']}'\n"),
    "a t-string of Python 3.14": ("a.py", b"x = t'{a}'\n"),
    "a template by its place": ("templates/a.py", b"class {{ name }}:\n    pass\n"),
    "a template by its name": ("{{cookiecutter.x}}/a.py", b"import {{cookiecutter.x}}\n"),
    "a template by its text": ("a.py", b"{% if x %}\ndef f(:\n{% endif %}\n"),
    "a template of JSON": ("a.json", b'{"a": {{ value }}}'),
    "an ending of templates": ("a.py.j2", b"def f(:\n"),
    "JSON with comments": ("tsconfig.json", b'{\n  // "a\n  "a": "//", /* b */\n  "c": [1, 2,],\n}\n'),
    "one JSON value per line": ("a.json", b'{"a": 1}\n{"a": 2}\n'),
    "JSON with a byte order mark": ("a.json", b'\xef\xbb\xbf{"a": 1}'),
    "JSON in UTF-16": ("a.json", '{"a": 1}'.encode("utf-16")),
    "JSON with a long number": ("a.json", b'{"a": ' + b"9" * 10_000 + b"}"),
    "TOML with Windows line ends": ("a.toml", b"[a]\r\nb = 1\r\n"),
    "TOML 1.0": ("a.toml", b"a.b = {c = [1, 2]}\nd = 1979-05-27T07:32:00Z\n"),
    "markers in a string": ("a.py", b'x = """\n' + MARKERS + b'"""\n'),
    "a heading that looks like a marker": ("a.rst", b"Title\n=======\n"),
    "shifts": ("a.c", b"x <<<<<<< y;\n=======\n"),
    "binary": ("a.bin", b"\0\n" + MARKERS),
    "a language that guard does not know": ("a.js", b"function ( {\n"),
    "nested too deep to tell": ("a.json", b"[" * DEEP + b"]" * DEEP),
}  # fmt: skip


@pytest.mark.parametrize(("path", "data"), BROKEN.values(), ids=BROKEN)
def test_broken(path: str, data: bytes) -> None:
    fault = find_fault(path, data)
    assert fault
    assert len(fault.splitlines()) == 1
    assert find_new_fault(path, data, None) == fault


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("path", "data"), FINE.values(), ids=FINE)
def test_fine(path: str, data: bytes) -> None:
    assert find_fault(path, data) is None


def test_the_fault_names_the_language_and_the_line() -> None:
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert (find_fault("a.py", b"x = 1\ny = (\n") or "").startswith(f"Python: {version}: line 2: ")
    assert (find_fault("a.json", b'{\n"a" 1}') or "").startswith("JSON: line 2: ")
    assert find_fault("a.txt", MARKERS) == CONFLICT


def test_what_did_not_parse_before_says_nothing_of_this_work() -> None:
    old, new = b"print 'x'\n", b"print 'y'\n"
    assert find_new_fault("a.py", new, old) is None
    assert find_new_fault("a.py", new, b"print('x')\n")
    assert find_new_fault("a.py", new, b"")
    assert find_new_fault("a.py", old + MARKERS, old) == CONFLICT
    assert find_new_fault("a.py", old + MARKERS + b"x\n", old + MARKERS) is None


@pytest.mark.parametrize(
    ("subject", "wip"),
    [
        ("feat: add broken", "wip: add broken"),
        ("feat(api)!: add x: y", "wip(api): add x: y"),
        ("ci: add x", "wip: add x"),
    ],
)
def test_the_subject_of_unfinished_work(subject: str, wip: str) -> None:
    assert wip_subject(subject) == wip


def test_only_the_commit_with_the_broken_file_is_unfinished() -> None:
    group = Group("feat: add a", "A a.py", (Changed("A", b"a.py"),))
    assert mark_wip(group, {b"b.py": "Python"}) == group
    marked = mark_wip(group, {b"a.py": "JSON: line 1: x"})
    assert marked.body == "A a.py\n\nDoes not parse:\n- a.py: JSON: line 1: x"
