"""Make views again from the log; salvage a damaged log, when the user decides so, by giving up what is damaged."""

import re
from collections.abc import Iterator
from datetime import datetime
from hashlib import sha256

from guard.core.log.events import LogRestarted, LogSalvaged, SegmentOpened
from guard.core.log.record import START, Position
from guard.core.log.replay import CHECKPOINT_PATH, Checkpoint, Replay
from guard.core.log.reports import RebuildReport
from guard.core.log.table import view_kinds
from guard.core.log.view import NewerView, ViewDocument, seal, unseal
from guard.errors import StateProblem
from guard.store.lock import LOCK, QUEUE, Lock
from guard.store.log import LIVE, Log
from guard.store.segments import BrokenLog, sealed_name, segment_number
from guard.store.verify import ahead_of_log
from guard.store.views import ViewFiles
from guard.system.private_files import Folder

_DAMAGED = re.compile(r"events\..*jsonl\.damaged-\d+|events\.jsonl\.damaged-\d+")


def rebuild(folder: Folder, lock: Lock, least_seq: int = 0) -> RebuildReport:
    """Write every view as the log has it. The caller has the lock; `least_seq` is a record that the log must have reached."""
    log = Log(folder)
    replay, kept = _replay_all(log)
    _refuse_if_ahead(folder, replay.position, least_seq)
    files = ViewFiles(folder, log, lambda _message: None)
    documents: dict[str, ViewDocument] = {
        path: fold.document() for path, fold in replay.folds.items()
    }
    if kept is not None:
        documents[CHECKPOINT_PATH] = kept
    unchanged, written = [], []
    for path, document in sorted(documents.items()):
        if _is_current(files, path, document):
            unchanged.append(path)
        else:
            files.write(path, document)
            written.append(path)
    aside = [_move_aside(folder, path) for path in _find_unaccounted(folder, files, documents)]
    lock.set_mark(log.after_sealed(replay.position))
    return RebuildReport(
        records=replay.position.seq,
        unchanged=tuple(unchanged),
        written=tuple(written),
        set_aside=tuple(aside),
    )


def _find_unaccounted(
    folder: Folder, files: ViewFiles, documents: dict[str, ViewDocument]
) -> list[str]:
    """Files that stand where views stand, and of which the log knows nothing."""
    found = [path for kind in view_kinds() for path in files.paths(kind)]
    found += [CHECKPOINT_PATH] if folder.exists(CHECKPOINT_PATH) else []
    return [path for path in found if path not in documents]


def _move_aside(folder: Folder, path: str) -> str:
    with folder.walk(path) as (parent, name):
        assert parent is not None
        return f"{path.removesuffix(name)}{parent.set_aside(name)}"


def _replay_all(log: Log) -> tuple[Replay, Checkpoint | None]:
    replay, kept = Replay(), None
    for entry in log.entries():
        if type(entry.event) is SegmentOpened and entry.event.segment > 1:
            kept = replay.checkpoint()
        replay.feed(entry)
    if replay.position.segment == log.last_sealed():
        kept = replay.checkpoint()
    return replay, kept


def _refuse_if_ahead(folder: Folder, end: Position, least_seq: int) -> None:
    ahead = ahead_of_log(folder, end) or (["this machine"] if end.seq < least_seq else [])
    if ahead:
        raise StateProblem(
            f"the log ends at record {end.seq}, but {ahead[0]} has seen more: records were cut off",
            "restore the log, or run `guard rebuild --salvage` to continue without them",
        )


def _is_current(files: ViewFiles, path: str, document: ViewDocument) -> bool:
    data = files.read(path)
    if data is None:
        return False
    try:
        unseal(data, type(document))
    except NewerView as error:
        raise StateProblem(f"{path}: {error}; a newer guard wrote it", "upgrade guard") from None
    except ValueError:
        files.mark_damaged(path)
    return data == seal(document)


