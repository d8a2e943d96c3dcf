"""Select which of the paths that an iteration left may be committed, and say why the others may not."""

import os
import shlex
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import NamedTuple

from guard.core.base.paths import path_line, spell
from guard.core.base.text import fit_line
from guard.core.rescue import secrets
from guard.core.rescue.settings import RescueSettings
from guard.core.snapshots.paths import GITLINK, LINK, folders_above, is_refused_by_git, is_relative
from guard.core.snapshots.snapshot import HeldBack
from guard.errors import RepositoryProblem
from guard.git.ignore_rules import IgnoredPaths, ask_by_parts, find_ignored_paths
from guard.snapshots.fast_import import Listing
from guard.snapshots.objects import read_blobs
from guard.snapshots.project import Project
from guard.snapshots.shadow import Shadow
from guard.snapshots.take import Taken

_MOST_ASKED = 5000
_NEW_RULE = "ignored: by a rule of this iteration"


class HiddenFiles(NamedTuple):
    """Files that were written since the baseline and are ignored."""

    by_new_rules: dict[bytes, str]
    """Those that no rule ignored before, and why they are held back."""
    others: int


def _ask_ignored(project: Project, paths: Sequence[bytes]) -> IgnoredPaths:
    # `check-ignore` refuses literal pathspecs.
    return find_ignored_paths(project.with_variables(GIT_LITERAL_PATHSPECS="0").call, paths)


def _is_written_since(project: Project, source: bytes, since: datetime) -> bool:
    place = os.path.join(os.fsencode(project.repository.root), source)
    try:
        return os.stat(place).st_ctime > since.timestamp()
    except OSError:
        return False


_MOST_COMPARED = 50
_MOST_BYTES = 256 * 1024
_ALIKE = 0.5


def _is_alike(data: bytes, other: bytes) -> bool:
    lines, others = set(data.splitlines()), set(other.splitlines())
    most = max(len(lines), len(others))
    return most > 0 and len(lines & others) >= _ALIKE * most


_ENCODING = "working-tree-encoding"
NO_FILTER = (b"unspecified", b"unset", b"set", b"")


@dataclass(frozen=True)
class CommitSelection:
    """What a commit adds or changes, what it deletes, and what is held back."""

    add: tuple[bytes, ...]
    delete: tuple[bytes, ...]
    held_back: tuple[HeldBack, ...]
    moved: int = 0
    """How many of the deleted ones are among those that are added, under another name."""
    ignored: int = 0
    """How many other files were written and are ignored."""


