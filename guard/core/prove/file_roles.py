"""Tell which files are tests, which steer them, and which are code, and what a change did to each kind."""

import re
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from posixpath import basename, splitext
from typing import Literal

from guard.core.base.first_use import dataclass, late_pattern

Role = Literal["test", "steering", "code"]

_TEST_FOLDER = late_pattern(
    r"(?:.+[-_.])?tests?(?:[-_.].+)?|__(?:tests|snapshots|mocks|fixtures)__|spec|testdata|goldens?|cassettes|e2e"
)
CODE_ENDS = frozenset(
    f".{end}"
    for end in (
        *("py", "pyi", "js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx", "go", "rs", "rb"),
        *("java", "kt", "cs", "php", "swift", "ex", "exs", "c", "h", "cc", "cpp", "hpp", "scala"),
    )
)
_DATA_FOLDER = re.compile(r"fixtures?|snapshots?|expected|samples?")
"""What lies there is data of tests, unless it is code."""
_TEST_MODULES = (
    "test_*.py",
    "*_test.py",
    "tests.py",
    *(f"*.{word}.{end}" for word in ("test", "spec") for end in ("js", "jsx", "mjs", "cjs")),
    *(f"*.{word}.{end}" for word in ("test", "spec") for end in ("ts", "tsx", "mts", "cts")),
    "*_test.go",
    "*_test.rs",
    "*Test.java",
    "*Tests.java",
    "*IT.java",
    "*Test.kt",
    "*Tests.cs",
    "*Test.php",
    "*Tests.swift",
    "*_spec.rb",
    "*_test.rb",
    "test_*.rb",
    "*_test.exs",
)
_STEERING = (
    "conftest.py",
    "pytest.ini",
    ".pytest.ini",
    "pytest.toml",
    ".pytest.toml",
    "tox.ini",
    "tox.toml",
    "noxfile.py",
    ".coveragerc",
    "sitecustomize.py",
    "usercustomize.py",
    "*.pth",
    "*.snap",
    # Variables such as PYTEST_ADDOPTS come from there.
    ".env",
    ".env.*",
    ".pnpmfile.cjs",
    ".c8rc*",
    ".nycrc*",
    "jest.config.*",
    # What these do to the code on its way to the runner, they do to the assertions, too.
    "babel.config.*",
    ".babelrc*",
    ".swcrc",
    "tsconfig*.json",
    "jsconfig.json",
    "jest.setup.*",
    "setupTests.*",
    "vitest.setup.*",
    "vitest.config.*",
    "vitest.workspace.*",
    "vite.config.*",
    ".mocharc*",
    ".taprc",
    "ava.config.*",
    "karma.conf.*",
    "playwright.config.*",
    "cypress.config.*",
    # npm runs scripts by the shell that is named there.
    ".npmrc",
    ".yarnrc*",
    "bunfig.toml",
    ".rspec",
    "Rakefile",
    "pom.xml",
    "build.gradle*",
    "settings.gradle*",
    "gradle.properties",
    "phpunit.xml*",
    ".gitlab-ci.yml",
    "azure-pipelines.yml",
    "Jenkinsfile",
)
_STEERING_FOLDERS = (
    ".github/workflows/",
    ".github/actions/",
    ".circleci/",
    ".ci/",
    # Cargo runs tests by the program that is named there, and Maven takes options from there.
    ".cargo/",
    ".mvn/",
)
_COMMANDS_OWN = {
    "make": ("Makefile", "makefile", "GNUmakefile", "*.mk"),
    "gmake": ("Makefile", "makefile", "GNUmakefile", "*.mk"),
    "just": ("justfile", "Justfile", ".justfile"),
    "task": ("Taskfile.yml", "Taskfile.yaml"),
    "nox": ("noxfile.py",),
    "invoke": ("tasks.py",),
    "doit": ("dodo.py",),
    "hatch": ("hatch.toml",),
    "pixi": ("pixi.toml",),
    "mise": ("mise.toml", ".mise.toml"),
    "deno": ("deno.json", "deno.jsonc"),
    "turbo": ("turbo.json",),
    "nx": ("nx.json", "project.json"),
}
PARTLY_STEERING = ("pyproject.toml", "setup.cfg", "package.json", "Cargo.toml")
"""Files of which only some tables steer the tests; `project_tables` exchanges those."""
_DEPENDENCY_FILES = (
    "requirements*.txt",
    "requirements/*.txt",
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "uv.lock",
    "poetry.lock",
    "pdm.lock",
    "Pipfile",
    "Pipfile.lock",
    "pylock*.toml",
    "package.json",
    "package-lock.json",
    "npm-shrinkwrap.json",
    "yarn.lock",
    "pnpm-lock.yaml",
    "bun.lock",
    "go.mod",
    "go.sum",
    "Cargo.toml",
    "Cargo.lock",
    "Gemfile",
    "Gemfile.lock",
    "composer.json",
    "composer.lock",
    "pom.xml",
    "build.gradle*",
)
_WORD = late_pattern(r"[^\s'\"`;&|()<>=,:]+")


def words_of(text: str) -> set[str]:
    """Return the words of a command or a recipe that could be the path of a file in the tree."""
    return {word.removeprefix("./") for word in _WORD.findall(text)}


