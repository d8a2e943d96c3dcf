"""Write the message of a rescue commit: a conventional subject that says what a set of changes does, files, a trailer."""

import re
from collections.abc import Callable, Sequence
from typing import Literal, get_args

from guard.core.base.text import escape, plural
from guard.core.rescue.change import ChangedFile, common_parts, member, parse_path, scope
from guard.core.rescue.change_text import declared_names, headings, is_fix, package_names

CommitType = Literal[
    "build", "chore", "ci", "docs", "feat", "fix", "perf", "refactor", "revert", "style", "test", "wip"
]  # fmt: skip
CommitKind = Literal["build", "config", "ci", "style", "renames", "code", "tests", "docs"]
"""What a commit is of; commits are made in this order."""
KINDS: tuple[CommitKind, ...] = get_args(CommitKind)

MOST_SUBJECT = 71
_MOST_NAMES = 3
_LONGEST_NAME = 40
_SUBJECT = re.compile(
    rf"(?:{'|'.join(get_args(CommitType))})(?:\([\w./@-]{{1,40}}(?:,[\w./@-]{{1,40}})*\))?!?: \S(?:.*\S)?"
)
_GENERIC = re.compile(r"(?:__init__|__main__|index|main|mod|lib|page|route|types|init)(?:\..*)?")

Text = tuple[CommitType, str, Sequence[str], str]
"""A type, a verb, names and what stands behind them."""


def is_conventional(subject: str) -> bool:
    return _SUBJECT.fullmatch(subject) is not None


def write_subject(kind: CommitKind, pieces: Sequence[ChangedFile]) -> str:
    type_, verb, names, behind = _TEXTS[kind](pieces)
    of = _scope(kind, pieces)
    head = f"{type_}({of}): {verb} " if of else f"{type_}: {verb} "
    room = MOST_SUBJECT - len(head)
    text = escape(_enumerate(names, room - len(behind)) + behind)
    return (head + (text if len(text) <= room else text[: room - 1] + "…")).rstrip(" .")


def wip_subject(subject: str) -> str:
    """Return a conventional subject with the type of work that is not finished, and no mark of a breaking change."""
    return re.sub(r"^\w+(\([^)]*\))?!?: ", r"wip\1: ", subject)


def _scope(kind: CommitKind, pieces: Sequence[ChangedFile]) -> str | None:
    """The scope; tests and generated files follow the code that they belong to."""
    code = [piece for piece in pieces if piece.place.role in ("source", "migration")]
    parts = common_parts([piece.place.parts for piece in code or pieces])
    return member(parts) if kind in ("docs", "config", "ci") else scope(parts)


def _enumerate(names: Sequence[str], room: int) -> str:
    """As many names as there is room for: `a, b and c`, or `a, b and 4 more`."""
    for most in range(min(len(names), _MOST_NAMES), 0, -1):
        more = len(names) - most
        last = f"{more} more" if more else names[most - 1]
        first = names[: most if more else most - 1]
        text = f"{', '.join(first)} and {last}" if first else last
        if len(text) <= room:
            return text
    more = len(names) - 1
    behind = f" and {more} more" if more else ""
    return names[0][: max(1, room - len(behind) - 1)] + "…" + behind


def _files(pieces: Sequence[ChangedFile]) -> list[str]:
    """Files by their names; one whose name says nothing together with its folder."""
    telling = [piece for piece in pieces if piece.change.added or piece.place.stem != "__init__"]
    places = [piece.place for piece in telling or pieces]
    return list(dict.fromkeys(_name(place.folders, place.name) for place in places))


def _name(folders: Sequence[str], name: str) -> str:
    text = f"{folders[-1]}/{name}" if folders and _GENERIC.fullmatch(name) else name
    clean = " ".join(escape(text).split()) or "a file"
    return clean if len(clean) <= _LONGEST_NAME else clean[: _LONGEST_NAME - 1] + "…"


def _by_letter(type_: CommitType, pieces: Sequence[ChangedFile], changing: str = "update") -> Text:
    """Name files of the most important kind of change: added, renamed, changed, deleted."""
    for letter, verb in (("A", "add"), ("R", "rename"), ("M", changing), ("D", "remove")):
        these = [piece for piece in pieces if piece.change.letter == letter]
        if these and letter == "R":
            return _renames(these, type_)
        roles = {piece.place.role for piece in these}
        if len(these) > _MOST_NAMES and roles <= {"fixture", "asset", "generated"}:
            to = "/".join(common_parts([piece.place.folders for piece in these]))
            return type_, verb, [f"{len(these)} files"], f" in {escape(to)}" if to else ""
        if these:
            return type_, verb, _files(these), ""
    return type_, changing, _files(pieces), ""


def _renames(pieces: Sequence[ChangedFile], type_: CommitType = "refactor") -> Text:
    moved = [
        piece
        for piece in pieces
        if piece.change.letter == "R" and piece.change.old_path is not None
    ]
    if not moved:
        return _by_letter(type_, pieces)
    old, new = parse_path(moved[0].change.old_path or b""), moved[0].place
    rest = f" and {len(moved) - 1} more" if len(moved) > 1 else ""
    if old.name != new.name:
        names = [_name(old.folders, old.name)]
        return type_, "rename", names, f" to {_name(new.folders, new.name)}{rest}"
    to = "/".join(common_parts([piece.place.folders for piece in moved])) or "the root"
    return type_, "move", _files(moved), f" to {escape(to)}" if len(to) < _LONGEST_NAME else ""


