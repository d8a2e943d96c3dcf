"""Tell whether a file of tests could change what the tests of other files see, because they share a process.

A new test may put a function into the code under test, or take tests out of the session. Then the old tests are run without it.
The answer only decides how much is run, so what is not plainly contained counts as reaching out.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from posixpath import splitext

_JAVASCRIPT = frozenset(f".{kind}{end}" for kind in ("js", "ts") for end in ("", "x")) | frozenset(
    (".mjs", ".cjs", ".mts", ".cts")
)
_REACHING_MODULES = frozenset(
    ("_pytest", "atexit", "builtins", "ctypes", "gc", "importlib", "pluggy")
)
_REACHING_NAMES = frozenset(
    (
        "__import__",
        "compile",
        "delattr",
        "eval",
        "exec",
        "globals",
        "locals",
        "setattr",
        "vars",
    )
)
_REACHING_FIXTURES = frozenset(("config", "pytestconfig", "request", "session"))
_REACHING_ATTRIBUTES = frozenset(
    (
        *("MonkeyPatch", "chdir", "enter_context", "meta_path", "modules", "path_hooks", "putenv"),
        *("setprofile", "settrace", "start", "install"),
    )
)
_MUTATORS = frozenset(
    (
        *("add", "append", "clear", "discard", "extend", "insert", "pop", "popitem", "register"),
        *("remove", "reverse", "setdefault", "sort", "update"),
    )
)
_WIDE_SCOPES = ("session", "package")
_PLAIN = frozenset(("__doc__", "__file__", "__name__"))
_GO = re.compile(
    r"\bfunc (?:init|TestMain)\(|\bvar _\b|//go:linkname|\b(?:flag|os|plugin|reflect|runtime|syscall|unsafe)\."
    r"|^[ \t]*[\w.\[\]*\"]+(?:, [\w.]+)* [-+*/|&^%]?= |(?:\+\+|--)$",
    re.MULTILINE,
)


def may_reach_out(path: str, text: str, *, is_isolated: bool) -> bool:
    """Tell it of a test file by its text; `is_isolated` says whether the runner keeps files of JavaScript apart."""
    end = splitext(path)[1]
    if end in _JAVASCRIPT:
        return not is_isolated
    if end == ".go":
        return _GO.search(text) is not None
    if end == ".rs":
        # Cargo makes a program of each file below tests/.
        return False
    return end != ".py" or _python_reaches(text)


def _python_reaches(text: str) -> bool:
    try:
        tree = ast.parse(text)
        imported = _Imported.by(tree)
        is_plain = all(_is_plain(one) for one in tree.body)
        return not is_plain or any(_reaches(node, imported) for node in _walk(tree))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return True


def _walk(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield all nodes but those of annotations, which name types."""
    ahead = [tree]
    while ahead:
        node = ahead.pop()
        yield node
        for name, value in ast.iter_fields(node):
            if name not in ("annotation", "returns"):
                found = value if isinstance(value, list) else [value]
                ahead += [one for one in found if isinstance(one, ast.AST)]


def _is_plain(statement: ast.stmt) -> bool:
    """Tell whether a statement of the module calls nothing when it is loaded, but to give the answer a name."""
    return not isinstance(statement, ast.Expr) or isinstance(statement.value, ast.Constant)


@dataclass(frozen=True)
class _Imported:
    """The names that a file has from others."""

    modules: frozenset[str]
    members: frozenset[str]
    """What comes out of a module: a function, a table, or a module again."""

    @classmethod
    def by(cls, tree: ast.Module) -> "_Imported":
        found: dict[type, set[str]] = {ast.Import: set(), ast.ImportFrom: set()}
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = ((one.asname or one.name).partition(".")[0] for one in node.names)
                found[type(node)].update(names)
        return cls(frozenset(found[ast.Import]), frozenset(found[ast.ImportFrom]))

    def has(self, name: str) -> bool:
        return name in self.modules or name in self.members


