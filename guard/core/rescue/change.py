"""A changed file, and what its path says: source, test, documentation, a manifest and so on, and its part of the project."""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

from guard.core.base.paths import path_line, spell

Role = Literal[
    "source", "test", "fixture", "docs", "manifest", "lock", "ci", "config", "generated", "migration", "asset"
]  # fmt: skip

_SOURCE = re.compile(
    r"\.(?:astro|ejs|erb|haml|hbs|jinja2?|j2|jsp|liquid|slim|tmpl|twig|bash|bat|c|cc|cjs|clj[cs]?|coffee|cpp|cs|css|cxx|dart|elm|erl|exs?|fish|fs|go|gql"
    r"|graphql|groovy|h|hcl|hh|hpp|hrl|hs|html?|hxx|ipynb|java|jl|jsx?|kts?|less|lua|m|mjs|mli?|mm|mts"
    r"|nim|nix|php|p[lm]|prisma|proto|ps1|pyi?|pyx|r|rb|rs|sass|scala|scss|sh|sol|sql|svelte|swift|tf"
    r"|tsx?|vue|zig|zsh)",
    re.IGNORECASE,
)
_RULES: tuple[tuple[Role, re.Pattern[str]], ...] = (
    (
        "ci",
        re.compile(
            r"\.github/(?:workflows|actions)/.+|\.gitlab/.+|\.gitlab-ci\.yml|\.circleci/.+"
            r"|\.buildkite/.+|\.woodpecker/.+|\.?azure-pipelines\.ya?ml|\.travis\.yml|\.drone\.yml"
            r"|appveyor\.yml|bitbucket-pipelines\.yml|Jenkinsfile|\.github/dependabot\.yml"
        ),
    ),
    (
        "lock",
        re.compile(
            r"(?:.*/)?(?:package-lock\.json|npm-shrinkwrap\.json|pnpm-lock\.yaml|bun\.lockb?|go\.sum"
            r"|go\.work\.sum|packages\.lock\.json|gradle\.lockfile|Package\.resolved|\.terraform\.lock\.hcl"
            r"|conda-lock\.yml|(?:yarn|Cargo|poetry|uv|pdm|pixi|Pipfile|Gemfile|composer|mix|pubspec|flake"
            r"|deno|Podfile|requirements)\.lock)"
        ),
    ),
    (
        "manifest",
        re.compile(
            r"(?:.*/)?(?:package\.json|pnpm-workspace\.yaml|lerna\.json|nx\.json|turbo\.json|deno\.jsonc?"
            r"|Cargo\.toml|build\.rs|pyproject\.toml|setup\.(?:py|cfg)|MANIFEST\.in|environment\.ya?ml"
            r"|(?:[^/]*[-_])?requirements(?:[-_][^/]*)?\.(?:txt|in)|requirements/[^/]+\.(?:txt|in)|Pipfile|Gemfile"
            r"|[^/]+\.gemspec|Rakefile|composer\.json|go\.(?:mod|work)|mix\.exs|rebar\.config|pubspec\.yaml"
            r"|pom\.xml|(?:build|settings)\.gradle(?:\.kts)?|gradle\.properties|gradlew(?:\.bat)?|build\.sbt"
            r"|CMakeLists\.txt|[^/]+\.cmake|(?:GNU)?[Mm]akefile|[^/]+\.mk|meson\.build|configure\.ac|justfile"
            r"|Taskfile\.ya?ml|[^/]+\.(?:cs|fs|vb)proj|[^/]+\.sln|Directory\.Build\.props|Package\.swift"
            r"|Podfile|[^/]+\.podspec|flake\.nix|BUILD(?:\.bazel)?|WORKSPACE(?:\.bazel)?|MODULE\.bazel"
            r"|[^/]+\.cabal|stack\.yaml|conanfile\.(?:py|txt)|vcpkg\.json|Dockerfile(?:\.[^/]+)?|[^/]+\.Dockerfile"
            r"|(?:docker-)?compose(?:\.[^/]+)?\.ya?ml|(?:webpack|vite|rollup|esbuild|tsup|next)\.config\.\w+)"
        ),
    ),
    (
        "fixture",
        re.compile(
            r".*\.(?:snap|golden|approved\.\w+)"
            r"|(?:.*/)?(?:__snapshots__|__fixtures__|__mocks__|testdata|fixtures|golden|cassettes)/.+"
        ),
    ),
    (
        "docs",
        re.compile(
            r"(?:docs?|documentation)/.+|.*\.(?:md|mdx|rst|adoc|txt|markdown|org)"
            r"|(?:.*/)?(?:README|LICEN[CS]E|CHANGELOG|CHANGES|NEWS|CONTRIBUTING|AUTHORS|NOTICE|COPYING"
            r"|SECURITY|CODE_OF_CONDUCT|HISTORY)(?:[.-][^/]*)?"
        ),
    ),
    (
        "generated",
        re.compile(
            r".*(?:\.pb\.\w+|_pb2(?:_grpc)?\.pyi?|_pb\.[jt]s|_pb\.d\.ts|\.g\.dart|\.freezed\.dart"
            r"|\.(?:gen|generated)\.\w+|_(?:gen|generated)\.\w+|\.min\.(?:js|css)|\.designer\.cs|\.map)"
            r"|(?:.*/)?(?:zz_generated[^/]*|(?:__generated__|generated)/.+)",
            re.IGNORECASE,
        ),
    ),
    ("migration", re.compile(r"(?:.*/)?(?:migrations?|db/migrate|alembic/versions)/.+\.\w+")),
    (
        "config",
        re.compile(
            r"(?:.*/)?(?:\.[^/]+(?:rc|ignore|config|attributes|modules|version|versions|example|sample)"
            r"|\.[^/]+rc\.\w+|\.[^/]+\.(?:ya?ml|toml|json|jsonc|ini)|\.env(?:\.[^/]*)?|\.flake8|\.mailmap"
            r"|[jt]sconfig[^/]*\.json|[^/]+\.config\.(?:[cm]?[jt]s|json)|renovate\.json|biome\.jsonc?"
            r"|(?:ruff|rustfmt|clippy|rust-toolchain|taplo|deny|mypy|tox|pytest|setup|cfg|netlify|fly)"
            r"\.(?:toml|ini)|CODEOWNERS|Procfile|Vagrantfile|babel\.config\.\w+|phpunit\.xml(?:\.dist)?)"
            r"|(?:\.vscode|\.idea|\.devcontainer|\.husky|\.github|\.config|config|conf|etc)/.+"
            r"\.(?:json|ya?ml|toml|ini|cfg|conf|xml|env|properties)"
            r"|\.(?:vscode|idea|devcontainer|husky|github|config)/.+|[^/]+\.(?:ya?ml|toml|ini|cfg|conf)"
        ),
    ),
)
_TEST_FOLDERS = frozenset({"test", "tests", "__tests__", "e2e", "Tests", "androidTest"})
_SPEC_FOLDERS = frozenset({"spec", "specs"})
_TEST_AFFIX = re.compile(
    r"(?P<before>[Tt]est[_-](?=.)|Test(?=[A-Z]))|(?P<behind>(?<=.)(?:"
    r"[._-](?:tests?|unittest|spec|e2e|cy)|(?<=[a-z0-9])(?:Tests?|TestCase|Spec|IT)))$"
)
_TRANSPARENT = re.compile(
    r"src|lib|sources?|Sources|include|internal|pkg|main|java|kotlin|scala|python|com|org|migrations?|migrate|unit"
    r"|integration|functional|__snapshots__|__mocks__|__fixtures__|fixtures|testdata|"
    + "|".join(_TEST_FOLDERS | _SPEC_FOLDERS)
)
_MEMBERS = frozenset(
    ["packages", "crates", "apps", "cmd", "libs", "services", "plugins", "modules", "examples"]
)
_SCOPE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,23}")


