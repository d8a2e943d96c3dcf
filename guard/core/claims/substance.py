"""Weigh what changed files contain: blanks alone, tests that are gone or skipped, functions without a body."""

import ast
import re
import warnings
from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import NamedTuple

from guard.core.base.first_use import late_pattern
from guard.core.claims.runner_settings import RunnerSettings, find_steering

_MOST_PARSED = 200_000
_INDENTED = (".py", ".pyi", ".yaml", ".yml", ".mk", ".sass", ".pug", ".haml", ".coffee", "makefile")
"""In these files the blanks at the beginning of a line have a meaning."""
_TEST_FILE = late_pattern(
    r"(?:^|/)(?:tests?|__tests__|specs?|testing)/|(?:^|/)tests?[._-][^/]*$|[._-](?:tests?|specs?)\.\w+$"
    r"|[a-z]Tests?\.\w+$|\.rs$",
    re.IGNORECASE,
)
_SET_ASIDE = (".bak", ".old", ".orig", ".disabled", ".off", ".skip", ".txt", ".md")
"""A test file with such an ending is run no more."""
_TESTS = late_pattern(
    r"^\s*(?:(?:async )?def test\w*|(?:it|test|specify)(?:\.each\b.*?)?\s*\(|it ['\"]"
    r"|func [Tt]est\w*\(|test ['\"]|TEST(?:_[FP])?\("
    r"|(?:public )?function test\w*\(|#\[(?:\w+::)?test\]|@(?:Parameterized)?Test\b|\[(?:Fact|Theory|Test)\b)",
    re.MULTILINE,
)
_SKIPS = late_pattern(
    r"@(?:pytest\.mark\.|unittest\.)?(?:skip\w*|xfail|expectedFailure)\b|pytest\.(?:skip|xfail|importorskip)\(|pytestmark\b.*skip"
    r"|\.skipTest\(|SkipTest\(|\b(?:it|test|describe)\.(?:skip|todo|only|fixme|fails)\w*"
    r"|^\s*x(?:it|test|describe)\b"
    r"|@(?:Disabled|Ignore)\b|#\[ignore|\bt\.Skip\w*\(|collect_ignore|add_marker\(.*\bskip|^\s*(?:pending|skip)(?: ['\"]|$)"
    r"|\[(?:\w+, *)?Ignore\b|\(Skip ?=|markTest(?:Skipped|Incomplete)\(|XCTSkip\w*\("
    r"|@(?:module)?tag :?skip|\bskip: true|DISABLED_",
    re.MULTILINE,
)
_CASES = late_pattern(r"\bparametrize\b|\.each\b|\bParameterizedTest\b|\bsubTest\(")
_FUNCTIONS = late_pattern(
    r"\b(?:function|func|fn|fun)\b\s*\w*|=>\s*\{|^\s*(?:public|private|protected|static)[^=;\n]*\(",
    re.MULTILINE,
)
_STUBS = late_pattern(
    r"(?:todo|unimplemented)!\(|throw new \w+\(\s*[\"'`][^\"'`]*not (?:yet )?implemented|NotImplementedException"
    r"|UnsupportedOperationException\(|panic\(\s*\"(?:not (?:yet )?implemented|todo)|\bTODO\("
    r"|\{\s*//[^\n]*\b(?:todo|fixme|implement|placeholder|stub)\b[^\n]*\s*return\b[^(;{}\n]{0,20}(?:\{\})?;?\s*\}"
    r"|\)[^(){};=]*\{\s*(?://[^\n]*(?:todo|implement)[^\n]*\s*)?(?:return;?\s*)?\}",
    re.IGNORECASE,
)

_LEFT_TO_DO = late_pattern(r"#.*\b(?:todo|fixme|implement|placeholder|stub)\b", re.IGNORECASE)
_UNWRITTEN = late_pattern(r"\bnot (?:yet )?implemented|\bunimplemented|\Atodo\b", re.IGNORECASE)


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
    steering: RunnerSettings = RunnerSettings()
    """What was changed of the files that steer the tests."""


