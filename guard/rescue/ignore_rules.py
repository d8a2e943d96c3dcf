"""What ignore rules hide of an iteration's work: rules that were there before are the user's, new ones may be the agent's."""

import os
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from guard.snapshots.project import Project
from guard.snapshots.stat_cache import CachedFiles

_MOST_ASKED = 5000
_NEW_RULE = "ignored: by a rule of this iteration"


class Hidden(NamedTuple):
    """Files that were written since the baseline and are ignored."""

    by_new_rules: dict[bytes, str]
    """Those that nobody would have ignored before, and why they are held back."""
    others: int


def hidden(
    project: Project,
    kept: CachedFiles,
    known: Collection[bytes],
    changed: Collection[bytes],
    since: datetime | None,
) -> Hidden:
    """What was written since then, is in the snapshot, is neither committed nor among the `known`, and is ignored."""
    if since is None:
        return Hidden({}, 0)
    written = kept.written_since(int(since.timestamp() * 1e9))
    asked = [path for path in written if path not in known][:_MOST_ASKED]
    found, others = {}, 0
    for source, path in _rules(project, asked):
        if _is_new(project, source, changed, since):
            found[path] = _NEW_RULE
        else:
            others += 1
    return Hidden(found, others)


def _rules(project: Project, paths: Sequence[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """For each path that is ignored, the file that has the rule."""
    if not paths:
        return
    asking = project.with_variables(GIT_LITERAL_PATHSPECS="0")
    asked = b"".join(b"./" + path + b"\0" for path in paths)
    words = ("check-ignore", "--verbose", "-z", "--stdin")
    fields = asking.call(*words, stdin=asked, codes=(0, 1)).split(b"\0")[:-1]
    for source, pattern, path in zip(fields[::4], fields[2::4], fields[3::4], strict=True):
        if not pattern.startswith(b"!"):
            yield source, path.removeprefix(b"./")


def _is_new(project: Project, source: bytes, changed: Collection[bytes], since: datetime) -> bool:
    if source in changed:
        return True
    inside = not os.path.isabs(source) and not source.startswith(b".git/")
    place = os.path.join(os.fsencode(project.repository.root), source)
    try:
        return not inside and os.stat(place).st_ctime > since.timestamp()
    except OSError:
        return False