class PathParts(NamedTuple):
    """A path, taken apart."""

    path: str
    role: Role
    folders: tuple[str, ...]
    name: str

    @property
    def stem(self) -> str:
        """The name up to its first dot."""
        return self.name[0] + self.name[1:].partition(".")[0] if self.name else ""

    @property
    def tested_stem(self) -> str:
        """Of a test, the stem of what it tests."""
        return _TEST_AFFIX.sub("", _without_extension(self.name)) or self.stem

    @property
    def says_what_it_tests(self) -> bool:
        return self.tested_stem != _without_extension(self.name)

    @property
    def parts(self) -> tuple[str, ...]:
        """The folders that say where in the project it is, the others left out."""
        return tuple(folder for folder in self.folders if not _TRANSPARENT.fullmatch(folder))


def parse_path(path: bytes) -> PathParts:
    text = spell(path)
    *folders, name = text.split("/")
    return PathParts(text, _role(text, tuple(folders), name), tuple(folders), name)


def _role(path: str, folders: tuple[str, ...], name: str) -> Role:
    is_source = bool(_SOURCE.fullmatch("." + name.rpartition(".")[2]))
    for role, pattern in _RULES:
        if pattern.fullmatch(path) and not (role == "migration" and _is_test(folders, name)):
            return role if role != "config" or not _TEST_FOLDERS & set(folders) else "fixture"
    if is_source:
        return "test" if _is_test(folders, name) else "source"
    if _TEST_FOLDERS & set(folders):
        return "fixture"
    return "source" if "." not in name else "asset"


