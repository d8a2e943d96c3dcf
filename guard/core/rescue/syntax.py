"""Tell whether a file parses, without running anything of it.

A hostile file can make Python's parser slow, or crash it: guard runs the text of this module in a process of its own, where
it has the standard library and nothing else.
"""

import ast
import json
import re
import sys
import tomllib
import warnings

CONFLICT = "conflict markers"
_PYTHON_LINE = re.compile(rb"#!.*\bpython(?!2)[\d.]*\b")
_CONFLICT_START = re.compile(rb"^<{7}(?: .*)?\r?$", re.MULTILINE)
_CONFLICT_REST = (re.compile(rb"^={7}\r?$", re.MULTILINE), re.compile(rb"^>{7}(?: .*)?\r?$", re.MULTILINE))  # fmt: skip
_TEMPLATE_PATH = re.compile(
    r"\{\{|(?:^|/)(?:templates?|[^/]*_template|cookiecutter[^/]*|skeletons?|scaffolds?)/"
)
_TEMPLATE_TEXT = re.compile(rb"\{%-?\s*\w.*?%\}|<%.*?%>")
_TEMPLATE_VALUE = re.compile(rb"\{\{.*?\}\}")
_OTHER_PYTHON = re.compile(
    r"f-string|multiple exception types must be parenthesized|unknown encoding"
)
"""Faults that another version of Python, or an encoding of the project's own, may not find."""
_NEWER_LINE = re.compile(
    r"\s*(?:type\s+\w+.*=|(?:async\s+)?(?:def|class)\s+\w+\[)|.*\b[tT][rR]?[\"']"
)
_IN_JSONC = re.compile(rb'("(?:[^"\\\n]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_LAST_COMMA = re.compile(rb'("(?:[^"\\\n]|\\.)*")|,(?=\s*[}\]])')
_LONGEST = 120


def language(path: str, data: bytes) -> str | None:
    """Return the language that guard can parse the file as, if its name or first line says so."""
    ending = path.rpartition("/")[2].rpartition(".")[2].lower() if "." in path else ""
    if ending in ("py", "pyi") or (data.startswith(b"#!") and _PYTHON_LINE.match(data)):
        is_python_2 = data.startswith(b"#!") and b"python2" in data.partition(b"\n")[0]
        return None if is_python_2 else "Python"
    return {"json": "JSON", "ipynb": "JSON", "toml": "TOML"}.get(ending)


def find_conflict(data: bytes) -> bool:
    """Tell whether a text has the markers of a merge conflict: its first line, and one of the others."""
    if b"\0" in data[:8000] or not _CONFLICT_START.search(data):
        return False
    return any(pattern.search(data) for pattern in _CONFLICT_REST)


def find_fault(path: str, data: bytes) -> str | None:
    """Return why a file does not parse; None if it does, is empty or a template, or if guard cannot tell."""
    name = language(path, data)
    if not data.strip():
        return None
    fault = None
    if name is not None:
        fault = {"Python": _python_fault, "JSON": _json_fault, "TOML": _toml_fault}[name](data)
        if fault is None:
            # Markers inside a string or a comment do no harm.
            return None
    if find_conflict(data):
        return CONFLICT
    if fault is None or _is_template(path, data, name):
        return None
    return " ".join(f"{name}: {fault}".split())[:_LONGEST]


def _is_template(path: str, data: bytes, name: str | None) -> bool:
    if _TEMPLATE_PATH.search(path) or _TEMPLATE_TEXT.search(data):
        return True
    return name != "Python" and _TEMPLATE_VALUE.search(data) is not None


def _python_fault(data: bytes) -> str | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(data, "<file>", "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
        except SyntaxError as error:
            if _OTHER_PYTHON.search(error.msg) or _NEWER_LINE.match(error.text or ""):
                return None
            return f"{sys.version_info[0]}.{sys.version_info[1]}: line {error.lineno}: {error.msg}"
        except ValueError as error:
            return str(error)
        except (RecursionError, MemoryError):
            return None
    return None


def _json_fault(data: bytes) -> str | None:
    try:
        _load_json(data)
    except (ValueError, RecursionError) as error:
        if isinstance(error, RecursionError) or _is_json_dialect(data):
            return None
        if isinstance(error, json.JSONDecodeError):
            return f"line {error.lineno}: {error.msg}"
        return str(error)
    return None


def _load_json(data: bytes) -> None:
    json.loads(data, parse_int=str)


def _is_json_dialect(data: bytes) -> bool:
    """Tell whether it is JSON with comments and commas at the end, or one JSON value per line."""
    plain = _LAST_COMMA.sub(rb"\1", _IN_JSONC.sub(rb"\1", data))
    try:
        _load_json(plain)
    except (ValueError, RecursionError):
        lines = [line for line in data.splitlines() if line.strip()]
        try:
            for line in lines:
                _load_json(line)
        except (ValueError, RecursionError):
            return False
        # A text of one line is no list of values.
        return len(lines) > 1
    return True


def _toml_fault(data: bytes) -> str | None:
    try:
        tomllib.loads(data.decode("utf-8-sig").replace("\r\n", "\n"), parse_float=str)
    except ValueError as error:
        return str(error)
    except RecursionError:
        return None
    return None


def find_new_fault(path: str, data: bytes, before: bytes | None) -> str | None:
    """Return why a file no longer parses, or a new one does not.

    One that did not parse before either tells nothing of this work: guard's parser may not be the project's.
    """
    fault = find_fault(path, data)
    if fault is None or before is None or not before.strip():
        return fault
    was = find_fault(path, before)
    return fault if was is None or (fault == CONFLICT and not find_conflict(before)) else None