def salvage(folder: Folder, lock: Lock, now: datetime, event_id: str) -> RebuildReport:
    """Keep every record up to the damage, set everything else aside under other names, and go on from there.

    Each step leaves a workspace that a second salvage can finish: copies are made before anything is replaced.
    """
    log = Log(folder)
    dropped = _set_aside_damage(folder, log)
    end, named = _end(log)
    aside = [name for name in folder.names() if _DAMAGED.fullmatch(name) and name not in named]
    aside += _set_aside_views(folder, end)
    lock.clear_mark()
    if aside:
        _record(folder, log, end, now, event_id, aside)
    report = rebuild(folder, lock)
    return report.model_copy(
        update={"set_aside": (*aside, *report.set_aside), "dropped_records": dropped}
    )


def _end(log: Log) -> tuple[Position, set[str]]:
    # A salvage that was cut short has named no file as set aside.
    end, named = START, set[str]()
    for entry in log.entries():
        end = entry.position
        if type(entry.event) is LogSalvaged:
            named.update(entry.event.set_aside)
    return log.after_sealed(end), named


def _set_aside_damage(folder: Folder, log: Log) -> int:
    """Return how many lines of the log are not among the records that stay."""
    for stray in log.strays():
        folder.set_aside(stray)
    try:
        for _entry in log.entries():
            pass
    except BrokenLog as error:
        if error.newer:
            raise
        broken = error
    else:
        return 0
    data = folder.read(broken.file)
    dropped = _count_lines((data or b"")[broken.sound :])
    for name in _later_segments(folder, log, broken.file):
        dropped += _count_lines(folder.read(name) or b"")
        folder.set_aside(name)
    if data is None:
        return dropped
    folder.replace(folder.free_name(broken.file), data, durable=True)
    sound = data[: broken.sound]
    if sound:
        folder.replace(broken.file, sound, durable=True)
    else:
        folder.remove(broken.file)
        folder.sync()
    return dropped


def _count_lines(data: bytes) -> int:
    return len(data.splitlines())


def _later_segments(folder: Folder, log: Log, broken: str) -> list[str]:
    # Newest first.
    last = log.last_sealed()
    first = segment_number(broken) or last + 1
    later = [sealed_name(number) for number in range(first + 1, last + 1)]
    later += [LIVE] if broken != LIVE else []
    return [name for name in reversed(later) if folder.exists(name)]


def _set_aside_views(folder: Folder, end: Position) -> Iterator[str]:
    for path in [path for path in ahead_of_log(folder, end) if path != LOCK]:
        yield _move_aside(folder, path)
    if folder.exists(CHECKPOINT_PATH):
        yield _move_aside(folder, CHECKPOINT_PATH)


def _record(
    folder: Folder, log: Log, end: Position, now: datetime, event_id: str, aside: list[str]
) -> None:
    contents = [folder.read(name) or b"" for name in aside if "/" not in name]
    event = LogSalvaged(
        at=now,
        id=event_id,
        kept_records=end.seq,
        set_aside=tuple(aside),
        set_aside_bytes=sum(map(len, contents)),
        set_aside_sha256=tuple(sha256(data).hexdigest() for data in contents),
    )
    log.append([event], end)
    log.close()


def make_lockable(folder: Folder) -> None:
    """Move what stands in place of the lock files out of the way, if it is no file of ours."""
    for name in (LOCK, QUEUE):
        try:
            with folder.open_if_any(name):
                pass
        except StateProblem:
            folder.set_aside(name)


def restart(folder: Folder, lock: Lock, event: LogRestarted) -> tuple[str, ...]:
    """Begin a new log with this event; keep what is left of the old one under other names. The caller has the lock."""
    log = Log(folder)
    left = [name for name in folder.names() if name == LIVE or segment_number(name)]
    aside = [folder.set_aside(name) for name in left]
    aside += [_move_aside(folder, path) for path in _list_views(folder, log)]
    lock.clear_mark()
    log.append([event.model_copy(update={"set_aside": tuple(aside)})], START)
    log.close()
    rebuild(folder, lock)
    return tuple(aside)


def _list_views(folder: Folder, log: Log) -> list[str]:
    return _find_unaccounted(folder, ViewFiles(folder, log, lambda _message: None), {})
