"""Find the files that steer a project's tests, though custom does not call them so: scripts, plugins, names of one's own."""

import json
import re
import sys
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from posixpath import dirname, join, normpath, splitext

from guard.core.prove.file_roles import (
    CODE_ENDS,
    PARTLY_STEERING,
    FileRoles,
    is_dependency_file,
    matches_glob,
    words_of,
)
from guard.core.prove.project_tables import steering_part

LINK = "120000"
_RECIPES = (
    *("Makefile", "makefile", "GNUmakefile", "justfile", "Justfile", "Taskfile.yml", "Rakefile"),
    *("tox.ini", "tox.toml", "noxfile.py", "setup.cfg", "pyproject.toml", "package.json"),
    *("pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", ".npmrc"),
)
_COMPILED = frozenset(
    f".{end}" for end in ("pyc", "pyo", "so", "pyd", "dylib", "dll", "class", "node")
)
_UNCHECKED = b"\x01\0\0\0"
_SCRIPTS = frozenset(
    f".{end}"
    for end in ("sh", "bash", "zsh", "ksh", "fish", "pl", "pm", "awk", "lua", "tcl", "ps1")
)
_EXECUTABLE = "100755"
_STARTS_RUNNER = re.compile(
    r"(?<![\w-])(?:pytest|py\.test|unittest|tox|nox|coverage|jest|vitest|mocha|ava|npm|pnpm|yarn|bun|npx|make|just|bats"
    r"|rspec|rake|phpunit|mvnw?|gradlew?|ctest|dotnet|swift|mix|node --test|(?:go|cargo|deno) (?:\+\S+ )?test)(?![\w-])"
)
_PLUGIN_TABLE = re.compile(r"pytest11([^\[]*\[?[^\[]*)")
_PLUGIN_MODULE = re.compile(r"=\s*['\"]?([A-Za-z_][\w.]*)")
PACKAGING = ("pyproject.toml", "setup.cfg", "setup.py")
_MOST_FILES = 200
_MOST_CONFTESTS = 50
_ENDS = r"[\w./-]+\.(?:py|js|mjs|cjs|ts|rb|php)"
_EXECUTED = re.compile(
    rf"(?:^|[;&|(\n]|(?<!\S))\s*(?:(?:python|pypy)[\d.]*|node|ruby|php|deno run|bun|ts-node|tsx)"
    rf"(?:\s+-[-\w=./]+)*\s+(?:\./)?({_ENDS})(?!\S)"
    rf"|(?:^|[;&|(\n])\s*\./({_ENDS})",
    re.MULTILINE,
)
_LOADED = re.compile(
    rf"(?:--require|--import|--loader|--experimental-loader|-r)[ =]+['\"]?(?:\./)?({_ENDS})"
)
_SET_UP = re.compile(
    r"(?:setup\w*|globalSetup|globalTeardown|testEnvironment|testRunner|resolver|require)['\"]?\s*[:=]\s*(\[[^\]]*\]|[^\n]*)",
    re.IGNORECASE,
)
_PLUGIN_OPTION = re.compile(r"(?<![\w-])-p['\"]?[ =,]*['\"]?([A-Za-z_][\w.]*)")
_PLUGIN_NAMES = re.compile(r"pytest_plugins\b[^=\n]*=\s*(\[[^\]]*\]|\([^)]*\)|[^\n]*)")
_MODULE_NAMES = re.compile(r"python_files['\"]?\s*[=:]\s*(\[[^\]]*\]|[^\n]*(?:\n[ \t]+[^\n]*)*)")
_PATTERN = re.compile(r"(?:-p|--pattern)[ =]+['\"]?([\w*?.\[\]-]*\*[\w*?.\[\]-]*\.py)")
_HOLDS_TESTS = re.compile(
    r"^\s*(?:async\s+)?(?:def (?:test|check)\w*|class \w*(?:TestCase|Test\w*))|\bunittest\b|\bpytest\b|node:test"
    r"|^\s*(?:test|it|describe|suite)\s*\(|\b#\[test\]",
    re.MULTILINE,
)
_ASKS_FOR_DOCTESTS = "doctest"