def _build(pieces: Sequence[ChangedFile]) -> Text:
    manifests = [piece for piece in pieces if piece.place.role == "manifest"]
    if not manifests or any(piece.change.letter in "AR" for piece in manifests):
        return _by_letter("build", manifests or pieces)
    added = [name for piece in manifests for name in package_names(piece.change.added)]
    removed = [name for piece in manifests for name in package_names(piece.change.removed)]
    return _by_names("build", added, removed, 1) or _by_letter("build", manifests)


def _by_names(
    type_: CommitType, added: Sequence[str], removed: Sequence[str], files: int
) -> Text | None:
    """Name what is new; else what is declared otherwise than before, or gone, if that covers all the files."""
    new = [name for name in dict.fromkeys(added) if name not in removed]
    other = [name for name in dict.fromkeys(added) if name in removed]
    gone = [name for name in dict.fromkeys(removed) if name not in added]
    for verb, names in (("add", new), ("change", other), ("remove", gone)):
        if names and (verb == "add" or len(names) >= files):
            return type_, verb, names, ""
    return None


def _code(pieces: Sequence[ChangedFile]) -> Text:
    code = [piece for piece in pieces if piece.place.role == "source"] or [
        piece for piece in pieces if piece.place.role not in ("test", "fixture")
    ]
    new = [piece for piece in code if piece.change.letter == "A"]
    if new:
        return _new_code(new)
    if all(piece.change.letter == "D" for piece in code):
        return _by_letter("chore", code)
    added = [name for piece in code for name in _declared_in(piece, piece.change.added)]
    removed = [name for piece in code for name in _declared_in(piece, piece.change.removed)]
    if is_fix(pieces):
        both = [name for name in dict.fromkeys(added) if name in removed]
        return "fix", "correct", both or _files(code), ""
    named = _by_names("feat", added, removed, len(code)) or _migrations(pieces)
    return named or _by_letter(_type_of(code), code)


def _migrations(pieces: Sequence[ChangedFile]) -> Text | None:
    new = [
        piece.place
        for piece in pieces
        if piece.place.role == "migration" and piece.change.letter == "A"
    ]
    steps = [place.folders[-1] if place.stem == "migration" else place.stem for place in new]
    return ("feat", "add migration", [_name((), step) for step in steps], "") if steps else None


def _new_code(new: Sequence[ChangedFile]) -> Text:
    """Name new names if they are few, else new files."""
    names = list(
        dict.fromkeys(name for piece in new for name in _declared_in(piece, piece.change.added))
    )
    files = _files(new)
    if len({piece.place.stem for piece in new}) <= len(names) <= _MOST_NAMES:
        return "feat", "add", names, ""
    if len(files) == 1 and names:
        return "feat", "add", files, f" with {_enumerate(names, _MOST_NAMES * 10)}"
    return _type_of(new), "add", files, ""


def _type_of(code: Sequence[ChangedFile]) -> CommitType:
    """Pictures and the like are no feature of their own."""
    return "feat" if any(piece.place.role in ("source", "migration") for piece in code) else "chore"


def _declared_in(piece: ChangedFile, text: bytes) -> tuple[str, ...]:
    return declared_names(piece.place.name.rpartition(".")[2], text)


def _tests(pieces: Sequence[ChangedFile]) -> Text:
    tests = [
        piece for piece in pieces if piece.place.role == "test" and piece.change.letter in "AM"
    ]
    covered = [piece.place.tested_stem for piece in tests if piece.place.says_what_it_tests]
    if covered:
        return "test", "cover", [_name((), stem) for stem in dict.fromkeys(covered)], ""
    return _by_letter("test", tests or pieces)


def _docs(pieces: Sequence[ChangedFile]) -> Text:
    modified = [piece for piece in pieces if piece.change.letter == "M"]
    for piece in modified if len(modified) == len(pieces) else ():
        was = headings(piece.change.removed)
        topics = [topic for topic in headings(piece.change.added) if topic not in was]
        if topics:
            return "docs", "describe", topics[:2], f" in {_files([piece])[0]}"
    return _by_letter("docs", pieces)


_TEXTS: dict[CommitKind, Callable[[Sequence[ChangedFile]], Text]] = {
    "build": _build,
    "config": lambda pieces: _by_letter("chore", pieces),
    "ci": lambda pieces: _by_letter("ci", pieces),
    "style": lambda pieces: _by_letter("style", pieces, changing="reformat"),
    "renames": _renames,
    "code": _code,
    "tests": _tests,
    "docs": _docs,
}


_MOST_IN_A_MESSAGE = 50


def rescue_trailer(run: str, iteration: int) -> str:
    """The trailer that marks a commit as guard's own."""
    return f"Guard-Rescue: {run}/{iteration}"


def commit_message(subject: str, body: str, run: str, iteration: int) -> bytes:
    parts = (clean_message(subject) or "chore: rescue uncommitted work", clean_message(body))
    return "\n\n".join([*filter(None, parts), f"{rescue_trailer(run, iteration)}\n"]).encode()


def list_lines(files: Sequence[str]) -> str:
    """As many lines as a message has room for; one more says how many are left out."""
    more = len(files) - _MOST_IN_A_MESSAGE
    rest = [f"and {plural(more, 'more file')}"] if more > 0 else []
    return "\n".join([*files[:_MOST_IN_A_MESSAGE], *rest])


def clean_message(text: str) -> str:
    """The text without what a terminal would obey, and without blanks at its ends."""
    lines = (escape(line.expandtabs(4).rstrip()) for line in text.splitlines())
    return "\n".join(lines).strip()
