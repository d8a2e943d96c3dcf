"""Search what is staged for secrets, by the rules of the rescue: refuse an agent's commit, and warn a person.

A commit waits for this, so little is loaded unless something is found: the settings and the state only then.
"""

import os
import sys
import time

from guard.core.hooks.event_kinds import MARK
from guard.core.rescue.secrets import (
    SENSITIVE_NAME,
    Hit,
    describe_hits,
    drop_allowed,
    find_added_secrets,
    find_secrets,
    has_sensitive_name,
)
from guard.hooks.git.note import locate
from guard.hooks.git.work_tree import ask_git

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from guard.context.invocation import Invocation
    from guard.core.iteration.run import Run

MOST_FILE_BYTES = 8 * 1024 * 1024
_MOST_BYTES = 16 * 1024 * 1024
_MOST_FILES = 20_000
_MOST_SECONDS = 10.0
_MOST_NAMED = 20
_BATCH = 500
"""How many ids fit into a pipe at once."""
_RAW = ("diff", "--cached", "--raw", "-z", "--no-abbrev", "--no-renames", "--no-ext-diff")
_LINK, _GITLINK, _NOTHING = b"120000", b"160000", b"000000"
_HAND_BEGUN_SECONDS = 12 * 3600.0
"""After this an iteration that was begun by hand, and never checked, no longer counts as running."""


class StagedFile:
    """A staged file that differs from the commit before it."""

    def __init__(self, path: bytes, raw: bytes) -> None:
        self.path = path
        old_mode, self.mode, self.old_blob, self.blob, _ = raw[1:].split(b" ")
        self.is_new = old_mode == _NOTHING
        self.is_gone = self.mode == _NOTHING


def list_staged(environ: "Mapping[str, str]") -> list[StagedFile] | None:
    """Return what is staged, deleted files too; None if git cannot tell."""
    listed = ask_git(environ, *_RAW, "--")
    if listed is None:
        return None
    staged = _parse(listed)
    _, work_tree = locate(environ)
    for side in work_tree.merged() if work_tree else ():
        # What another side of a merge has was committed before.
        other = ask_git(environ, *_RAW, side, "--")
        if other is not None:
            own = {file.path for file in _parse(other)}
            staged = [file for file in staged if file.path in own]
    return staged


def _parse(listed: bytes) -> list[StagedFile]:
    fields = iter(listed.split(b"\0"))
    return [StagedFile(next(fields), raw) for raw in fields if raw.startswith(b":")]


def refuse_secrets(
    environ: "Mapping[str, str]", staged: "Sequence[StagedFile]", *, warns: bool = True
) -> bool:
    """Tell whether a commit of what is staged is to be refused; say on stderr what was found.

    Without `warns` nothing is said unless it is refused: the person asked for no checks.
    """
    search = _StagedSearch(environ, staged)
    found = search.run()
    if warns and search.left_out:
        sys.stderr.write(f"guard: not searched for secrets: {search.left_out}\n")
    if not found:
        return False
    from guard.core.base.text import escape, fit_line
    from guard.system.startup import prepare

    prepare()
    found, refuses = _judge(environ, found)
    if not found or not (refuses or warns):
        return False
    for path, hits in list(found.items())[:_MOST_NAMED]:
        name = escape(os.fsdecode(path).encode(errors="backslashreplace").decode())
        sys.stderr.write(f"guard: secret in {fit_line(name)}: {_describe(hits)}\n")
    if len(found) > _MOST_NAMED:
        sys.stderr.write(f"guard: and secrets in {len(found) - _MOST_NAMED} more files\n")
    if refuses:
        sys.stderr.write(
            "guard: commit refused; unstage these files (git restore --staged FILE) and leave them uncommitted\n"
        )
    else:
        sys.stderr.write(
            "guard: warning: the commit is made all the same; `hooks.refuse_secrets` would refuse it\n"
        )
    return refuses


def _describe(hits: "Sequence[Hit]") -> str:
    if hits[0].rule == SENSITIVE_NAME:
        return f"{SENSITIVE_NAME}, a file made for secrets"
    return describe_hits(hits)


def _judge(
    environ: "Mapping[str, str]", found: dict[bytes, list[Hit]]
) -> tuple[dict[bytes, list[Hit]], bool]:
    """Leave out what the user allows; refuse in a running iteration, or where a setting says so."""
    from guard.context.invocation import Invocation
    from guard.errors import GuardError

    guard = Invocation(environ=environ)
    try:
        allowed = guard.users_config.settings.rescue.allow_secrets
        kept = {path: drop_allowed(hits, path, allowed) for path, hits in found.items()}
        found = {path: hits for path, hits in kept.items() if hits}
        refuses = bool(found) and (
            is_iteration_running(guard) or guard.config.settings.hooks.refuse_secrets
        )
    except GuardError as error:
        # Only a process that guard started is surely an agent's.
        sys.stderr.write(f"guard: the state could not be read: {error.message}\n")
        refuses = bool(environ.get(MARK))
    return found, refuses


