"""Weigh what changed files contain: blanks alone, tests that are gone or skipped, functions without a body."""

import ast
import re
import warnings
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_MOST_PARSED = 200_000
_INDENTED = (".py", ".pyi", ".yaml", ".yml", ".mk", ".sass", ".pug", ".haml", ".coffee", "makefile")
"""In these files the blanks at the beginning of a line have a meaning."""
_TEST_FILE = re.compile(
    r"(?:^|/)(?:tests?|__tests__|specs?|testing)/|(?:^|/)tests?[._-][^/]*$|[._-](?:tests?|specs?)\.\w+$"
    r"|[a-z]Tests?\.\w+$|\.rs$",
    re.IGNORECASE,
)
_TESTS = re.compile(
    r"^\s*(?:(?:async )?def test\w*\(|(?:it|test|specify)(?:\.each\b.*?)?\s*\(|it ['\"]"
    r"|func Test\w*\(|(?:public )?function test\w*\(|#\[(?:\w+::)?test\]|@(?:Parameterized)?Test\b|\[(?:Fact|Theory|Test)\b)",
    re.MULTILINE,
)
_SKIPS = re.compile(
    r"@(?:pytest\.mark\.|unittest\.)?(?:skip\w*|xfail|expectedFailure)\b|pytest\.(?:skip|xfail)\(|pytestmark\b.*skip"
    r"|\.skipTest\(|\b(?:it|test|describe)\.(?:skip|todo|only)\b|^\s*x(?:it|test|describe)\s*\("
    r"|@(?:Disabled|Ignore)\b|#\[ignore|\bt\.Skip\w*\(|collect_ignore\b",
    re.MULTILINE,
)
_CASES = re.compile(r"\bparametrize\b|\.each\b|\bParameterizedTest\b|\bsubTest\(")
_FUNCTIONS = re.compile(
    r"\b(?:function|func|fn|fun)\b\s*\w*|=>\s*\{|^\s*(?:public|private|protected|static)[^=;\n]*\(",
    re.MULTILINE,
)
_STUBS = re.compile(
    r"(?:todo|unimplemented)!\(|throw new \w+\(\s*[\"'`][^\"'`]*not (?:yet )?implemented|NotImplementedException"
    r"|UnsupportedOperationException\(|panic\(\s*\"(?:not (?:yet )?implemented|todo)|\bTODO\("
    r"|\)[^(){};=]*\{\s*(?://[^\n]*(?:todo|implement)[^\n]*\s*)?(?:return;?\s*)?\}",
    re.IGNORECASE,
)


class TextChange(NamedTuple):
    """A changed text file; None where it does not exist."""

    path: str
    before: str | None
    after: str | None


class Substance(NamedTuple):
    """What the changes amount to, as far as they could be read."""

    only_blanks: bool = False
    """Whether nothing was changed but blanks and empty lines."""
    tests_removed: int = 0
    tests_skipped: int = 0
    functions: int = 0
    """How many functions were written or rewritten."""
    stubs: int = 0
    """How many of them have no body that does anything."""


def weigh(changes: Iterable[TextChange], *, whole: bool = True) -> Substance:
    """Weigh the changes; `whole` is False if others could not be read."""
    read = list(changes)
    tests = [change for change in read if _TEST_FILE.search(change.path)]
    cases = _difference(_CASES, tests)
    counts = [_count_functions(change) for change in read]
    return Substance(
        only_blanks=whole and bool(read) and all(map(_is_blank, read)),
        tests_removed=0 if cases > 0 else max(0, -_difference(_TESTS, tests)),
        tests_skipped=max(0, _difference(_SKIPS, tests)) + sum(map(_count_emptied, tests)),
        functions=sum(written for written, _ in counts),
        stubs=sum(stubs for _, stubs in counts),
    )


def _difference(pattern: re.Pattern[str], changes: Iterable[TextChange]) -> int:
    return sum(
        len(pattern.findall(change.after or "")) - len(pattern.findall(change.before or ""))
        for change in changes
    )


def _is_blank(change: TextChange) -> bool:
    if change.before is None or change.after is None:
        return not (change.before or change.after or "").strip()
    if change.path.casefold().endswith(_INDENTED):
        before, after = (_filled_lines(text) for text in (change.before, change.after))
        return before == after
    return "".join(change.before.split()) == "".join(change.after.split())


def _filled_lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def _count_functions(change: TextChange) -> tuple[int, int]:
    # The functions that were written, and the stubs among them.
    if change.after is None or change.path.endswith(".pyi"):
        return 0, 0
    if not change.path.endswith(".py"):
        functions = max(0, _difference(_FUNCTIONS, [change]))
        stubs = max(0, _difference(_STUBS, [change]))
        return max(functions, stubs), stubs
    before = dict(_functions_of(change.before or ""))
    written = [
        node
        for name, node in _functions_of(change.after)
        if not node.name.startswith("test")
        and (name not in before or ast.dump(before[name]) != ast.dump(node))
    ]
    return len(written), sum(map(_is_stub, written))


def _count_emptied(change: TextChange) -> int:
    # The tests that had a body and have none now.
    if not change.path.endswith(".py") or not change.before or not change.after:
        return 0
    before = dict(_functions_of(change.before))
    return sum(
        node.name.startswith("test")
        and name in before
        and not _is_stub(before[name])
        and _is_stub(node)
        for name, node in _functions_of(change.after)
    )


_Function = ast.FunctionDef | ast.AsyncFunctionDef


def _functions_of(source: str) -> Iterator[tuple[str, _Function]]:
    # Without those that need no body: abstract ones, overloads, protocols.
    if len(source) > _MOST_PARSED:
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    ahead: list[tuple[str, ast.AST]] = [("", tree)]
    while ahead:
        prefix, parent = ahead.pop()
        for node in ast.iter_child_nodes(parent):
            name = f"{prefix}.{getattr(node, 'name', '')}"
            if isinstance(node, ast.ClassDef) and not _mentions(node.bases, "Protocol"):
                ahead.append((name, node))
            elif isinstance(node, _Function):
                if not _mentions(node.decorator_list, "abstractmethod", "overload"):
                    yield name, node
                ahead.append((name, node))
            elif not isinstance(node, ast.expr | ast.ClassDef):
                ahead.append((prefix, node))


def _mentions(nodes: Iterable[ast.expr], *names: str) -> bool:
    return any(
        getattr(part, "id", None) in names or getattr(part, "attr", None) in names
        for node in nodes
        for part in ast.walk(node)
    )


def _is_stub(function: _Function) -> bool:
    return all(map(_does_nothing, function.body))


def _does_nothing(node: ast.stmt) -> bool:
    match node:
        case ast.Pass() | ast.Expr(value=ast.Constant()):
            return True
        case ast.Raise(exc=ast.expr() as raised):
            return _mentions([raised], "NotImplementedError")
        case ast.Assert(test=ast.Constant(value=value)):
            return bool(value)
    return False
