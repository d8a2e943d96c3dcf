"""Find file names in a text, and match them with changed paths; URLs, versions, domains and routes are no file names."""

import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from itertools import islice

from guard.core.claims.vocabulary import word_set

_LONGEST = 512
_EXTENSIONS = word_set("""
    py pyi ipynb js jsx mjs cjs ts tsx mts cts vue svelte astro rs go java kt kts scala rb php c h cc cpp cxx hpp hh cs fs swift
    m mm r jl lua pl pm ex exs erl hrl hs ml mli clj cljs dart zig nim sh bash zsh fish ps1 bat cmd sql graphql gql proto thrift
    html htm css scss sass less styl md mdx rst txt adoc tex json jsonl json5 jsonc yaml yml toml ini cfg conf xml xsd csv tsv
    lock tf tfvars hcl gradle sbt cabal gemspec podspec csproj sln vcxproj cmake mk j2 jinja tmpl tpl ejs hbs pug snap svg png
    jpg jpeg gif ico webp woff2 pdf wasm sol vy nix bzl bazel service plist patch diff properties feature prisma po pot
    """)
_NO_FILES = word_set("""
    node.js vue.js next.js react.js d3.js three.js express.js nuxt.js angular.js discord.js chart.js backbone.js ember.js p5.js
    nest.js moment.js alpine.js require.js socket.io asp.net docs.rs crates.rs deno.js bun.js electron.js knex.js ag-grid.js
    """)
_WHOLE = re.compile(
    r"(?:Dockerfile|Makefile|GNUmakefile|Containerfile|Procfile|Gemfile|Rakefile|Jenkinsfile|Vagrantfile|Justfile|justfile"
    r"|CODEOWNERS|LICENSE|(?i:README|CHANGELOG)|CONTRIBUTING|go\.(?:mod|sum|work)"
    r"|\.(?:git(?:ignore|attributes|modules)|dockerignore|npmignore|editorconfig|npmrc|nvmrc|babelrc|flake8|pylintrc|coveragerc"
    r"|bashrc|zshrc|tool-versions|python-version|htaccess|browserslistrc|(?:eslint|prettier|stylelint|swc)(?:rc|ignore)"
    r"|env(?:\.[a-z]{1,20}){0,2}))"
)
_FOLDERS = word_set("""
    src lib libs apps tests docs bin scripts tools packages cmd internal pkg crates migrations hooks components examples .github
    .ci
    """)
_SUFFIX = re.compile(
    r"(?:::[\w.:\[\]-]{1,200}|(?::\d{1,7}){1,2}(?:[-–]\d{1,7})?|#L?\d{1,7}(?:-L?\d{1,7})?|@L?\d{1,7})$"
)
_COMPONENT = re.compile(r"[\w.@+~$()\[\]*?-]{1,255}")
_DRIVE = re.compile(r"[A-Za-z]:/")
_EDGES = "\"'`*_,;!<>|=✅✓✔❌"
_OPEN, _CLOSE = "([{", ")]}"


def find_paths(word: str) -> list[str]:
    """Return the normalized paths that a word without spaces names: usually none or one."""
    if len(word) > _LONGEST or "://" in word or word.startswith(("www.", "@", "mailto:")):
        return []
    whole = list(_expand_braces(word))
    if whole:
        return whole
    return [path for part in re.split(r"[(),\[\]|=\"'<>]", word) for path in _expand_braces(part)]


def _expand_braces(word: str) -> Iterator[str]:
    # `src/{a,b}.py` is two paths.
    before, opened, rest = word.partition("{")
    inside, closed, after = rest.partition("}")
    if opened and closed and "," in inside and "{" not in after:
        for choice in islice(inside.split(","), 32):
            yield from _find_path(before + choice.strip() + after)
    else:
        yield from _find_path(word)


def _find_path(word: str) -> Iterator[str]:
    path = normalize_path(word)
    if path and _is_path(path):
        yield path


def normalize_path(word: str) -> str:
    """Return the name with slashes and without quotes, surrounding brackets, a leading `./` or a trailing line number."""
    path = _strip_edges(word).replace("\\", "/")
    path = _strip_edges(_SUFFIX.sub("", path))
    while path.startswith("./"):
        path = path[2:]
    return re.sub("/{2,}", "/", path)


