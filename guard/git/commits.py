"""List commits and what they change, by ids that were resolved before."""

from collections.abc import Collection, Iterable, Iterator
from hashlib import sha256
from itertools import islice
from typing import NamedTuple

from guard.core.base.first_use import late_pattern
from guard.core.base.paths import spell
from guard.core.work.history import Commit, CommitChange
from guard.git.reader import RepositoryReader

RESCUE_TRAILER = "Guard-Rescue"
_FIELDS = (
    *("%H", "%T", "%P", "%at", "%ct", "%ae", "%ce", "%<(200,trunc)%s"),
    f"%(trailers:key={RESCUE_TRAILER},valueonly)",
)
_FORMAT = "".join(f"{field}%x00" for field in _FIELDS)
_DIFF = (
    *("diff-tree", "--stdin", "-r", "--root", "--no-renames"),
    *("--ignore-submodules=none", "--no-ext-diff", "--no-textconv"),
)
_PATCH = ("-p", "-U0", "--inter-hunk-context=0", "--full-index", "--no-color", "--submodule=short")
_ID = late_pattern(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?")
CHILDREN_FIRST = "--topo-order"
"""Dates can be forged; without this, they decide the order."""
_BATCH = 32
_SMALL = {"core.bigFileThreshold": "8m", "diff.algorithm": "myers"}
"""Larger files are compared by their ids alone."""


class CommitList(NamedTuple):
    """Commits, and the parents at which the list ends."""

    commits: dict[str, Commit]
    around: dict[str, Commit]


def list_commits(
    git: RepositoryReader, include: Iterable[str], exclude: Iterable[str], most: int, *order: str
) -> CommitList:
    wanted = list(include)
    commits: dict[str, Commit] = {}
    around: dict[str, Commit] = {}
    if wanted:
        revisions = "".join([*(f"{oid}\n" for oid in wanted), *(f"^{oid}\n" for oid in exclude)])
        answer = git.ask(
            "rev-list",
            "--stdin",
            "--boundary",
            *order,
            "--encoding=UTF-8",
            f"--max-count={most}",
            f"--format={_FORMAT}",
            stdin=revisions.encode(),
        )
        for is_around, commit in _commits(answer):
            (around if is_around else commits)[commit.oid] = commit
    return CommitList(commits, around)


def _commits(answer: bytes) -> Iterator[tuple[bool, Commit]]:
    # Each record is a line that names the commit, with a hyphen if it is only around, and then the fields, each ended by
    # NUL.
    fields = iter(answer.split(b"\0"))
    while len(record := list(islice(fields, len(_FIELDS)))) == len(_FIELDS):
        first, tree, parents, authored, committed, email, committer, subject, trailer = record
        mark, _, oid = first.strip().rpartition(b"\n")
        yield (
            mark.startswith(b"commit -"),
            Commit(
                oid=oid.decode(),
                tree=tree.decode(),
                parents=tuple(parents.decode().split()),
                subject=subject.decode(errors="replace").strip(),
                rescued=bool(trailer.strip()),
                mark=trailer.decode(errors="replace").strip(),
                author=(email.decode(errors="replace"), int(authored or 0)),
                committed=int(committed or 0),
                committer=committer.decode(errors="replace"),
            ),
        )


def read_changes(git: RepositoryReader, oids: Collection[str]) -> dict[str, CommitChange]:
    """Read what each of these commits changes; merges are left out.

    Two commits with the same files before and after have the same patch. Where only the files' names agree, the lines that were
    taken out and put in are compared too, wherever in the file they stand.
    """
    found = {oid: _file_change(changed) for oid, changed in diff_files(git, oids)}
    names: dict[frozenset[str], list[str]] = {}
    for oid, change in found.items():
        names.setdefault(change.paths, []).append(oid)
    alike = [oid for same in names.values() if len(same) > 1 for oid in same]
    for oid, patch in read_patches(git, alike):
        found[oid] = CommitChange(found[oid].paths, found[oid].patches | {patch})
    return found


def _file_change(changed: list[tuple[bytes, bytes]]) -> CommitChange:
    raw = sha256(b"".join(b"%s\0%s\0" % pair for pair in changed)).hexdigest()
    return CommitChange(frozenset(spell(path) for _, path in changed), frozenset({raw}))


def diff_files(
    git: RepositoryReader, lines: Collection[str], *options: str
) -> Iterator[tuple[str, list[tuple[bytes, bytes]]]]:
    """Yield each commit with its changed files: modes and blobs before and after, and the path.

    A line names a commit, and perhaps another to compare it with instead of its parent. Git leaves out those without changes,
    and merges unless the option `-c` asks for what they have otherwise than all of their parents.
    """
    if not lines:
        return
    stdin = "".join(f"{line}\n" for line in lines).encode()
    oid, changed = "", list[tuple[bytes, bytes]]()
    fields = iter(git.ask(*_DIFF, *options, "--raw", "-z", stdin=stdin).split(b"\0"))
    # The last field is empty, and stands behind the last commit.
    for field in fields:
        if field.startswith(b":"):
            changed.append((field, next(fields)))
            continue
        if oid:
            yield oid, changed
        oid, changed = field.decode(), []


def read_patches(git: RepositoryReader, wanted: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield each commit with a hash of the lines that it takes out and puts in; wanted is what `diff_files` takes."""
    rest = iter(wanted)
    while batch := list(islice(rest, _BATCH)):
        for oid, lines in _print_patches(git, batch, *_PATCH):
            yield oid, _hash(lines)


def _hash(lines: Iterable[bytes]) -> str:
    # Without places and blob ids; but of a file that is not text the ids are all there is.
    digest, blobs = sha256(), b""
    for line in lines:
        if line.startswith(b"index "):
            blobs = line
        elif line.startswith(b"Binary files "):
            digest.update(blobs + b"\n")
        elif not line.startswith(b"@@ "):
            digest.update(line + b"\n")
    return digest.hexdigest()


def merges_with_own_lines(git: RepositoryReader, merges: Collection[str]) -> frozenset[str]:
    """Return the merges that have lines, in some file, which none of their parents has."""
    found = _print_patches(git, merges, "--cc", *_PATCH) if merges else ()
    return frozenset(oid for oid, lines in found if lines)


def _print_patches(
    git: RepositoryReader, oids: Collection[str], *options: str
) -> Iterator[tuple[str, list[bytes]]]:
    # A line of a patch never looks like an id.
    stdin = "".join(f"{oid}\n" for oid in oids).encode()
    oid, lines = "", list[bytes]()
    for line in git.with_settings(_SMALL).ask(*_DIFF, *options, stdin=stdin).split(b"\n"):
        if not _ID.fullmatch(line):
            lines.append(line)
            continue
        if oid:
            yield oid, lines
        oid, lines = line.decode(), []
    if oid:
        yield oid, [line for line in lines if line]