def weigh(changes: Iterable[TextChange], *, whole: bool = True) -> Substance:
    """Weigh the changes; `whole` is False if others could not be read."""
    read = list(changes)
    tests = [
        change
        for change in read
        if _TEST_FILE.search(change.path) and not change.path.endswith(_SET_ASIDE)
    ]
    # A skip in a new file is no test that was skipped, unless the file was moved.
    moved = any(change.after is None for change in tests)
    known = [change for change in tests if moved or change.before is not None]
    cases = _difference(_CASES, tests)
    counts = [_count_functions(change) for change in read]
    return Substance(
        only_blanks=whole and bool(read) and all(map(_is_blank, read)),
        tests_removed=0 if cases > 0 else max(0, -_difference(_TESTS, tests)),
        tests_skipped=max(0, _difference(_SKIPS, known)) + sum(map(_count_emptied, tests)),
        functions=sum(written for written, _ in counts),
        stubs=sum(stubs for _, stubs in counts),
        steering=find_steering(read),
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
        return before == after or _is_same_program(change)
    return "".join(change.before.split()) == "".join(change.after.split())


def _is_same_program(change: TextChange) -> bool:
    # Python whose lines were indented or broken otherwise.
    texts = (change.before or "", change.after or "")
    if not change.path.endswith(".py") or len({"".join(text.split()) for text in texts}) > 1:
        return False
    trees = [_parse(text) for text in texts]
    dumps = {_dump(tree) for tree in trees if tree is not None}
    return None not in trees and dumps != {""} and len(dumps) == 1


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
        and (name not in before or _dump(before[name]) != _dump(node))
    ]
    lines = change.after.splitlines()
    stubs = sum(_is_stub(node) or _is_placeholder(node, lines) for node in written)
    return len(written), stubs


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
    tree = _parse(source)
    if tree is None:
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


def _parse(source: str) -> ast.Module | None:
    if len(source) > _MOST_PARSED:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _dump(node: ast.AST) -> str:
    # Empty if it is nested too deep.
    try:
        return ast.dump(node)
    except RecursionError:
        return ""


def _mentions(nodes: Iterable[ast.expr], *names: str) -> bool:
    return any(
        getattr(part, "id", None) in names or getattr(part, "attr", None) in names
        for node in nodes
        for part in ast.walk(node)
    )


def _is_stub(function: _Function) -> bool:
    reached = list(takewhile(lambda node: not _leaves(node), function.body))
    return all(map(_does_nothing, reached)) and (
        len(reached) == len(function.body) or function.name.startswith("test")
    )


def _is_placeholder(function: _Function, lines: list[str]) -> bool:
    # One value that is always the same, below a comment that says so.
    body = [node for node in function.body if not isinstance(node, ast.Expr | ast.Pass)]
    own = lines[function.lineno - 1 : function.end_lineno]
    if len(body) != 1 or not any(_LEFT_TO_DO.search(line) for line in own):
        return False
    (node,) = body
    return isinstance(node, ast.Return) and not any(
        isinstance(part, ast.Name | ast.Call) for part in ast.walk(node)
    )


def _leaves(node: ast.stmt) -> bool:
    # What stands behind it in a test is never run.
    return isinstance(node, ast.Return) and node.value is None


def _does_nothing(node: ast.stmt) -> bool:
    match node:
        case ast.Pass() | ast.Expr(value=ast.Constant()):
            return True
        case ast.Raise(exc=ast.expr() as raised):
            texts = (part.value for part in ast.walk(raised) if isinstance(part, ast.Constant))
            return _mentions([raised], "NotImplementedError") or any(
                isinstance(text, str) and _UNWRITTEN.search(text) for text in texts
            )
        case ast.Assert(test=test):
            return not any(isinstance(part, ast.Name | ast.Call) for part in ast.walk(test))
    return False
