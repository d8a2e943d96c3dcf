"""Validate state and configuration files against the published schemas."""

import re
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import cache
from math import isfinite
from pathlib import Path
from typing import Any

from guard import schemas
from guard.context.config import own_section
from guard.core.base.json_text import loads
from guard.core.base.text import plural, utf8_text
from guard.core.log.record import BadRecord, unseal_line
from guard.core.log.reports import Finding
from guard.system.foreign_files import read_regular

MOST_BYTES = 64 * 1024 * 1024
_NAMED = {
    "AGENT_REGISTRY.json": "agent-registry",
    "FINDINGS.json": "findings",
    "GLOBAL_REGISTRY.json": "global-registry",
    "agent-baseline.json": "agent-baseline",
    "watched.json": "watched-agent",
    "answer.json": "answer",
    "baseline.json": "baseline",
    "breaker.json": "breaker",
    "check.json": "last-check",
    "warnings.json": "check-warnings",
    "checkpoint.json": "checkpoint",
    "clocks.json": "machine-clocks",
    "run.json": "run",
}
_SEGMENT = re.compile(r"events(\.\d{6})?\.jsonl")
_HINT = "`guard schema {kind}` prints what is expected"


def check(path: Path) -> Iterator[Finding]:
    try:
        data = read_regular(path, MOST_BYTES)
        if len(data) > MOST_BYTES:
            raise ValueError(f"it has more than {plural(MOST_BYTES, 'byte')}")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        yield Finding(
            file=utf8_text(path), place="", problem=f"cannot be read: {reason}", hint=None
        )
        return
    for place, problem, kind in _checker(path)(path, data):
        hint = _HINT.format(kind=kind) if kind else None
        yield Finding(
            file=utf8_text(path), place=utf8_text(place), problem=utf8_text(problem), hint=hint
        )


def problems(name: str, data: bytes) -> Iterator[tuple[str, str]]:
    """Yield the place and the text of each problem in these bytes; `name` decides the format, no file is read."""
    path = Path(name)
    if len(data) > MOST_BYTES:
        yield "", f"it has more than {plural(MOST_BYTES, 'byte')}"
        return
    for place, problem, _kind in _checker(path)(path, data):
        yield place, problem


Problem = tuple[str, str, str | None]


def _checker(path: Path) -> Callable[[Path, bytes], Iterator[Problem]]:
    if _SEGMENT.fullmatch(path.name):
        return _check_log
    return _check_toml if path.suffix == ".toml" else _check_json


def _check_json(path: Path, data: bytes) -> Iterator[Problem]:
    try:
        document = loads(data)
    except (ValueError, RecursionError) as error:
        yield "", f"not JSON: {error}", None
        return
    kind, problem = _kind(path, document)
    if kind is None:
        yield "$.schema", problem, None
        return
    yield from _against(kind, document)


def _check_log(_path: Path, data: bytes) -> Iterator[Problem]:
    # Each line is checked by itself; `guard verify` checks the chain of lines.
    *lines, _torn = data.split(b"\n")
    for number, line in enumerate(lines, 1):
        try:
            unseal_line(line)
            record = loads(line)
        except BadRecord as error:
            yield f"line {number}", str(error), "event"
            continue
        except (ValueError, RecursionError) as error:
            yield f"line {number}", f"not JSON: {error}", "event"
            continue
        for place, problem, kind in _against("event", record):
            yield f"line {number} {place}", problem, kind


def _check_toml(path: Path, data: bytes) -> Iterator[Problem]:
    import tomllib

    try:
        document = tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:
        yield "", f"not TOML: {error}", None
        return
    yield from _against("settings", own_section(path, document))


def _kind(path: Path, document: Any) -> tuple[str | None, str]:
    named = document.get("schema") if isinstance(document, dict) else None
    if isinstance(named, str):
        words = named.split("/")
        if len(words) == 3 and words[0] == "guard" and words[1] in schemas.names():
            version = _version(words[1])
            if words[2] == version:
                return words[1], ""
            return (
                None,
                f"{named!r} is a format that this guard does not know: it knows version {version}",
            )
        return None, f"{named!r} is not a format of guard"
    if path.name in _NAMED:
        return _NAMED[path.name], ""
    return None, "the document has no `schema` and its file name is none of guard's"


def _version(kind: str) -> str:
    known: str = schemas.load(kind).get("properties", {}).get("schema", {}).get("const", "")
    return known.rpartition("/")[2] or "1"


def _against(kind: str, document: Any) -> Iterator[Problem]:
    errors = [cause for error in validator(kind).iter_errors(document) for cause in _causes(error)]
    for error in sorted(errors, key=lambda e: (list(map(str, e.absolute_path)), e.message)):
        yield error.json_path, _shorten(error.message), kind


def _causes(error: Any) -> Iterator[Any]:
    # If several variants are allowed, only the errors of the most likely one are shown.
    branches: dict[int, list[Any]] = {}
    for inner in error.context:
        branches.setdefault(inner.schema_path[0], []).append(inner)
    meant = [inner for inner in branches.values() if not any(map(_is_another_form, inner))]
    if not meant:
        yield error
        return
    for inner in min(meant, key=len):
        yield from _causes(inner)


def _is_another_form(error: Any) -> bool:
    tagged = error.validator == "const" and list(error.relative_path) == ["type"]
    return tagged or (error.validator == "type" and not error.relative_path)


def _shorten(message: str) -> str:
    return message if len(message) <= 200 else f"{message[:120]} … {message[-70:]}"


@cache
def validator(kind: str) -> Any:
    """Return the Draft 2020-12 validator of a kind, stricter in three ways.

    `1.0` is not an integer, times are checked, and `$` in a pattern matches only at the end of the text.
    """
    from jsonschema import Draft202012Validator, FormatChecker, validators

    def is_integer(_checker: Any, value: Any) -> bool:
        return isinstance(value, int) and not isinstance(value, bool)

    formats = FormatChecker(formats=())
    formats.checks("date-time")(_is_instant)

    def is_number(_checker: Any, value: Any) -> bool:
        return is_integer(None, value) or (isinstance(value, float) and isfinite(value))

    types = Draft202012Validator.TYPE_CHECKER.redefine_many(
        {"integer": is_integer, "number": is_number}
    )
    extend: Any = validators.extend
    strict = extend(Draft202012Validator, {"pattern": _pattern}, type_checker=types)
    return strict(schemas.load(kind), format_checker=formats)


def _is_instant(value: object) -> bool:
    if not isinstance(value, str):
        return True
    try:
        return datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False


def _pattern(_validator: Any, pattern: str, value: Any, _schema: Any) -> Iterator[Any]:
    # Python's `$` also matches before a final newline; the `$` of the standard does not.
    from jsonschema import ValidationError

    ended = re.sub(r"\$\Z", r"\\Z", pattern)
    if isinstance(value, str) and re.search(ended, value) is None:
        yield ValidationError(f"{value!r} does not match {pattern!r}")
