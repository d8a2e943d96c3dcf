"""Read, check and rebuild the log and its views."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from guard.context.ids import new_id
from guard.context.invocation import Invocation
from guard.context.workspace import ensure as prepare_place
from guard.context.workspace import is_workspace
from guard.core.base.text import fit_line, plural, utf8_text
from guard.core.check.events import CheckMade
from guard.core.config.report import InitReport
from guard.core.iteration.baseline import BASELINE
from guard.core.log.adoption import WorktreeAdopted
from guard.core.log.events import BaseEvent, LogRestarted
from guard.core.log.record import RECORD_VERSION, START
from guard.core.log.reports import Finding, RebuildReport, VerifyReport
from guard.core.metrics.groups import Grouping
from guard.core.metrics.report import MetricsReport
from guard.errors import GuardError, Refused, StateProblem, WrongUsage
from guard.git.locate import linked_work_trees
from guard.snapshots.shadow import SHADOW_FOLDER
from guard.store.log import LIVE
from guard.store.segments import BrokenLog
from guard.system.private_files import Folder, free_path


class LogReader:
    """Reads the records of wanted events; the next call continues where the last one stopped."""

    def __init__(self, guard: Invocation, is_wanted: Callable[[BaseEvent], bool]) -> None:
        self._guard = guard
        self._is_wanted = is_wanted
        self._position = START

    def read(self) -> Iterator[dict[str, Any]]:
        for event, position, more in self._guard.store.entries(self._position):
            prev, self._position = self._position.hash, position
            if self._is_wanted(event):
                head = {"v": RECORD_VERSION, "seq": position.seq, "more": more}
                fields = json.loads(event.model_dump_json())
                yield {**head, **fields, "prev": prev, "hash": position.hash}


def verify(guard: Invocation) -> VerifyReport:
    """Compare the log with the heads that the snapshots recorded, and each view with the log."""
    from guard.snapshots.inventory import open_shelf

    limit = guard.users_config.settings.rescue.time_limit_seconds
    try:
        with open_shelf(guard.workspace.path, guard.environ, time_limit=limit) as shelf:
            anchors = shelf.anchors()
    except WrongUsage:
        raise
    except GuardError as error:
        guard.output.warn(f"cannot compare the log with the snapshots: {error.message}")
        anchors = []
    report = guard.store.verify(anchors)
    lost = () if not report.ok else tuple(_find_lost_snapshots(guard))
    return report.model_copy(
        update={"ok": report.ok and not lost, "findings": (*report.findings, *lost)}
    )


def export_log(guard: Invocation, target: str) -> int:
    """Write every record to a file, or to stdout for `-`, as it stands in the log; return how many there are."""
    if target == "-":
        return _write_records(guard, guard.output.raw)
    path = Path(target)
    if os.path.lexists(path):
        raise Refused(f"{target} exists already", "name a file that does not exist yet")
    part = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(part, "xb", opener=_open_private) as file:
            count = _write_records(guard, file.write)
            file.flush()
            os.fsync(file.fileno())
        os.link(part, path)  # Unlike a rename, this never replaces a file that came meanwhile.
    except OSError as error:
        raise WrongUsage(f"cannot write {target}: {error.strerror}", "name another file") from None
    finally:
        part.unlink(missing_ok=True)
    return count


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _write_records(guard: Invocation, write: Callable[[bytes], object]) -> int:
    count = 0
    for line, _ in guard.store.records():
        write(b"%s\n" % line)
        count += 1
    return count


def import_log(guard: Invocation, source: str) -> int:
    """Take over a whole log from a file, or from stdin for `-`; return how many records it has."""
    try:
        with open(0 if source == "-" else source, "rb", closefd=source != "-") as file:
            return guard.importing_store.import_lines(_lines(file))
    except OSError as error:
        raise WrongUsage(f"cannot read {source}: {error.strerror}", "name another file") from None


def _lines(file: BinaryIO) -> Iterator[bytes]:
    for line in file:
        # Without its newline a line may be only a part of one: then it has no right hash, and is refused.
        yield line.removesuffix(b"\n")


def _find_lost_snapshots(guard: Invocation) -> Iterator[Finding]:
    from guard.snapshots.last_resort import has_snapshot

    own = _own_keys(guard)
    for key, baseline in guard.store.views(BASELINE).items():
        if own is not None and key not in own:
            continue
        if baseline.kept is not None and not has_snapshot(guard, baseline.kept):
            yield Finding(
                file=SHADOW_FOLDER,
                place=f"work tree {key}",
                problem="the snapshot of the work tree from before the iteration is gone, or cannot be trusted",
                hint="find out which program deleted it; `guard check` judges the iteration without it",
            )


def _own_keys(guard: Invocation) -> frozenset[str] | None:
    """Return the keys of the work trees that this machine has; None if the workspace has no other ones."""
    known = guard.repository_if_any
    if guard.workspace.server is None:
        return None
    if known is None:
        return frozenset()
    roots = (known.root, *linked_work_trees(known.common_dir))
    return frozenset(guard.key_of(root) for root in roots)


def rebuild(guard: Invocation, *, salvage: bool) -> RebuildReport:
    """Make every view again from the log; with `salvage`, from the records before the damage."""
    guard.store.refuse_lost_log()
    if not guard.workspace.path.is_dir():
        raise WrongUsage(
            f"there is no workspace at {guard.workspace.path}",
            "guard has recorded nothing for this repository yet; `guard baseline` begins",
        )
    store = guard.store
    return store.salvage(guard.clock.now(), new_id()) if salvage else store.rebuild()


def restart(guard: Invocation) -> InitReport:
    """Begin a new log in place of one that is gone; what is left of the old one is kept under other names."""
    path = guard.workspace.path
    file = utf8_text(path / LIVE)
    why = _find_loss(guard)
    if why is None:
        return InitReport(file=file, action="kept")
    supervisor = guard.log_keeper.find_supervisor()
    if supervisor is not None:
        raise Refused(
            f"guard (pid {supervisor}) is running this agent, and its log is not the agent's to replace",
            "run the command yourself when the agent has ended",
        )
    known = guard.log_keeper.find_known()
    if os.path.lexists(path) and not _is_workspace(path):
        path.rename(free_path(path))
    guard.log_keeper.forget()
    guard.forget_store()
    event = LogRestarted(
        at=guard.clock.now(),
        id=new_id(),
        why=fit_line(why),
        known_records=known.seq if known else None,
        known_head=known.hash if known else None,
        known_at=known.at if known else None,
        set_aside=(),
    )
    # Without a look for the old log, which is known to be gone.
    prepare_place(guard.workspace, guard.environ)
    guard.store.restart(event)
    return InitReport(file=file, action="restarted")


def _is_workspace(path: Path) -> bool:
    try:
        folder = Folder.open(path)
    except StateProblem:
        return False
    if folder is None:
        return False
    with folder:
        return is_workspace(folder)


def _find_loss(guard: Invocation) -> str | None:
    """Say why the log counts as gone; None if no log was ever here. Refuse if there is one."""
    try:
        guard.store.refuse_lost_log()
        records = sum(1 for _ in guard.store.entries())
    except BrokenLog as error:
        if error.newer or error.seq > 1 or error.file != LIVE:
            raise
        return error.message
    except StateProblem as error:
        return error.message
    if records:
        raise Refused(
            f"the log {guard.workspace.path / LIVE} is there, with {plural(records, 'record')}",
            "`guard verify` checks it; `guard rebuild --salvage` goes on after damage",
        )
    return None


def count_metrics(guard: Invocation, by: Grouping | None = None) -> MetricsReport:
    from guard.core.metrics.count import Metrics

    metrics = Metrics(by)
    for entry in guard.store.entries():
        metrics.feed(entry.event)
    return metrics.report()


def find_check(guard: Invocation, iteration: int, run_id: str | None) -> CheckMade:
    # The newest check of this iteration counts.
    key = guard.worktree_key_if_any
    found: dict[str | None, CheckMade] = {}
    for event, _, _ in guard.store.entries():
        if isinstance(event, WorktreeAdopted) and event.before in found:
            found[event.worktree] = found[event.before]
        if not isinstance(event, CheckMade) or event.iteration != iteration:
            continue
        if run_id in (None, event.run):
            found[event.worktree] = found[None] = event
    newest = found.get(key)
    if newest is None:
        raise Refused(
            f"the log has no check of iteration {iteration}",
            "`guard log --type check_made` lists the checks",
        )
    return newest