def is_iteration_running(guard: "Invocation") -> bool:
    """Tell whether an iteration is under way: in this work tree, or in another one whose agent is the caller."""
    from guard.core.iteration.run import RUN

    run = guard.store.view(RUN, guard.worktree_key)
    if run is not None and _is_open(guard, run):
        return True
    mark = guard.environ.get(MARK)
    others = guard.store.views(RUN).values() if mark else ()
    return any(
        other.open_iteration is not None
        and mark == f"{other.run}/{other.open_iteration.number}"
        and _is_open(guard, other)
        for other in others
    )


def _is_open(guard: "Invocation", run: "Run") -> bool:
    from guard.context.lease import is_running

    opened = run.open_iteration
    if opened is None:
        return False
    if opened.supervisor is not None:
        return is_running(opened.supervisor, guard.store)
    return (guard.clock.now() - opened.started_at).total_seconds() < _HAND_BEGUN_SECONDS


class _StagedSearch:
    def __init__(self, environ: "Mapping[str, str]", staged: "Sequence[StagedFile]") -> None:
        self._environ = environ
        gone = [file for file in staged if file.is_gone]
        self._gone = dict.fromkeys(file.old_blob for file in gone)
        self._gone_sensitive = {file.old_blob for file in gone if has_sensitive_name(file.path)}
        self._files = [
            file for file in staged if not file.is_gone and file.mode not in (_LINK, _GITLINK)
        ]
        self.left_out = ""

    def run(self) -> dict[bytes, list[Hit]]:
        named: dict[bytes, list[StagedFile]] = {}
        found: dict[bytes, list[Hit]] = {}
        for file in self._files:
            # A file that was moved from such a name has it by an earlier commit.
            had_such_name = file.blob in self._gone_sensitive
            if file.is_new and not had_such_name and has_sensitive_name(file.path):
                found[file.path] = [Hit(SENSITIVE_NAME, 0)]
            if file.blob not in self._gone:
                named.setdefault(file.blob, []).append(file)
        for blob, data in self._read(list(named)):
            if next(find_secrets(data), None) is None:
                continue
            for file in named[blob]:
                old = [file.old_blob] if not file.is_new else []
                before = [text for _, text in self._read([*old, *list(self._gone)[:100]])]
                found.setdefault(file.path, []).extend(find_added_secrets(data, *before))
        return {path: hits for path, hits in found.items() if hits}

    def _read(self, blobs: "Sequence[bytes]") -> "Iterator[tuple[bytes, bytes]]":
        """Read the blobs that are not too large, while there is time; note how many are left out."""
        until, total = time.monotonic() + _MOST_SECONDS, 0
        skipped = max(0, len(blobs) - _MOST_FILES)
        for start in range(0, min(len(blobs), _MOST_FILES), _BATCH):
            sizes = self._sizes(blobs[start : start + _BATCH])
            batch: list[bytes] = []
            for blob, size in sizes.items():
                total += size
                if size > MOST_FILE_BYTES or total > _MOST_BYTES or time.monotonic() > until:
                    skipped += 1
                    total -= size
                else:
                    batch.append(blob)
            yield from self._contents(batch)
        if skipped:
            self.left_out = (
                f"{skipped} of {len(blobs)} staged files, which are too large or too many"
            )

    def _sizes(self, blobs: "Sequence[bytes]") -> dict[bytes, int]:
        listed = ask_git(
            self._environ, "cat-file", "--batch-check", stdin=b"\n".join(blobs) + b"\n"
        )
        words = [line.split() for line in (listed or b"").splitlines()]
        return {word[0]: int(word[2]) for word in words if len(word) == 3}

    def _contents(self, blobs: "Sequence[bytes]") -> "Iterator[tuple[bytes, bytes]]":
        if not blobs:
            return
        lines = b"\n".join(blobs) + b"\n"
        answer, at = ask_git(self._environ, "cat-file", "--batch", stdin=lines) or b"", 0
        for blob in blobs if answer else ():
            start = answer.index(b"\n", at) + 1
            size = int(answer[at:start].split()[2])
            yield blob, answer[start : start + size]
            at = start + size + 1