@dataclass(frozen=True)
class Steering:
    """What steers the tests of a baseline besides the files that custom calls so."""

    named: frozenset[str] = frozenset()
    code: frozenset[str] = frozenset()
    """Files among these that may be code of the project, too: plugins, and programs that the command starts."""
    modules: tuple[str, ...] = ()
    linked: tuple[str, ...] = ()
    has_doctests: bool = False


@dataclass
class _Trail:
    files: Mapping[str, str]
    read: Callable[[str], str | None]
    named: set[str] = field(default_factory=set)
    code: set[str] = field(default_factory=set)
    tests: set[str] = field(default_factory=set)
    modules: list[str] = field(default_factory=list)
    has_doctests: bool = False
    _seen: set[str] = field(default_factory=set)
    _ahead: list[str] = field(default_factory=list)

    def look(self, text: str, folder: str = "") -> None:
        """Take in what a command, or a file that it follows, names."""
        self.has_doctests |= _ASKS_FOR_DOCTESTS in text
        for found in (*_EXECUTED.finditer(text), *_LOADED.finditer(text)):
            self._add_program(next(filter(None, reversed(found.groups()))), folder)
        for name in _PLUGIN_OPTION.findall(text):
            self._add_plugin(name)
        for found in _MODULE_NAMES.findall(text):
            self.modules += re.findall(r"[\w.*?-]*[\w?-][\w.*?-]*\.py", found)
        self.modules += _PATTERN.findall(text)
        for word in words_of(text):
            self._add_word(word, folder)

    def _add_word(self, word: str, folder: str) -> None:
        for path in {normpath(word), normpath(join(folder, word))} & self.files.keys():
            self._add_file(path)
        if "*" in word and splitext(word)[1] in CODE_ENDS:
            matching = [path for path in self.files if matches_glob(path, word)]
            for path in matching[:_MOST_FILES]:
                self._add_file(path)

    def _add_file(self, path: str) -> None:
        if path in PARTLY_STEERING or is_dependency_file(path):
            return
        if splitext(path)[1] in CODE_ENDS:
            # A linter, or a measure of coverage, names code that is not steering at all.
            if _HOLDS_TESTS.search(self.read(path) or ""):
                self.tests.add(path)
            return
        self.named.add(path)
        if self._may_be_program(path):
            self.code.add(path)
        self._follow(path)

    def _may_be_program(self, path: str) -> bool:
        """Tell whether a script is more than a recipe that starts a test runner: then it may be what is tested."""
        end = splitext(path)[1]
        is_script = end in _SCRIPTS or (not end and self.files[path] == _EXECUTABLE)
        return is_script and _STARTS_RUNNER.search(self.read(path) or "") is None

    def _follow(self, path: str) -> None:
        if path not in self._seen and len(self._seen) < _MOST_FILES:
            self._seen.add(path)
            self._ahead.append(path)

    def _add_program(self, word: str, folder: str) -> None:
        for path in {normpath(word), normpath(join(folder, word))} & self.files.keys():
            self.code.add(path)

    def _add_plugin(self, name: str, folder: str = "") -> None:
        stem = name.replace(".", "/")
        for place in ("", "src/", "tests/", "test/"):
            top = join(folder, place)
            self.code |= {f"{top}{stem}.py", f"{top}{stem}/__init__.py"} & self.files.keys()

    def follow_all(self) -> None:
        while self._ahead:
            path = self._ahead.pop()
            self.look(self.read(path) or "", dirname(path))

    def look_at_conftest(self, text: str) -> None:
        for found in _PLUGIN_NAMES.findall(text):
            for name in re.findall(r"['\"]([\w.]+)['\"]", found):
                self._add_plugin(name)

    def look_at_packaging(self, text: str, folder: str) -> None:
        """Take in the plugins for pytest that an installed package names."""
        for table in _PLUGIN_TABLE.findall(text):
            for name in _PLUGIN_MODULE.findall(table):
                self._add_plugin(name, folder)

    def look_at_set_up(self, text: str, folder: str) -> None:
        for found in _SET_UP.findall(text):
            for word in words_of(found):
                self._add_program(word.lstrip("/"), folder)


