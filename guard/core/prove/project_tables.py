"""Tell the tables of a project file that steer its tests from the others, and exchange them.

`pyproject.toml` has the dependencies of the code and the options of pytest in one file. HEAD's code is tried with the options
of the baseline: their tables are put into HEAD's file, text and all. The result is read again and compared, and a file in
which that cannot be done exactly is not exchanged at all.
"""

import json
import re
import tomllib
from collections.abc import Iterable
from configparser import Error as IniError
from configparser import RawConfigParser
from copy import deepcopy
from posixpath import basename
from typing import Any

from guard.core.base.first_use import late_pattern

_TOML_TABLES = {
    "pyproject.toml": (
        *(("tool", name) for name in ("pytest", "pytest_env", "coverage", "tox", "nox", "poe")),
        ("tool", "taskipy"),
        ("tool", "pdm", "scripts"),
        ("tool", "rye", "scripts"),
        ("tool", "pixi", "tasks"),
        ("tool", "hatch", "envs"),
    ),
    "Cargo.toml": (("test",), ("profile", "test"), ("lib",), ("bench",), ("package", "autotests")),
}
_PACKAGE_KEYS = ("babel", "jest", "vitest", "mocha", "ava", "nyc", "c8")
_HEADER = late_pattern(
    r"^[ \t]*\[{1,2}[ \t]*([^\[\]\n]+?)[ \t]*\]{1,2}[ \t]*(?:#.*)?$", re.MULTILINE
)


_DEPENDENCY_TABLES = {
    "pyproject.toml": (
        ("project", "dependencies"),
        ("project", "optional-dependencies"),
        ("project", "requires-python"),
        ("dependency-groups",),
        ("build-system",),
        ("tool", "poetry"),
        ("tool", "pdm"),
        ("tool", "uv"),
        ("tool", "hatch"),
    ),
    "Cargo.toml": (
        ("dependencies",),
        ("dev-dependencies",),
        ("build-dependencies",),
        ("workspace",),
    ),
}
_PACKAGE_DEPENDENCIES = (
    "dependencies",
    "devDependencies",
    "peerDependencies",
    "optionalDependencies",
    "overrides",
    "workspaces",
    "type",
)


class CannotGraft(ValueError):
    """The tables that steer the tests cannot be put into the other file."""


def steering_part(path: str, data: bytes | None) -> Any:
    """Return what in the file steers the tests; None if nothing does, the bytes themselves if it cannot be read."""
    if data is None:
        return None
    name = basename(path)
    try:
        if name in _TOML_TABLES:
            return _toml_part(name, tomllib.loads(data.decode()))[0] or None
        if name == "setup.cfg":
            return _ini_part(data.decode())[0] or None
        return _package_part(json.loads(data))[0] or None
    except (ValueError, IniError, RecursionError):
        return data


def dependency_part(path: str, data: bytes | None) -> Any:
    """Return what in the file names dependencies; the bytes themselves for a file that has no other purpose."""
    name = basename(path)
    try:
        if data is None:
            return None
        if name in _DEPENDENCY_TABLES:
            document = tomllib.loads(data.decode())
            return [_at(document, keys) for keys in _DEPENDENCY_TABLES[name]]
        if name == "setup.cfg":
            sections = _ini_part(data.decode())[1]
            return {key: sections.get(key) for key in ("options", "options.extras_require")}
        if name == "package.json":
            document = json.loads(data)
            return [document.get(key) for key in _PACKAGE_DEPENDENCIES]
    except (ValueError, AttributeError, IniError, RecursionError):
        pass
    return data


_LISTS = {
    "pnpm-workspace.yaml": re.compile(r"^\s*-\s*['\"]?([^'\"#\s]+)", re.MULTILINE),
    "go.work": re.compile(r"^\s*(?:use\s+)?(\.[^\s()]*)", re.MULTILINE),
}
"""How other files of workspaces list their packages."""
WORKSPACES = ("Cargo.toml", "package.json", *_LISTS)


def has_fewer_packages(path: str, before: bytes | None, after: bytes | None) -> bool:
    """Tell whether a file of a workspace names fewer packages than before: the tests of the others may not be run."""
    if before is None:
        return False
    named, excluded = _packages(basename(path), before)
    still_named, now_excluded = _packages(basename(path), after or b"")
    return not named <= still_named or not now_excluded <= excluded


def _packages(name: str, data: bytes) -> tuple[set[str], set[str]]:
    """Return the packages that a file of a workspace names, and those that it excludes."""
    try:
        if name == "Cargo.toml":
            table = tomllib.loads(data.decode()).get("workspace", {})
            members = (*table.get("members", ()), *table.get("default-members", ()))
            return set(map(str, members)), set(map(str, table.get("exclude", ())))
        if name == "package.json":
            listed = json.loads(data or b"{}").get("workspaces", ())
            listed = listed.get("packages", ()) if isinstance(listed, dict) else listed
            return _signed(map(str, listed))
    except (ValueError, TypeError, AttributeError, RecursionError):
        return set(), set()
    return _signed(_LISTS[name].findall(data.decode(errors="replace")) if name in _LISTS else ())


def _signed(names: Iterable[str]) -> tuple[set[str], set[str]]:
    found = set(names)
    out = {name for name in found if name.startswith("!")}
    return found - out, out