class Planner:
    """Asks the snapshot first, then git, then looks for secrets."""

    def __init__(
        self,
        project: Project,
        shadow: Shadow,
        taken: Taken,
        committed: Listing,
        settings: RescueSettings,
        since: datetime | None = None,
    ) -> None:
        self._project, self._shadow = project, shadow
        self._taken, self._committed = taken, committed
        self._settings, self._since = settings, since
        self._roots: dict[bytes, bool] = {}

    def plan(self, paths: Sequence[bytes]) -> CommitSelection:
        """Put every path in one of three places, but for those that have vanished and were never committed."""
        named = self._files_of(paths)
        held = {path: why for path in named if (why := self._obvious_reason(path))}
        gone = self._taken.absent | self._taken.folders
        delete = [path for path in named if path not in held and path in gone]
        present = [path for path in named if path not in held and path not in gone]
        held |= self._find_ignored(present) | dict(self._secrets(present))
        held |= self._find_converted([path for path in present if path not in held])
        add = {path: None for path in present if path not in held}
        delete = [path for path in delete if path in self._committed]
        held |= self._half_moves(delete, add, held)
        concealed = self._find_hidden(named, {*add, *delete, *held})
        held |= concealed.by_new_rules
        there = {self._taken.kept[path].oid for path in add}
        return CommitSelection(
            add=tuple(add),
            delete=tuple(path for path in delete if path not in held),
            moved=sum(self._committed[path][1] in there for path in delete),
            ignored=concealed.others,
            held_back=tuple(
                HeldBack(path=path_line(path), why=fit_line(held[path])) for path in sorted(held)
            ),
        )

    def _half_moves(
        self, deleted: Sequence[bytes], added: Collection[bytes], held: Mapping[bytes, str]
    ) -> dict[bytes, str]:
        """Find deleted paths whose content now stands where it is not committed, and say where that is.

        Such a deletion is one half of a move: it is not committed while the other half is held back, and it is no sign of
        destruction.
        """
        kept, committed = self._taken.kept, self._committed
        there = {kept[path].oid for path in added}
        lost = {committed[path][1]: path for path in deleted if committed[path][1] not in there}
        if not lost:
            return {}
        found = {}
        for path in kept:
            if path not in committed and path not in added and kept[path].oid in lost:
                found[lost[kept[path].oid]] = path
        found |= dict(self._edited_moves(lost, held))
        return {
            gone: f"moved: to {path_line(path)}, which is not committed"
            for gone, path in found.items()
        }

    def _edited_moves(
        self, lost: Mapping[str, bytes], held: Mapping[bytes, str]
    ) -> Iterator[tuple[bytes, bytes]]:
        """Find files that were moved and edited: most lines are the same."""
        kept = self._taken.kept
        new = {kept[path].oid: path for path in list(held)[:_MOST_COMPARED] if path in kept}
        after = dict(read_blobs(self._shadow.call, list(new), _MOST_BYTES)) if new else {}
        wanted = list(lost)[:_MOST_COMPARED] if after else []
        with suppress(RepositoryProblem):  # A damaged object can be compared with nothing.
            for oid, old in read_blobs(self._project.call, wanted, _MOST_BYTES) if wanted else ():
                for other, data in after.items():
                    if _is_alike(old, data):
                        yield lost[oid], new[other]

    def _find_hidden(self, named: Sequence[bytes], changed: Collection[bytes]) -> HiddenFiles:
        """Find files written since the baseline that are in the snapshot, neither committed nor `named`, and ignored.

        Ignore rules that were there before are the user's; new ones may be the agent's.
        """
        if self._since is None:
            return HiddenFiles({}, 0)
        known = self._committed.keys() | set(named)
        written = self._taken.kept.written_since(int(self._since.timestamp() * 1e9))
        unknown = (path for path in written if path not in known and not self._is_nested(path))
        candidates = list(islice(unknown, _MOST_ASKED))
        answer, found, others = _ask_ignored(self._project, candidates), dict[bytes, str](), 0
        for path, rule in answer.rules.items():
            folder = next((at for at in folders_above(path) if at in self._taken.rebuilt), None)
            if not self._is_new_rule(rule.file, changed, folder):
                others += 1
            elif folder is None:
                found[path] = _NEW_RULE
            else:
                # Named once: a tool may have installed very many files there.
                found[folder] = f"rebuilt: {self._taken.rebuilt[folder]}, {_NEW_RULE}"
        return HiddenFiles(found | _unjudged(answer.refused), others)

    def _is_new_rule(
        self, source: bytes, changed: Collection[bytes], rebuilt: bytes | None = None
    ) -> bool:
        """Tell whether a file with ignore rules is the iteration's and not committed: it may ignore itself.

        The rules that a tool puts into a folder which it rebuilds are about that folder alone.
        """
        if source in changed:
            return True
        if rebuilt is not None and source.startswith(rebuilt + b"/"):
            return False
        committed, kept = self._committed.get(source), self._taken.kept.get(source)
        if committed is not None and kept is not None and committed[1] == kept.oid:
            return False
        return self._since is not None and _is_written_since(self._project, source, self._since)

    def _files_of(self, paths: Sequence[bytes]) -> list[bytes]:
        """A new folder stands for the files in it, as far as they are not ignored."""
        folders = self._taken.folders.difference(self._committed)
        new = {path for path in folders if not self._is_nested(path)}
        inside = [
            path
            for path in (self._taken.kept if new else ())
            if any(folder in new for folder in folders_above(path)) and not self._is_nested(path)
        ]
        wanted = frozenset(inside).difference(self._find_ignored(inside))
        return sorted(wanted.union(path for path in paths if path not in new))

    def _obvious_reason(self, path: bytes) -> str | None:
        taken = self._taken
        if not is_relative(path):
            return "not a path in the work tree"
        if self._is_guards(path):
            return "guard's own state"
        nested = self._find_nested(path)
        if nested is not None:
            return self._explain_nested(nested)
        rebuilt = (taken.rebuilt.get(place) for place in (*folders_above(path), path))
        if path not in self._committed and (why := next(filter(None, rebuilt), None)):
            return f"rebuilt: {why}"
        if any(is_refused_by_git(name) for name in path.split(b"/")):
            return "name: git refuses it"
        if path in taken.trouble:
            return f"not_saved: {taken.trouble[path]}"
        if path in taken.kept and taken.kept[path].size > self._settings.commit_max_file_bytes:
            return f"too_large: {taken.kept[path].size} bytes"
        known = path in taken.kept or path in taken.absent or path in taken.folders
        return None if known else "not_saved: it came or went meanwhile"

    def _is_guards(self, path: bytes) -> bool:
        """A workspace may lie in the work tree."""
        root = os.fsencode(self._project.repository.root)
        own = os.fsencode(self._shadow.path.parent)
        return os.path.join(root, path, b"").startswith(os.path.join(own, b""))

    def _is_nested(self, path: bytes) -> bool:
        return self._find_nested(path) is not None

    def _find_nested(self, path: bytes) -> bytes | None:
        """Return the repository of its own in which a path lies, or that it is: a submodule, or a folder with a `.git`."""
        return next(filter(self._is_repository, (*folders_above(path), path)), None)

    def _explain_nested(self, folder: bytes) -> str:
        place = shlex.quote(path_line(folder))
        if not os.path.lexists(os.path.join(os.fsencode(self._project.repository.root), folder)):
            return f"nested_repository: removed; `git commit -- {place}` commits that"
        return f"nested_repository: commit it there; `git -C {place} status` shows what changed"

    def _is_repository(self, folder: bytes) -> bool:
        if folder not in self._roots:
            root = os.fsencode(self._project.repository.root)
            is_gitlink = self._committed.get(folder, (b"", ""))[0] == GITLINK
            has_git_dir = os.path.lexists(os.path.join(root, folder, b".git"))
            self._roots[folder] = is_gitlink or has_git_dir
        return self._roots[folder]

    def _find_ignored(self, paths: Sequence[bytes]) -> dict[bytes, str]:
        untracked = [path for path in paths if path not in self._committed]
        answer = _ask_ignored(self._project, untracked)
        return dict.fromkeys(answer.rules, "ignored") | _unjudged(answer.refused)

    def _find_converted(self, paths: Sequence[bytes]) -> dict[bytes, str]:
        """Hold back what a program of the user's would have to convert, or git itself cannot."""
        words, refused = ("check-attr", "-z", "--stdin", "filter", _ENCODING), dict[bytes, str]()

        def ask(part: Sequence[bytes]) -> bytes:
            return self._project.call(*words, stdin=join_paths(part))

        named: list[tuple[bytes, bytes, bytes]] = []
        for answer in ask_by_parts(ask, paths, refused):
            fields = answer.split(b"\0")[:-1]
            triples = zip(fields[::3], fields[1::3], fields[2::3], strict=True)
            named += (triple for triple in triples if triple[2] not in NO_FILTER)
        held = _unjudged(refused) | {
            path: f"filter: {path_line(value)}" for path, name, value in named if name == b"filter"
        }
        for path, name, value in named:
            if name != b"filter" and path not in held and not self._can_be_encoded(path):
                held[path] = f"encoding: not {path_line(value)}"
        return held

    def _can_be_encoded(self, path: bytes) -> bool:
        """Git refuses an encoding only when it is to write the object."""
        kept = self._taken.kept[path]
        data = self._shadow.call("cat-file", "blob", kept.oid)
        try:
            words = ("hash-object", "-w", f"--path={os.fsdecode(path)}", "--stdin")
            self._project.call(*words, stdin=data)
        except RepositoryProblem:
            return False
        return True

    def _secrets(self, paths: Iterable[bytes]) -> Iterator[tuple[bytes, str]]:
        named: dict[str, list[bytes]] = defaultdict(list)
        for path in paths:
            if self._is_sensitive(path) and not self._allows(secrets.SENSITIVE_NAME, path):
                yield path, f"secret: {secrets.SENSITIVE_NAME}"
            else:
                named[self._taken.kept[path].oid].append(path)
        for oid, data in read_blobs(self._shadow.call, list(named)):
            for path in named[oid] if next(secrets.find_secrets(data), None) is not None else ():
                found = secrets.find_added_secrets(data, self._committed_data(path))
                hits = [hit for hit in found if not self._allows(hit.rule, path)]
                if hits:
                    yield path, f"secret: {secrets.describe_hits(hits)}"

    def _is_sensitive(self, path: bytes) -> bool:
        """A file that is committed already has its name by the user's own choice."""
        is_new = path not in self._committed and self._taken.kept[path].mode != LINK
        return is_new and secrets.has_sensitive_name(path)

    def _allows(self, rule: str, path: bytes) -> bool:
        return secrets.is_allowed(rule, spell(path), self._settings.allow_secrets)

    def _committed_data(self, path: bytes) -> bytes:
        # Of an object that is missing nothing is known: then every secret in the file counts as added.
        _mode, oid = self._committed.get(path, (b"", ""))
        with suppress(RepositoryProblem):
            return self._project.call("cat-file", "blob", oid) if oid else b""
        return b""


def hold_unjudged(refused: Mapping[bytes, str]) -> tuple[HeldBack, ...]:
    """Paths that git refused a question about, each with its message as the reason."""
    held = sorted(_unjudged(refused).items())
    return tuple(HeldBack(path=path_line(path), why=fit_line(why)) for path, why in held)


def _unjudged(refused: Mapping[bytes, str]) -> dict[bytes, str]:
    return {path: f"unjudged: {why}" for path, why in refused.items()}


def join_paths(paths: Iterable[bytes]) -> bytes:
    return b"".join(path + b"\0" for path in paths)