def find_steering(
    command: str, files: Mapping[str, str], read: Callable[[str], str | None]
) -> Steering:
    """Follow the command through the files of the baseline; `files` has the mode of each."""
    search = _Trail(files, read)
    search.look(command)
    for name in _RECIPES:
        text = (read(name) if name in files else None) or ""
        search.look(_part(name, text))
    search.follow_all()
    for path in [path for path in files if path.rpartition("/")[2] in PACKAGING][:_MOST_FILES]:
        search.look_at_packaging(read(path) or "", dirname(path))
    conftests = [path for path in files if path.rpartition("/")[2] == "conftest.py"]
    for path in conftests[:_MOST_CONFTESTS]:
        search.look_at_conftest(read(path) or "")
    for path in files:
        name = path.rpartition("/")[2]
        if any(
            fnmatchcase(name, glob) for glob in ("jest.config.*", "vitest.config.*", ".mocharc*")
        ):
            search.look_at_set_up(read(path) or "", dirname(path))
    if "package.json" in files:
        search.look_at_set_up(_part("package.json", read("package.json") or ""), "")
    roles = FileRoles(command)
    code = {path for path in search.code if roles.role(path) == "code"} - search.tests
    return Steering(
        frozenset(search.named | code),
        frozenset(code),
        tuple(dict.fromkeys(search.modules)),
        (*sorted(search.tests), *_links(files, read, roles)),
        search.has_doctests,
    )


def _part(name: str, text: str) -> str:
    """Return what in a project file steers the tests, as text: the rest names code."""
    if name not in PARTLY_STEERING:
        return text
    part = steering_part(name, text.encode(errors="surrogateescape")) if text else None
    if not isinstance(part, dict):
        return ""
    return "\n".join(_lines(part))


def _lines(part: Mapping[str, object]) -> Iterator[str]:
    for key, value in part.items():
        if isinstance(value, Mapping):
            yield from _lines(value)
        else:
            yield f"{key} = {value if isinstance(value, str) else json.dumps(value, default=str)}"
            if isinstance(value, str):
                yield value


def _links(
    files: Mapping[str, str], read: Callable[[str], str | None], roles: FileRoles
) -> Iterator[str]:
    """Yield where links among the tests lead to."""
    for path, mode in files.items():
        if mode == LINK and roles.role(path) == "test":
            target = normpath(join(dirname(path), read(path) or ""))
            if not target.startswith((".", "/")):
                yield target


_DOCTEST = re.compile(r"^\s*(?:>>>|\.\.\.)")


def inner_tests(path: str, text: str, has_doctests: bool) -> list[str]:
    """Return the lines of a file of code that are tests of it."""
    lines = text.splitlines()
    end = splitext(path)[1]
    if end == ".rs":
        return _from_first(lines, "#[cfg(test)]")
    if end in _VITEST:
        return _from_first(lines, "import.meta.vitest")
    if end in _DOCTESTED and has_doctests:
        return list(_doctest_lines(lines))
    return []


def _from_first(lines: list[str], mark: str) -> list[str]:
    for number, line in enumerate(lines):
        if mark in line:
            return [line.strip() for line in lines[number:] if line.strip()]
    return []


def _doctest_lines(lines: list[str]) -> Iterator[str]:
    is_inside = False
    for line in lines:
        if _DOCTEST.match(line):
            is_inside = True
        elif not line.strip() or line.strip() in ('"""', "'''"):
            is_inside = False
        if is_inside:
            yield line.strip()


def may_hold_tests(path: str, has_doctests: bool) -> bool:
    end = splitext(path)[1]
    return end in (".rs", *_VITEST) or (end in _DOCTESTED and has_doctests)


def is_program(path: str) -> bool:
    """Tell whether a file is code by its name."""
    return splitext(path)[1] in CODE_ENDS | _SCRIPTS


def is_compiled(path: str) -> bool:
    """Tell whether a file is compiled code by its name."""
    return splitext(path)[1] in _COMPILED


def hides_source(path: str, data: bytes) -> bool:
    """Tell whether compiled code may be run in place of its source.

    Python compares what is in its caches with the source, unless they say not to.
    """
    return "__pycache__" not in path.split("/") or data[4:8] == _UNCHECKED


def hides_library(path: str, files: Container[str]) -> bool:
    """Tell whether a new file takes the name of a module of Python or of a test runner; `files` were there before."""
    place = _TOP_MODULE.fullmatch(path)
    if place is None or (place[2] not in _LIBRARIES and place[2] not in sys.stdlib_module_names):
        return False
    top = f"{place[1]}{place[2]}"
    was_there = f"{top}.py" in files or f"{top}/__init__.py" in files
    return place[2] != "test" and not was_there


