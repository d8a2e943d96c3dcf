"""List what a tree changes against a commit: path by path for an index, and as people see it, with renames and lines."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from guard.core.rescue.change import MOST_TEXT, Changed
from guard.errors import RepositoryProblem
from guard.snapshots.objects import read_blobs
from guard.snapshots.project import Project

_MOST_BLOB_BYTES = 256 * 1024
_MOST_DESCRIBED = 1000


class PathChange(NamedTuple):
    """One changed path."""

    letter: str
    mode: bytes
    oid: str
    path: bytes
    old_mode: bytes = b""
    old_oid: str = ""


def empty_tree(project: Project) -> str:
    return project.line("hash-object", "-t", "tree", "--stdin")


def write_tree(project: Project) -> str:
    # Blobs that the last commit names may be missing: a partial clone does not have them.
    return project.line("write-tree", "--missing-ok")


def update_index(project: Project, changed: Sequence[PathChange]) -> None:
    """Put changes into the index, deletions first: a file may have become a folder."""
    ordered = sorted(changed, key=lambda change: change.letter != "D")
    lines = (b"%s %s\t%s\0" % _index_info(change) for change in ordered)
    project.call("update-index", "-z", "--index-info", stdin=b"".join(lines))


def _index_info(change: PathChange) -> tuple[bytes, bytes, bytes]:
    mode = b"0" if change.letter == "D" else change.mode
    return mode, change.oid.encode(), change.path


def list_changes(project: Project, head: str | None, tree: str) -> list[PathChange]:
    before = head or empty_tree(project)
    listing = project.call("diff-tree", "-r", "-z", "--no-renames", before, tree)
    return [change for change, _old_path in _parse_diff(listing)]


def describe_changes(project: Project, before: str, tree: str) -> list[Changed]:
    """Every changed path once, with the lines that came and went; a rename has both of its paths."""
    found = list(_parse_diff(_diff_with_renames(project, before, tree)))
    first = (oid for change, _ in found[:_MOST_DESCRIBED] for oid in (change.old_oid, change.oid))
    texts = dict(
        read_blobs(project.call, sorted({oid for oid in first if oid.strip("0")}), _MOST_BLOB_BYTES)
    )
    return [
        _describe(change, old_path, texts.get(change.old_oid, b""), texts.get(change.oid, b""))
        for change, old_path in found
    ]


def _diff_with_renames(project: Project, before: str, tree: str) -> bytes:
    words = ("diff-tree", "-r", "-z")
    try:
        # The limit is set here, so that the repository's own setting has no part in it.
        return project.call(*words, "-M", f"-l{_MOST_DESCRIBED}", before, tree)
    except RepositoryProblem:
        # To find renames git may need a blob that a partial clone does not have.
        return project.call(*words, "--no-renames", before, tree)


def _parse_diff(listing: bytes) -> Iterator[tuple[PathChange, bytes]]:
    """Yield each change with the path that it had before."""
    fields = iter(listing.split(b"\0")[:-1])
    for about in fields:
        old_mode, mode, old, oid, letter = about.removeprefix(b":").split()
        old_path = next(fields)
        path = next(fields) if letter[:1] == b"R" else old_path
        change = PathChange(letter[:1].decode(), mode, oid.decode(), path, old_mode, old.decode())
        yield change, old_path


def _describe(change: PathChange, old_path: bytes, before: bytes, after: bytes) -> Changed:
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    known, now = frozenset(old), frozenset(new)
    letter = change.letter if change.letter in "AMDR" else "M"
    return Changed(
        letter,
        change.path,
        old_path if letter == "R" else None,
        b"".join(line for line in new if line not in known)[:MOST_TEXT],
        b"".join(line for line in old if line not in now)[:MOST_TEXT],
    )
