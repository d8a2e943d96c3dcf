"""What a tree changes against the last commit, as people see it: renames as such, and the lines that came and went."""

from collections.abc import Iterator
from typing import NamedTuple

from guard.core.rescue.change import MOST_TEXT, Changed
from guard.errors import RepositoryProblem
from guard.snapshots.objects import blobs
from guard.snapshots.project import Project

_MOST_BLOB_BYTES = 256 * 1024
_MOST_DESCRIBED = 1000


class _Raw(NamedTuple):
    letter: str
    old_mode: bytes
    mode: bytes
    old: str
    oid: str
    old_path: bytes
    path: bytes


def described(project: Project, before: str, tree: str) -> list[Changed]:
    """Every changed path once; a rename has both of its paths."""
    raw = list(_raw(_diff(project, before, tree)))
    wanted = {oid for one in raw[:_MOST_DESCRIBED] for oid in (one.old, one.oid) if oid.strip("0")}
    texts = dict(blobs(project.call, sorted(wanted), _MOST_BLOB_BYTES))
    return [_changed(one, texts.get(one.old, b""), texts.get(one.oid, b"")) for one in raw]


def _diff(project: Project, before: str, tree: str) -> bytes:
    """With renames, unless that takes a blob that a partial clone has not; the repository sets no limit for them."""
    words = ("diff-tree", "-r", "-z")
    try:
        return project.call(*words, "-M", f"-l{_MOST_DESCRIBED}", before, tree)
    except RepositoryProblem:
        return project.call(*words, "--no-renames", before, tree)


def _raw(listed: bytes) -> Iterator[_Raw]:
    fields = iter(listed.split(b"\0")[:-1])
    for about in fields:
        old_mode, mode, old, oid, letter = about.removeprefix(b":").split()
        path = next(fields)
        to = next(fields) if letter[:1] == b"R" else path
        yield _Raw(letter[:1].decode(), old_mode, mode, old.decode(), oid.decode(), path, to)


def _changed(raw: _Raw, before: bytes, after: bytes) -> Changed:
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    known, now = frozenset(old), frozenset(new)
    letter = raw.letter if raw.letter in "AMDR" else "M"
    return Changed(
        letter,
        raw.path,
        raw.old_path if letter == "R" else None,
        b"".join(line for line in new if line not in known)[:MOST_TEXT],
        b"".join(line for line in old if line not in now)[:MOST_TEXT],
    )
