"""Read many commits at once: who made them, and what they change, file by file."""

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Literal

from guard.core.base.paths import spell
from guard.core.report.review import CommitFacts, FileStat
from guard.git.reader import RepositoryReader

_FIELDS = "%H%x00%P%x00%an%x00%ct%x00%<(200,trunc)%s"
_KINDS: dict[bytes, Literal["added", "changed", "removed"]] = {b"A": "added", b"D": "removed"}
_WORDS = (
    *("log", "--no-walk=unsorted", "--stdin", "--ignore-missing", "--no-show-signature"),
    *(
        "--encoding=UTF-8",
        "--raw",
        "--numstat",
        "-z",
        "--no-abbrev",
        "--no-renames",
        "--no-mailmap",
    ),
    *("--no-ext-diff", "--no-textconv", "--ignore-submodules=none", "--no-decorate", "--no-notes"),
    *("--no-relative", "--no-color", "--diff-merges=off", "-O/dev/null"),
)
_SETTINGS = {
    "log.showRoot": "true",
    "core.bigFileThreshold": "8m",
    "diff.algorithm": "myers",
}
_ID = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_LATEST = datetime(9999, 12, 31, tzinfo=UTC)


def read_commit_stats(git: RepositoryReader, oids: Sequence[str]) -> Iterator[CommitFacts]:
    """Yield each commit that is in this repository; merges are without files."""
    if not oids:
        return
    stdin = "".join(f"{oid}\n" for oid in oids).encode()
    answer = git.with_settings(_SETTINGS).ask(*_WORDS, f"--format=tformat:{_FIELDS}", stdin=stdin)
    fields, head, rest = iter(answer.split(b"\0")), list[bytes](), list[bytes]()
    # Five fields of the commit, then those of its files: a pair for each, and one with the counts of its lines. No field that
    # begins what is said of a file looks like an id, and what follows an id is not looked at.
    for field in fields:
        field = field.lstrip(b"\n")
        if _ID.fullmatch(field):
            if head:
                yield _commit(head, rest)
            head, rest = [field, *islice(fields, 4)], []
        elif field.startswith(b":"):
            rest += [field, next(fields)]
        elif field:
            rest.append(field)
    if head:
        yield _commit(head, rest)


def _commit(head: Sequence[bytes], files: Sequence[bytes]) -> CommitFacts:
    oid, parents, author, seconds, subject = head
    return CommitFacts(
        oid=oid.decode(),
        parents=tuple(parents.decode().split()),
        author=author.decode(errors="replace"),
        at=_moment(seconds),
        subject=subject.decode(errors="replace").strip(),
        files=tuple(_files(files)),
    )


def _moment(seconds: bytes) -> datetime:
    try:
        return datetime.fromtimestamp(int(seconds or 0), UTC)
    except (ValueError, OverflowError, OSError):
        return _LATEST


def _files(fields: Sequence[bytes]) -> Iterator[FileStat]:
    kinds: dict[bytes, bytes] = {}
    rest = iter(fields)
    for field in rest:
        if field.startswith(b":"):
            kinds[next(rest)] = field[-1:]
            continue
        added, _, more = field.partition(b"\t")
        removed, tab, path = more.partition(b"\t")
        if tab:
            kind = _KINDS.get(kinds.get(path, b"M"), "changed")
            yield FileStat(spell(path), kind, _count(added), _count(removed))


def _count(text: bytes) -> int:
    return int(text) if text.isdigit() else 0