def _strip_edges(word: str) -> str:
    before = None
    while word != before:
        before = word
        word = word.strip(_EDGES).removesuffix("'s").rstrip(".:")
        if word and word[0] in _OPEN and not _is_balanced(word):
            word = word[1:]
        if word and word[-1] in _CLOSE and not _is_balanced(word):
            word = word[:-1]
        if len(word) > 1 and word[0] in _OPEN and word[-1] in _CLOSE:
            word = word[1:-1]
    return word


def _is_balanced(word: str) -> bool:
    return all(
        word.count(opening) == word.count(closing)
        for opening, closing in zip(_OPEN, _CLOSE, strict=True)
    )


def _is_path(path: str) -> bool:
    body = path[2:] if _DRIVE.match(path) else path
    parts = [part for part in body.strip("/").split("/") if part != "~"]
    if not parts or not all(_COMPONENT.fullmatch(part) for part in parts) or not _is_balanced(path):
        return False
    return _is_file(parts[-1], len(parts) > 1) or _is_folder(path, parts)


def _is_file(name: str, in_folder: bool) -> bool:
    if _WHOLE.fullmatch(name):
        return True
    stem, _, extension = name.rpartition(".")
    if (
        not stem.strip(".")
        or name.casefold() in _NO_FILES
        or extension.casefold() not in _EXTENSIONS
    ):
        return False
    return in_folder or not stem.startswith("*")


def _is_folder(path: str, parts: list[str]) -> bool:
    if path.startswith("/") or parts[0] not in _FOLDERS or "." in parts[-1].strip("."):
        return False
    return path.endswith("/") or not _FOLDERS.issuperset(parts)


_STEMS = frozenset(("readme", "changelog", "license", "contributing"))
_ABSOLUTE = re.compile(r"/|~/|[a-z]:/")
_ANY_DRIVE = re.compile(r"[a-z]:/", re.IGNORECASE)
_MOST_GLOBS, _MOST_FOLDERS, _MOST_TAILS = 10, 200, 8


def is_absolute(path: str) -> bool:
    return _ABSOLUTE.match(path.casefold()) is not None


def path_tails(path: str) -> tuple[str, ...]:
    """Return what a path with a drive may be called in a work tree elsewhere: its last parts, at least two."""
    if not _ANY_DRIVE.match(path):
        return ()
    parts = path[3:].split("/")
    return tuple("/".join(parts[at:]) for at in range(len(parts) - 1))[-_MOST_TAILS:]


class PathIndex:
    """Changed paths, indexed for lookups."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = [path.casefold() for path in paths]
        self._by_name: dict[str, list[str]] = {}
        for path in self._paths:
            for key in _keys(path.rpartition("/")[2]):
                self._by_name.setdefault(key, []).append(path)
        self._joined = "\n".join(("", *(f"/{path}" for path in self._paths), ""))
        self._globs = self._folders = 0

    def has(self, claimed: str) -> bool:
        """Tell whether a changed path equals the claimed one, ends with it, lies in it, or matches it as a pattern."""
        path = claimed.casefold().rstrip("/")
        if any(_is_same(path, other) for other in self._by_name.get(path.rpartition("/")[2], ())):
            return True
        return self._has_glob(path) if set("*?") & set(path) else self._has_folder(path)

    def _has_glob(self, pattern: str) -> bool:
        # A pattern is compared with every path, which is slow: beyond a few patterns, each counts as found.
        self._globs += 1
        if self._globs > _MOST_GLOBS:
            return True
        return any(
            fnmatchcase(path, pattern) or fnmatchcase(path, f"*/{pattern}") for path in self._paths
        )

    def _has_folder(self, folder: str) -> bool:
        self._folders += 1
        return self._folders <= _MOST_FOLDERS and f"/{folder}/" in self._joined


def _keys(last: str) -> set[str]:
    stem = last.partition(".")[0]
    return {last, last.rpartition(" ")[2], *({stem} & _STEMS)}


def _is_same(claimed: str, changed: str) -> bool:
    if claimed in _STEMS or claimed == changed or changed.endswith((f"/{claimed}", f" {claimed}")):
        return True
    return is_absolute(claimed) and claimed.endswith(f"/{changed}")