def _is_test(folders: tuple[str, ...], name: str) -> bool:
    return (
        bool((_TEST_FOLDERS | _SPEC_FOLDERS) & set(folders))
        or bool(_TEST_AFFIX.search(_without_extension(name)))
        or name.endswith(".bats")
        or name in ("tests.py", "test.py", "conftest.py")
    )


def _without_extension(name: str) -> str:
    """The name up to its last dot: `x.test` of `x.test.ts`."""
    return name.rpartition(".")[0] or name


def scope(parts: Sequence[str]) -> str | None:
    """The folder that a reader would name: a member of a workspace, or the deepest of those given."""
    for holder, inside in pairwise(parts):
        if holder in _MEMBERS:
            return _as_scope(inside)
    named = [part for part in parts if part not in _MEMBERS]
    return _as_scope(named[-1]) if named else None


def member(parts: Sequence[str]) -> str | None:
    """The member of a workspace that the parts lead to, if they do."""
    is_member = len(parts) > 1 and parts[0] in _MEMBERS
    return _as_scope(parts[1]) if is_member else None


def _as_scope(folder: str) -> str | None:
    name = folder.strip("._-@ ").replace(" ", "-")
    return name if _SCOPE.fullmatch(name) else None


def common_parts(many: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    if not many:
        return ()
    low, high = min(many), max(many)
    same = 0
    while same < min(len(low), len(high)) and low[same] == high[same]:
        same += 1
    return low[:same]


MOST_TEXT = 16 * 1024
"""How much of the added and of the removed text is worth passing on; a text of this length counts as cut."""


class Changed(NamedTuple):
    """A path that was added (A), modified (M), deleted (D) or renamed (R)."""

    letter: str
    path: bytes
    old_path: bytes | None = None
    """For R, where it was; that deletion is part of this change."""
    added: bytes = b""
    """The lines that were added, or as much of them as is known."""
    removed: bytes = b""

    @property
    def line(self) -> str:
        was = f"{path_line(self.old_path)} -> " if self.old_path is not None else ""
        return f"{self.letter} {was}{path_line(self.path)}"


class ChangedFile(NamedTuple):
    """A change, and what its path says."""

    change: Changed
    place: PathParts


def parse_change(change: Changed) -> ChangedFile:
    return ChangedFile(change, parse_path(change.path))
