"""Look whether the files that a rescue commits parse, so that it does not call broken code a feature.

Only a look: whatever goes wrong in it, the rescue goes on without it.
"""

import inspect
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from guard.core.base.paths import spell
from guard.core.rescue import syntax
from guard.core.rescue.change import Changed, parse_path
from guard.core.rescue.groups import Group
from guard.errors import GuardError
from guard.rescue.changes import PathChange
from guard.snapshots.objects import read_blobs
from guard.snapshots.project import Project
from guard.system.processes import run
from guard.system.programs import own_python

_PLAIN = (b"100644", b"100755")
_MOST_FILES = 500
_MOST_FILE_BYTES = 256 * 1024
_MOST_BYTES = 8 * 1024 * 1024
_MOST_SECONDS = 10.0
_SHARE = 0.2
"""How much of the time that a rescue has left the look may take."""
_MAIN = """
for line in sys.stdin:
    path, *texts = json.loads(line)
    new, old = (None if text is None else text.encode("latin-1") for text in texts)
    print(json.dumps(find_new_fault(path, new, old)), flush=True)
"""


class _Question(NamedTuple):
    path: bytes
    new: bytes
    old: bytes | None


def find_faults(
    project: Project, groups: Sequence[Group], changed: Sequence[PathChange]
) -> dict[bytes, str]:
    """Return by path why a file does not parse that did before, or that is new."""
    try:
        return dict(_find(project, groups, {change.path: change for change in changed}))
    except (GuardError, OSError, ValueError, LookupError, RecursionError, MemoryError):
        return {}


def _find(
    project: Project, groups: Sequence[Group], changed: Mapping[bytes, PathChange]
) -> Iterator[tuple[bytes, str]]:
    # What tests take as input is often broken on purpose.
    changes = [
        change
        for group in groups
        for change in group.changes
        if change.path in changed
        and changed[change.path].letter != "D"
        and changed[change.path].mode in _PLAIN
        and parse_path(change.path).role != "fixture"
    ]
    asked: list[_Question] = []
    for question in _read(project, changes[:_MOST_FILES], changed):
        if syntax.language(spell(question.path), question.new):
            asked.append(question)
        elif syntax.find_conflict(question.new) and not syntax.find_conflict(question.old or b""):
            yield question.path, syntax.CONFLICT
    for question, fault in zip(asked, _ask(project, asked), strict=False):
        if fault:
            yield question.path, fault


def _read(
    project: Project, changes: Sequence[Changed], changed: Mapping[bytes, PathChange]
) -> Iterator[_Question]:
    olds = {
        change.path: changed[was].old_oid
        for change in changes
        if (was := change.old_path or change.path) in changed and change.letter != "A"
    }
    news = {change.path: changed[change.path].oid for change in changes}
    named = sorted({oid for oid in (*news.values(), *olds.values()) if oid.strip("0")})
    texts = dict(read_blobs(project.call, named, _MOST_FILE_BYTES)) if named else {}
    total = 0
    for path, oid in news.items():
        old = texts.get(olds.get(path, ""))
        # An old text that is too long to be read cannot say whether it parsed.
        is_comparable = path not in olds or old is not None
        if oid in texts and is_comparable and total <= _MOST_BYTES:
            total += len(texts[oid]) + len(old or b"")
            yield _Question(path, texts[oid], old)


def _ask(project: Project, asked: Sequence[_Question]) -> list[str | None]:
    """Ask a process of its own, which has no more than the standard library; it may answer fewer than were asked."""
    if not asked:
        return []
    lines = (
        json.dumps([spell(path), *(None if data is None else data.decode("latin-1") for data in texts)])
        for path, *texts in asked
    )  # fmt: skip
    done = run(
        [*own_python("-I", "-S", "-c"), inspect.getsource(syntax) + _MAIN],
        environ={"PATH": os.defpath, "LC_ALL": "C"},
        time_limit=min(_MOST_SECONDS, project.deadline.part(_SHARE).left()),
        cwd=os.sep,
        stdin="\n".join(lines).encode(),
        most_stdout=_MOST_BYTES,
        leaves_nothing=True,
    )
    whole = done.stdout.rpartition(b"\n")[0]
    return [json.loads(line) for line in whole.splitlines()]
