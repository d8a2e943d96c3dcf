"""Decide which files of a snapshot are meant, and what a restore would change."""

import posixpath
from collections.abc import Collection, Sequence
from difflib import get_close_matches, unified_diff
from typing import NamedTuple

from guard.core.base.paths import path_line
from guard.core.snapshots.paths import is_relative

_MOST_NEAR = 3
_CONTEXT_LINES = 3
_LONGEST_DIFF = 60_000
USUAL_BITS = {b"100644": 0o644, b"100755": 0o755, b"120000": 0o644}


class SnapshotFile(NamedTuple):
    """A file or a link of a snapshot, by the path that it has in the work tree."""

    path: bytes
    mode: bytes
    oid: str
    bits: int


class CurrentFile(NamedTuple):
    """What stands at a path now."""

    mode: bytes
    oid: str
    bits: int


class UnknownPath(ValueError):
    """A path that the snapshot does not have; the message names it, with those that are near."""


def is_same(file: SnapshotFile, there: CurrentFile | None) -> bool:
    return there == file[1:]


def is_asked_for(path: bytes, wanted: Collection[bytes]) -> bool:
    """Tell whether a path is one of these, or lies in one; no path at all means everything."""
    return (
        not wanted
        or b"" in wanted
        or any(path == wanted_path or path.startswith(wanted_path + b"/") for wanted_path in wanted)
    )


def refuse_unknown(wanted: Sequence[bytes], paths: Collection[bytes]) -> None:
    names = {_text(path) for path in paths}
    for wanted_path in wanted:
        if wanted_path and not any(is_asked_for(path, [wanted_path]) for path in paths):
            near = get_close_matches(_text(wanted_path), names, n=_MOST_NEAR, cutoff=0.5)
            same_name = [n for n in sorted(names) if n.rpartition("/")[2] == _text(wanted_path)]
            meant = [path_line(_bytes(name)) for name in (same_name or near)[:_MOST_NEAR]]
            raise UnknownPath(
                f"the snapshot has no {path_line(wanted_path)}"
                + (f"; did you mean {', '.join(meant)}?" if meant else "")
            )


def resolve_path(root: str, here: str, word: str) -> bytes:
    """Turn a path that the user typed into one from the work tree's root, empty for the root itself.

    It is taken from the current folder if that lies in the work tree, else from the root. `UnknownPath` if it leads out.
    """
    base = here if here == root or here.startswith(root.rstrip("/") + "/") else root
    path = posixpath.relpath(posixpath.normpath(posixpath.join(base, word)), root)
    found = b"" if path == "." else _bytes(path)
    if found and not is_relative(found):
        raise UnknownPath(f"{path_line(_bytes(word))} leads out of the work tree")
    return found


def why_unsafe(path: bytes) -> str | None:
    if not is_relative(path):
        return "it leads out of the folder"
    *folders, _name = path.split(b"/")
    if b".git" in folders or path == b".git":
        return "it lies in a git directory"
    return None


def why_unsafe_nested(path: bytes) -> str | None:
    """Why a path may not be written that should lie in the git directory of a nested repository."""
    if not is_relative(path):
        return "it leads out of the folder"
    return None if git_folder(path) else "it does not lie in a nested repository"


def git_folder(path: bytes) -> bytes:
    """The git directory of a nested repository that a path lies in; empty if it lies in none."""
    folder, found, rest = path.partition(b"/.git/")
    own = folder.partition(b"/")[0] == b".git"
    return folder + b"/.git" if found and rest and not own else b""


def text_diff(path: bytes, before: bytes, after: bytes) -> str | None:
    if b"\0" in before or b"\0" in after:
        return None
    name = path_line(path)
    names = f"now/{name}", f"snapshot/{name}"
    lines = unified_diff(_lines(before), _lines(after), *names, n=_CONTEXT_LINES, lineterm="")
    text = "\n".join(lines)
    return text if len(text) <= _LONGEST_DIFF else text[:_LONGEST_DIFF] + "\n…"


def _lines(data: bytes) -> list[str]:
    *lines, last = data.decode(errors="backslashreplace").split("\n")
    return [*lines, f"{last}\n\\ No newline at end of file"] if last else lines


def _text(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")


def _bytes(path: str) -> bytes:
    return path.encode("utf-8", "surrogateescape")