@dataclass(frozen=True)
class FileRoles:
    """Knows what a path is, for one command and one project."""

    command: str = ""
    globs: tuple[str, ...] = ()
    """What the user calls tests; empty for what is so by custom."""
    named: frozenset[str] = frozenset()
    """Files that the command, or a file that steers it, names."""
    modules: tuple[str, ...] = ()
    """What the project's own settings call files of tests, as patterns of names."""
    linked: tuple[str, ...] = ()
    """Where links among the tests lead to."""

    def role(self, path: str) -> Role:
        name = basename(path)
        if _matches(name, _STEERING) or path.startswith(_STEERING_FOLDERS):
            return "steering"
        if path in self.named or _matches(name, self._commands_own()):
            return "steering"
        return "test" if self._is_test(path, name) else "code"

    def _commands_own(self) -> tuple[str, ...]:
        words = {basename(word) for word in words_of(self.command)}
        return tuple(
            name for word, names in _COMMANDS_OWN.items() if word in words for name in names
        )

    def _is_test(self, path: str, name: str) -> bool:
        if self.globs:
            return any(matches_glob(path, glob) for glob in self.globs)
        # The path itself may be a folder of tests: a submodule, or a link.
        if any(_TEST_FOLDER.fullmatch(part) for part in path.split("/")[:-1]):
            return True
        if _TEST_FOLDER.fullmatch(name) and "." not in name:
            return True
        if splitext(name)[1] not in CODE_ENDS and any(
            _DATA_FOLDER.fullmatch(part) for part in path.split("/")[:-1]
        ):
            return True
        if any(path == place or path.startswith(place + "/") for place in self.linked):
            return True
        return _matches(name, (*_TEST_MODULES, *self.modules))

    def is_module(self, path: str) -> bool:
        """Tell whether a runner would collect this file: other files below `tests/` are data or helpers of all tests."""
        if self.role(path) != "test":
            return False
        return _matches(basename(path), (*_TEST_MODULES, *self.modules))


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def matches_glob(path: str, glob: str) -> bool:
    """Match as git's ignore files do it: `**` for any folders, a glob without a slash for any folder's entries."""
    glob = glob.removeprefix("./")
    if glob.endswith("/"):
        glob += "**"
    if "/" not in glob:
        return fnmatchcase(basename(path), glob)
    return _compiled(glob.removeprefix("/")).fullmatch(path) is not None


def _compiled(glob: str) -> re.Pattern[str]:
    pieces = []
    for part in re.split(r"(\*\*/|\*\*|\*|\?)", glob):
        special = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
        pieces.append(special.get(part, re.escape(part)))
    return re.compile("".join(pieces), re.DOTALL)


def is_dependency_file(path: str) -> bool:
    """Tell whether the file names what has to be installed, among other things perhaps."""
    name = basename(path)
    return _matches(name, _DEPENDENCY_FILES) or _matches(path, _DEPENDENCY_FILES)


@dataclass(frozen=True)
class ChangedPath:
    """A path that differs between two trees."""

    path: str
    kind: Literal["added", "changed", "deleted"]


@dataclass(frozen=True)
class FileChanges:
    """What a change did to code, to tests, and to what steers them."""

    code: tuple[str, ...] = ()
    changed_modules: tuple[str, ...] = ()
    """Test files of the baseline that are changed or gone."""
    new_modules: tuple[str, ...] = ()
    other_tests: tuple[str, ...] = ()
    """Data and helpers of tests, changed, gone or new."""
    steering: tuple[str, ...] = ()
    dependency_files: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    """What a person has to look at although all tests pass, such as code that asks whether it is tested."""
    shadowed: tuple[str, ...] = ()
    """Unchanged test files that a runner may find no more, because of files that came or went, or of project files."""
    reaching: tuple[str, ...] = ()
    """Changed or new test files that may change what the tests of other files see."""

    @property
    def tests(self) -> tuple[str, ...]:
        """Return all test files that differ, sorted."""
        return tuple(sorted((*self.changed_modules, *self.new_modules, *self.other_tests)))

    @property
    def needs_old_tests(self) -> bool:
        """Tell whether a test of the baseline may have been weakened: a new file that keeps to itself weakens none."""
        return bool(self.changed_modules or self.other_tests or self.steering or self.reaching)

    @property
    def old_selection(self) -> frozenset[str] | None:
        """Return the test files whose old versions are to be run; None for all."""
        if self.steering or self.other_tests or self.reaching:
            return None
        return frozenset(self.changed_modules)


def sort_changes(
    changed: Iterable[ChangedPath],
    roles: FileRoles,
    steers: Callable[[str], bool],
    depends: Callable[[str], bool],
) -> FileChanges:
    """Sort the paths that differ.

    `steers` and `depends` say of a file with several purposes whether what differs in it steers tests, or names dependencies.
    """
    found: dict[str, list[str]] = {}
    for change in changed:
        path, name = change.path, basename(change.path)
        if is_dependency_file(path) and depends(path):
            found.setdefault("dependency_files", []).append(path)
        role = roles.role(path)
        if role == "code":
            found.setdefault("code", []).append(path)
            if name in PARTLY_STEERING and steers(path):
                found.setdefault("steering", []).append(path)
        elif role == "steering":
            found.setdefault("steering", []).append(path)
        elif not roles.is_module(path):
            found.setdefault("other_tests", []).append(path)
        elif change.kind == "added":
            found.setdefault("new_modules", []).append(path)
        else:
            found.setdefault("changed_modules", []).append(path)
    return FileChanges(**{name: tuple(sorted(paths)) for name, paths in found.items()})