def _at(document: Any, keys: tuple[str, ...]) -> Any:
    for key in keys:
        document = document.get(key) if isinstance(document, dict) else None
    return document


def graft(path: str, head: bytes, base: bytes | None) -> bytes:
    """Return HEAD's file with the tables of the baseline that steer the tests."""
    name = basename(path)
    try:
        if name == "package.json":
            return _graft_package(json.loads(head), json.loads(base or b"{}"))
        if name == "setup.cfg":
            return _graft_ini(head.decode(), (base or b"").decode())
        return _graft_toml(name, head.decode(), (base or b"").decode())
    except (ValueError, IniError, RecursionError) as error:
        raise CannotGraft(f"the test tables of {path} cannot be exchanged: {error}") from None


def _is_steering(name: str, keys: tuple[str, ...]) -> bool:
    return any(keys[: len(table)] == table for table in _TOML_TABLES[name])


def _toml_part(name: str, document: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split a document into what steers the tests and the rest."""
    part: dict[str, Any] = {}
    rest = deepcopy(document)
    for table in _TOML_TABLES[name]:
        holders: list[Any] = [rest]
        for key in table[:-1]:
            holders.append(holders[-1].get(key) if isinstance(holders[-1], dict) else None)
        if isinstance(holders[-1], dict) and table[-1] in holders[-1]:
            part[".".join(table)] = holders[-1].pop(table[-1])
            # A table that only held this one is no difference.
            for holder, key in reversed(list(zip(holders, table, strict=False))):
                if holder.get(key) == {}:
                    del holder[key]
    return part, rest


def _sections(text: str) -> list[tuple[tuple[str, ...], str]]:
    """Cut a text at its table headers; what is before the first one has no name."""
    places = [(match.start(), match.group(1)) for match in _HEADER.finditer(text)]
    cuts = [0, *(place for place, _ in places), len(text)]
    names: list[tuple[str, ...]] = [(), *(_keys(name) for _, name in places)]
    return [(name, text[cuts[n] : cuts[n + 1]]) for n, name in enumerate(names)]


def _keys(header: str) -> tuple[str, ...]:
    return tuple(key.strip().strip("\"'") for key in header.split("."))


def _graft_toml(name: str, head: str, base: str) -> bytes:
    kept = [text for keys, text in _sections(head) if not _is_steering(name, keys)]
    taken = [text for keys, text in _sections(base) if _is_steering(name, keys)]
    text = "".join(_ended(piece) for piece in (*kept, *taken))
    document = tomllib.loads(text)
    part, rest = _toml_part(name, document)
    if part != _toml_part(name, tomllib.loads(base))[0]:
        raise ValueError("the baseline's tables are written in a way that guard does not know")
    if rest != _toml_part(name, tomllib.loads(head))[1]:
        raise ValueError("HEAD's tables are written in a way that guard does not know")
    return text.encode()


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"


def _ini_part(text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    parser = RawConfigParser(strict=False)
    parser.read_string(text)
    sections = {name: dict(parser.items(name)) for name in parser.sections()}
    part = {name: values for name, values in sections.items() if _steers_ini(name)}
    return part, {name: values for name, values in sections.items() if name not in part}


def _steers_ini(section: str) -> bool:
    return section == "aliases" or section.startswith(
        ("tool:pytest", "coverage:", "tox", "testenv")
    )


def _graft_ini(head: str, base: str) -> bytes:
    kept = [text for keys, text in _sections(head) if not _steers_ini(".".join(keys))]
    taken = [text for keys, text in _sections(base) if _steers_ini(".".join(keys))]
    text = "".join(_ended(piece) for piece in (*kept, *taken))
    part, rest = _ini_part(text)
    if (part, rest) != (_ini_part(base)[0], _ini_part(head)[1]):
        raise ValueError("the sections are written in a way that guard does not know")
    return text.encode()


def _package_part(document: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    if not isinstance(document, dict):
        raise ValueError("it is no JSON object")
    part = {key: document[key] for key in _PACKAGE_KEYS if key in document}
    rest = {key: value for key, value in document.items() if key not in part}
    scripts = document.get("scripts")
    if isinstance(scripts, dict):
        names = _test_scripts(scripts)
        tests = {key: value for key, value in scripts.items() if key in names}
        if tests:
            part["scripts"] = tests
        rest["scripts"] = {key: value for key, value in scripts.items() if key not in tests}
    return part, rest


def _test_scripts(scripts: dict[str, Any]) -> set[str]:
    """Return the scripts that tests are run by: those named so, and those that these call."""
    names = {key for key in scripts if "test" in key}
    ahead = list(names)
    while ahead:
        words = set(re.findall(r"[\w:.-]+", str(scripts[ahead.pop()])))
        # npm runs `prebuild` and `postbuild` with `build`.
        words |= {f"{when}{word}" for word in words for when in ("pre", "post")}
        called = scripts.keys() & words - names
        names |= called
        ahead += called
    return names


def _graft_package(head: Any, base: Any) -> bytes:
    part, rest = _package_part(base)[0], _package_part(head)[1]
    scripts = {**rest.get("scripts", {}), **part.get("scripts", {})}
    document = {**rest, **part}
    if scripts:
        document["scripts"] = scripts
    return json.dumps(document, indent=2).encode()