def _reaches(node: ast.AST, imported: _Imported) -> bool:
    match node:
        case ast.Import():
            return any(one.name.partition(".")[0] in _REACHING_MODULES for one in node.names)
        case ast.ImportFrom():
            top = (node.module or "").partition(".")[0]
            return top in _REACHING_MODULES or any(
                one.name in _REACHING_ATTRIBUTES for one in node.names
            )
        case ast.Name():
            is_written = not isinstance(node.ctx, ast.Load)
            return node.id in _REACHING_NAMES or (is_written and _is_special(node.id))
        case ast.arg():
            return node.arg in _REACHING_FIXTURES
        case ast.Attribute():
            return _attribute_reaches(node)
        case ast.Subscript():
            is_written = not isinstance(node.ctx, ast.Load)
            is_own = isinstance(node.value, ast.Name) and not imported.has(node.value.id)
            return is_written and not is_own
        case ast.Call():
            return _call_reaches(node, imported)
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return node.name.startswith("pytest_") or _has_rebound_self(node)
    return False


def _is_special(name: str) -> bool:
    return name in ("self", "cls") or name.startswith("pytest_")


def _attribute_reaches(node: ast.Attribute) -> bool:
    if node.attr in _REACHING_ATTRIBUTES:
        # This fixture takes back what it does.
        return not (isinstance(node.value, ast.Name) and node.value.id == "monkeypatch")
    if node.attr.startswith("_") and node.attr not in _PLAIN:
        return True
    is_own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
    return not isinstance(node.ctx, ast.Load) and not is_own


def _call_reaches(node: ast.Call, imported: _Imported) -> bool:
    """Tell whether a call changes an imported object, or makes a fixture that outlives its file."""
    scopes = (
        word.value.value if isinstance(word.value, ast.Constant) else None
        for word in node.keywords
        if word.arg == "scope"
    )
    if any(scope is None or scope in _WIDE_SCOPES for scope in scopes):
        return True
    called = node.func
    if isinstance(called, ast.Name) and called.id == "getattr":
        word = node.args[1] if len(node.args) > 1 else None
        name = word.value if isinstance(word, ast.Constant) else None
        return not isinstance(name, str) or name.startswith("_")
    if not isinstance(called, ast.Attribute) or called.attr not in _MUTATORS:
        return False
    if isinstance(called.value, ast.Name) and called.value.id in imported.modules:
        return False  # A function of a module, which only has such a name.
    return any(map(imported.has, _roots(called.value)))


def _roots(node: ast.expr) -> Iterator[str]:
    """Yield the name at the beginning of a chain such as `calc.TABLE["a"].rows`."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    if isinstance(node, ast.Name):
        yield node.id


def _has_rebound_self(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Tell whether `self` may be something else than an object of a test class: it has a default, or is no first argument."""
    arguments = [*node.args.posonlyargs, *node.args.args]
    names = [one.arg for one in (*arguments, *node.args.kwonlyargs)]
    if "self" not in names and "cls" not in names:
        return False
    is_first = names[0] in ("self", "cls") and not {"self", "cls"} & set(names[1:])
    return not is_first or len(node.args.defaults) >= len(arguments)


def count_patches(text: str) -> int:
    """Count the places where code changes what it has imported: a new test that loads it mends what the old tests see."""
    try:
        tree = ast.parse(text)
        imported = _Imported.by(tree)
        return sum(_patches(node, imported) for node in ast.walk(tree))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return 1


def _patches(node: ast.AST, imported: _Imported) -> bool:
    match node:
        case ast.Attribute(attr="__code__" | "__dict__" | "__globals__" | "__setattr__"):
            return True
        case ast.Attribute() | ast.Subscript():
            is_written = not isinstance(node.ctx, ast.Load)
            return is_written and any(map(imported.has, _roots(node)))
        case ast.Call(func=ast.Name(id="setattr" | "delattr" | "vars")):
            return True
        case ast.Call(func=ast.Attribute(attr=name, value=value)) if name in _MUTATORS:
            return any(map(imported.has, _roots(value)))
    return False
