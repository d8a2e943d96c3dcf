"""Link changes that belong together: tests with what they test, locks with manifests, renames with what they made necessary."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from guard.core.rescue.change import ChangedFile, PathParts, parse_path

_MOST_ALIKE = 50
_MOST_IN_A_CHAIN = 8
_WORDS = re.compile(rb"\w{3,64}")
_IMPORT = re.compile(
    rb"^.{0,80}\b(?:import|from|use|mod|require|require_relative|include|export|using)\b.*$",
    re.MULTILINE,
)
_SAYS_NOTHING = frozenset(
    ["init", "index", "main", "mod", "lib", "page", "route", "types", "utils"]
)
_GENERATED = re.compile(r"(?:_pb2_grpc|_pb2|_pb|_gen|_generated)$")
_MODELS = re.compile(r"models?|schema|entit(?:y|ies)|tables?")
_ASKS_FOR = {
    "Cargo.lock": "Cargo.toml",
    "poetry.lock": "pyproject.toml",
    "uv.lock": "pyproject.toml",
    "pdm.lock": "pyproject.toml",
    "Pipfile.lock": "Pipfile",
    "Gemfile.lock": "Gemfile",
    "composer.lock": "composer.json",
    "go.sum": "go.mod",
    "mix.lock": "mix.exs",
    "pubspec.lock": "pubspec.yaml",
    "flake.lock": "flake.nix",
    "Podfile.lock": "Podfile",
    "Package.resolved": "Package.swift",
}

Link = tuple[int, int]
Roles = dict[str, list[int]]
"""Where the changes of each role are."""


def link_changes(pieces: Sequence[ChangedFile]) -> list[list[ChangedFile]]:
    """Put the changes in sets that must not be torn apart, in their order."""
    above = list(range(len(pieces)))

    def top(at: int) -> int:
        while above[at] != at:
            above[at] = above[above[at]]
            at = above[at]
        return at

    by_role: Roles = defaultdict(list)
    for at, piece in enumerate(pieces):
        by_role[piece.place.role].append(at)
    for link in chain(*(rule(pieces, by_role) for rule in _RULES)):
        low, high = sorted(map(top, link))
        above[high] = low
    sets = defaultdict(list)
    for at, piece in enumerate(pieces):
        sets[top(at)].append(piece)
    return list(sets.values())


def _tests(pieces: Sequence[ChangedFile], roles: Roles) -> Iterator[Link]:
    """What was deleted was tested by what was deleted with it."""
    sources = {gone: _sources(pieces, roles, gone=gone) for gone in (True, False)}
    for at in roles["test"]:
        test, known = pieces[at].place, sources[pieces[at].change.letter == "D"]
        keys = map(_key, (*_shorter_stems(test.tested_stem), *test.parts[-1:]))
        found = (_nearest_candidate(pieces, known[key], test) for key in keys if key in known)
        source = next((candidate for candidate in found if candidate is not None), None)
        if source is not None:
            yield at, source


def _sources(pieces: Sequence[ChangedFile], roles: Roles, *, gone: bool) -> dict[str, list[int]]:
    these = [at for at in roles["source"] if (pieces[at].change.letter == "D") == gone]
    return _by_folder(pieces, these) | _by_stem(pieces, these)


def _shorter_stems(stem: str) -> Iterator[str]:
    """`a_b_c`, `a_b`, `a`: a test may say more in its name than what it tests."""
    while stem:
        yield stem
        stem = stem.rpartition("_")[0]


def _nearest_candidate(
    pieces: Sequence[ChangedFile], candidates: Sequence[int], to: PathParts
) -> int | None:
    """The one with most folders in common; where the name says nothing, only one in the same folder will do."""

    def nearness(at: int) -> tuple[int, int]:
        place = pieces[at].place
        return len(set(place.parts) & set(to.parts)), -len(place.folders)

    def may_be(place: PathParts) -> bool:
        return _key(place.stem) not in _SAYS_NOTHING or place.parts == to.parts

    likely = (at for at in candidates[:_MOST_ALIKE] if may_be(pieces[at].place))
    return max(likely, key=nearness, default=None)


def _by_stem(pieces: Sequence[ChangedFile], these: Iterable[int]) -> dict[str, list[int]]:
    found = defaultdict(list)
    for at in these:
        if key := _key(pieces[at].place.stem):
            found[key].append(at)
    return found


def _by_folder(pieces: Sequence[ChangedFile], these: Iterable[int]) -> dict[str, list[int]]:
    """A test may say both, folder and file, or the folder only; that tells enough if nothing in it is new beside others."""
    found, folders = defaultdict(list), defaultdict(list)
    for at in these:
        for folder in map(_key, pieces[at].place.parts[-1:]):
            folders[folder].append(at)
            found[folder + _key(pieces[at].place.stem)].append(at)
    for folder, many in folders.items():
        if len(many) == 1 or all(pieces[at].change.letter != "A" for at in many):
            found[folder] = many
    return found


def _key(stem: str) -> str:
    """`HttpClient`, `http_client` and `http-client` are one name."""
    return "".join(filter(str.isalnum, stem.lower()))


def _locks(pieces: Sequence[ChangedFile], roles: Roles) -> Iterator[Link]:
    """A lock holds what the manifests in its folder and below ask for."""
    below = defaultdict(list)
    for at in roles["manifest"]:
        name, folders = pieces[at].place.name, pieces[at].place.folders
        for depth in range(len(folders) + 1):
            below[name, folders[:depth]].append(at)
    for at in roles["lock"]:
        lock = pieces[at].place
        for manifest in below[_ASKS_FOR.get(lock.name, "package.json"), lock.folders]:
            yield at, manifest


def _fixtures(pieces: Sequence[ChangedFile], roles: Roles) -> Iterator[Link]:
    """A snapshot has the name of its test; other data that of what is tested."""
    tests = {(pieces[at].place.folders, pieces[at].place.name): at for at in roles["test"]}
    tested = defaultdict(list)
    for at in roles["test"]:
        tested[_key(pieces[at].place.tested_stem)].append(at)
    for at in roles["fixture"]:
        place = pieces[at].place
        test = tests.get((place.folders[:-1], place.name.removesuffix(".snap")))
        alike = tested.get(_key(place.stem)) or tested.get(
            _key(place.folders[-1] if place.folders else "")
        )
        if test is None and alike:
            test = _nearest_candidate(pieces, alike, place)
        if test is not None:
            yield at, test


def _generated_files(pieces: Sequence[ChangedFile], roles: Roles) -> Iterator[Link]:
    by_stem = _by_stem(pieces, roles["source"])
    for at in roles["generated"]:
        alike = by_stem.get(_key(_GENERATED.sub("", pieces[at].place.stem)))
        source = _nearest_candidate(pieces, alike, pieces[at].place) if alike else None
        if source is not None:
            yield at, source


def _migrations(pieces: Sequence[ChangedFile], roles: Roles) -> Iterator[Link]:
    """A migration goes with the models of the folder that it is for."""
    models = {}
    for at in reversed(roles["source"]):
        if _MODELS.fullmatch(pieces[at].place.stem):
            models[pieces[at].place.folders] = at
    for at in roles["migration"]:
        folders = pieces[at].place.folders
        above = (folders[:depth] for depth in range(len(folders), -1, -1))
        model = next((models[prefix] for prefix in above if prefix in models), None)
        if model is not None:
            yield at, model


def _renames(pieces: Sequence[ChangedFile], roles: Roles) -> Iterator[Link]:
    """What named the file by its old name, and now by its new one, changed because of the rename."""
    renamed = [at for at, piece in enumerate(pieces) if piece.change.letter == "R"]
    if not renamed:
        return
    added: dict[bytes, set[int]] = defaultdict(set)
    removed: dict[bytes, set[int]] = defaultdict(set)
    for at in chain(roles["source"], roles["test"]):
        for index, text in ((added, pieces[at].change.added), (removed, pieces[at].change.removed)):
            for word in set(_WORDS.findall(text)):
                index[word].add(at)
    for at in renamed:
        old, new = parse_path(pieces[at].change.old_path or b""), pieces[at].place
        was = _telling_words(old) - _telling_words(new)
        now = _telling_words(new) - _telling_words(old)
        yield from (
            (at, referrer)
            for referrer in sorted(_positions_of(removed, was) & _positions_of(added, now))
        )


def _telling_words(place: PathParts) -> set[bytes]:
    return {word.encode(errors="replace") for word in (place.stem, *place.parts) if len(word) > 2}


def _positions_of(index: dict[bytes, set[int]], words: Iterable[bytes]) -> set[int]:
    return set().union(*(index[word] for word in words))


def _imports(pieces: Sequence[ChangedFile], roles: Roles) -> Iterator[Link]:
    """Code that begins to use a new file beside it, in chains that are not too long to be read as one commit."""
    new = {
        (pieces[at].place.folders, _key(pieces[at].place.stem)): at
        for at in reversed(roles["source"])
        if pieces[at].change.letter == "A" and _key(pieces[at].place.stem) not in _SAYS_NOTHING
    }
    chains: dict[int, set[int]] = {at: {at} for at in roles["source"]}
    for at in roles["source"] if new else ():
        words = set(_WORDS.findall(b"\n".join(_IMPORT.findall(pieces[at].change.added))))
        for stem in sorted({_key(word.decode(errors="replace")) for word in words}):
            other = new.get((pieces[at].place.folders, stem), at)
            both = chains[at] | chains[other]
            if other != at and len(both) <= _MOST_IN_A_CHAIN:
                chains.update(dict.fromkeys(both, both))
                yield at, other


_RULES = (_tests, _locks, _fixtures, _generated_files, _migrations, _renames, _imports)
