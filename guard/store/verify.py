"""Check the whole log, record by record, and each view against a fresh fold of it, without writing."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime

from guard.core.log.events import LogRestarted, LogSalvaged
from guard.core.log.record import LogEntry, Position
from guard.core.log.replay import CHECKPOINT_PATH, Checkpoint, Replay
from guard.core.log.reports import Finding, VerifyReport
from guard.core.log.table import view_kinds
from guard.core.log.view import NewerView, ViewDocument, seal, unseal
from guard.core.snapshots.snapshot import Anchor
from guard.errors import StateProblem
from guard.store.lock import LOCK, read_mark
from guard.store.log import LIVE, Log
from guard.store.segments import BrokenLog
from guard.store.survey import survey
from guard.store.views import ViewFiles
from guard.system.private_files import Folder, UntrustedFolder

_REBUILD = "run `guard rebuild` to make it again from the log"
_REPLACED = "find out which program replaced the log; guard says this until that snapshot is pruned"
_REMEMBERED = "what this machine remembers of the log"
_SALVAGE = "run `guard rebuild --salvage` to continue with what the log still has"


def verify(folder: Folder, anchors: Sequence[Anchor] = (), least_seq: int = 0) -> VerifyReport:
    """Check the folder; `least_seq` is a record that the log must have reached."""
    # Views are read before the log, so that no writer can make them look ahead of it.
    audit = _Audit(folder, anchors)
    audit.read_views()
    audit.read_log()
    audit.compare_rest(least_seq)
    audit.compare_anchors()
    audit.check_files()
    return audit.report()


class _Audit:
    def __init__(self, folder: Folder, anchors: Sequence[Anchor]) -> None:
        self._folder = folder
        self._log = Log(folder)
        self._files = ViewFiles(folder, self._log, lambda _message: None)
        self._mark = read_mark(folder)
        self._replay = Replay()
        self._bytes: dict[str, bytes] = {}
        self._waiting: dict[int, list[str]] = defaultdict(list)
        self._agreed: dict[str, int] = {}
        self._findings: list[Finding] = []
        self._broken = False
        self._anchors: dict[int, list[Anchor]] = defaultdict(list)
        for anchor in anchors:
            self._anchors[anchor.seq].append(anchor)
        self._contradicted: list[Anchor] = []
        self._salvaged: datetime | None = None

    def read_views(self) -> None:
        for path, document in self._files_on_disk():
            try:
                data = self._files.read(path)
                if data is None:
                    continue
                seq = unseal(data, document).seq
            except NewerView as error:
                self._find(path, "", f"{error}; a newer guard wrote it", "upgrade guard")
            except StateProblem as error:
                self._find(path, "", error.message, error.hint)
            except ValueError as error:
                self._find(path, "", str(error), _REBUILD)
            else:
                self._bytes[path] = data
                self._waiting[seq].append(path)

    def _files_on_disk(self) -> Iterator[tuple[str, type[ViewDocument]]]:
        for kind in view_kinds():
            for path in self._files.paths(kind, only_trusted=True):
                yield path, kind.document
        yield CHECKPOINT_PATH, Checkpoint

    def read_log(self) -> None:
        # Each view is compared at the place that it claims.
        replay = self._replay
        for stray in self._log.strays():
            self._find(stray, "", "is not a segment of this log", _SALVAGE)
        try:
            for entry in self._log.entries():
                replay.feed(entry)
                position, seq = entry.position, entry.position.seq
                if seq in self._waiting:
                    self._compare(position)
                if self._mark and seq == self._mark.seq and position.hash != self._mark.hash:
                    self._find(LOCK, f"record {seq}", "remembers another history", _SALVAGE)
                self._check_anchors(entry)
        except BrokenLog as error:
            self._broken = True
            place = f"record {error.seq}, byte {error.offset}"
            self._find(error.file, place, error.why, "upgrade guard" if error.newer else _SALVAGE)
        except StateProblem as error:
            self._broken = True
            self._find(LIVE, "", error.message, error.hint)

    def _check_anchors(self, entry: LogEntry) -> None:
        anchors = self._anchors.pop(entry.position.seq, ())
        self._contradicted += [anchor for anchor in anchors if anchor.hash != entry.position.hash]
        if isinstance(entry.event, LogSalvaged | LogRestarted):
            self._salvaged = entry.event.at

    def check_files(self) -> None:
        # A run refuses these too; what is found already is not said again.
        try:
            survey(self._folder)
        except StateProblem as error:
            if not self._findings:
                self._find("workspace", "", error.message, error.hint)

    def compare_anchors(self) -> None:
        # Not what snapshots remember from before a salvage or a fresh start, which made this log.
        beyond = (
            []
            if self._broken
            else [anchor for anchors in self._anchors.values() for anchor in anchors]
        )
        for anchor in sorted(
            (*self._contradicted, *beyond), key=lambda anchor: (anchor.seq, anchor.snapshot)
        ):
            if self._salvaged is None or anchor.at > self._salvaged:
                other = anchor in self._contradicted
                problem = f"remembers {'another history' if other else 'a record that is gone'}"
                self._find(
                    f"snapshot {anchor.snapshot}", f"record {anchor.seq}", problem, _REPLACED
                )

    def _compare(self, position: Position) -> None:
        for path in self._waiting.pop(position.seq):
            if path == CHECKPOINT_PATH:
                expected = seal(self._replay.checkpoint())
            else:
                fold = self._replay.folds.get(path)
                expected = seal(fold.document()) if fold else b""
            if self._bytes[path] == expected:
                self._agreed[path] = position.seq
            else:
                place = f"record {position.seq}"
                self._find(path, place, "differs from a fold of the log", _REBUILD)

    def compare_rest(self, least_seq: int) -> None:
        """Find what the views claim beyond the log, and what the log has beyond the views."""
        end = self._replay.position.seq
        beyond = {path: seq for seq, paths in self._waiting.items() for path in paths}
        if self._mark and self._mark.seq > end:
            beyond[LOCK] = self._mark.seq
        if end < least_seq:
            beyond[_REMEMBERED] = least_seq
        for path, seq in sorted(beyond.items()):
            if not self._broken:
                problem = f"is at record {seq}, but the log ends at {end}: records were cut off"
                self._find(path, f"record {seq}", problem, _SALVAGE)
        settled = self._mark.seq if self._mark else 0
        self._find_untrusted_folders()
        for path, fold in self._replay.folds.items():
            if path not in self._bytes and not self._is_found(path) and fold.reached.seq <= settled:
                self._find(path, "", "is missing", _REBUILD)
            elif path in self._agreed and self._agreed[path] < fold.reached.seq <= settled:
                problem = f"is an old copy: the log has changed it up to record {fold.reached.seq}"
                self._find(path, f"record {self._agreed[path]}", problem, _REBUILD)

    def _find_untrusted_folders(self) -> None:
        for path in self._replay.folds:
            try:
                with self._folder.walk(path):
                    continue
            except UntrustedFolder as error:
                self._find(path, "", error.message, error.hint)

    def _is_found(self, path: str) -> bool:
        return any(finding.file == path for finding in self._findings)

    def _find(self, file: str, place: str, problem: str, hint: str | None) -> None:
        self._findings.append(Finding(file=file, place=place, problem=problem, hint=hint))

    def _list_behind(self) -> Iterator[str]:
        if self._broken:
            return
        for path, fold in self._replay.folds.items():
            if self._agreed.get(path, 0) < fold.reached.seq and not self._is_found(path):
                yield path

    def report(self) -> VerifyReport:
        position = self._replay.position
        return VerifyReport(
            ok=not self._findings,
            segments=self._log.last_sealed() + 1,
            records=position.seq,
            head=position.hash,
            views=len(self._bytes),
            behind=tuple(sorted(self._list_behind())),
            torn_bytes=0 if self._broken else self._log.torn_bytes(position),
            findings=tuple(self._findings),
        )


def ahead_of_log(folder: Folder, end: Position) -> list[str]:
    """List the state files that speak of records after this end."""
    files = ViewFiles(folder, Log(folder), lambda _message: None)
    mark = read_mark(folder)
    found = [LOCK] if mark and mark.seq > end.seq else []
    for kind in view_kinds():
        for path in list(files.paths(kind)):
            data = files.read(path)
            with suppress(ValueError):
                if data is not None and unseal(data, kind.document).seq > end.seq:
                    found.append(path)
    return found