def is_installed(path: str) -> bool:
    """Tell whether a file lies where packages are installed."""
    return not {"node_modules", "site-packages"}.isdisjoint(path.split("/"))


def count_equal_to_all(text: bytes) -> int:
    """Return how many classes of a file of code have objects that equal everything."""
    return len(_EQUAL_TO_ALL.findall(text))


def is_data(path: str) -> bool:
    """Tell whether a file is neither code nor a project file."""
    end = splitext(path)[1]
    return bool(end) and end not in CODE_ENDS and not is_dependency_file(path)


def count_asking(text: bytes) -> int:
    """Return how many lines of a file of code ask whether it is tested, or reach for its test runner."""
    return len(_ASKS.findall(text))


_TOP_MODULE = re.compile(r"((?:src/|lib/)?)(\w+)(?:\.py|/__init__\.py)")
_LIBRARIES = frozenset(
    (
        *(
            "pytest",
            "_pytest",
            "py",
            "pluggy",
            "iniconfig",
            "packaging",
            "pygments",
            "exceptiongroup",
        ),
        *("tomli", "coverage", "xdist", "execnet", "pytest_cov", "pytest_asyncio", "hypothesis"),
        *("nose2", "tox", "nox", "mock"),
    )
)
_EQUAL_TO_ALL = re.compile(
    rb"def __eq__\([^)]*\)[^:\n]*:\s*(?:\"\"\"[^\"]*\"\"\"\s*|#[^\n]*\s+)*return True\b"
    rb"|__eq__[\"']?\s*[:=,]\s*lambda[^:\n]*:\s*True\b"
)
_VITEST = (".js", ".ts", ".mjs", ".mts", ".jsx", ".tsx")
_DOCTESTED = (".py", ".rst", ".md", ".txt")
_ASKS = re.compile(
    rb"^.*(?:PYTEST_CURRENT_TEST|PYTEST_VERSION|PYTEST_XDIST|NODE_TEST_CONTEXT|JEST_WORKER_ID|VITEST_WORKER_ID"
    rb"|GUARD_SLOT|GUARD_PROVE_ID|sys\.modules.*(?:pytest|unittest)|(?:pytest|unittest).*sys\.modules"
    rb"|(?:environ|getenv|env)\W{0,3}(?:get\W{0,3})?\b(?:CI|GITHUB_ACTIONS)\b"
    rb"|\b_getframe\(|\binspect\.(?:stack|currentframe|getouterframes)\b|\bextract_stack\("
    rb"|f_code\.co_filename|\bimport __main__\b|modules\[[\"']__main__|(?:test|spec)[\"'].*\bargv\b"
    rb"|[\"'](?:_?pytest|py\.test|unittest|conftest)[\"'] (?:not )?in\b"
    rb"|(?:getcwd\(|cwd\(\)|\bPWD\b|__file__).*(?:\.cache\b|[\"'/]guard[\"'/])|[\"'/]guard[\"'/].*(?:getcwd\(|cwd\(\))"
    rb"|(?:argv|Args|args\(\)|current_exe|co_filename).*(?:test|spec|deps)|\brequire\.main\.(?:filename|path|id)"
    rb"|^\s*(?:import|from) (?:_?pytest|unittest)\b|\b(?:pytest|unittest)\.(?:skip|SkipTest|xfail|TestCase)"
    rb"|[\"']node:test[\"']|\bassert\.\w+\s*=[^=]"
    rb"|\b(?:global|globalThis|window)(?:\.|\[\s*[\"'`])(?:expect|test|it|describe|jest|vi)\b"
    rb"|\benv\W{1,3}VITEST\b|NODE_ENV\W+test\b"
    rb"|(?<!if \()(?<!\} = )\bimport\.meta\.vitest\b"
    rb"|\bcfg!\(\s*(?:test|debug_assertions)\s*\)|\bcfg\(not\(test\)\)"
    rb"|^(?:\s+|import )\"testing\"\s*$|\bflag\.Lookup\(\"test\.).*$",
    re.MULTILINE,
)
