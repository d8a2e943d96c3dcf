"""Trials under faults: a child changes a workspace, one of its file system calls fails, tears or kills it, and what is left
is judged by a fresh store. Run as `python -m tests.support.faults SCENARIO FOLDER EVERY` with faults.c preloaded."""

import ctypes
import errno
import gc
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from guard.agents import registry
from guard.context.ids import new_id
from guard.core.agents.events import AgentSpawned, AgentUpdated
from guard.core.iteration.events import RunStarted
from guard.core.log.events import BaseEvent, LogSalvaged
from guard.core.log.replay import Replay
from guard.core.log.view import ViewDocument
from guard.errors import GuardError
from guard.store.file_store import FileStore
from guard.store.lock import LOCK
from tests.support import ROOT
from tests.support.events import MOMENT, run_started, spawned, updated

SOURCE = Path(__file__).with_suffix(".c")
_ANY, _WRITES, _ALLOCATES = 0, 1, 2
_KILL_AFTER, _TEAR, _SHORTEN, _FAIL = 1, 2, 3, 4
_DEADLY = (_KILL_AFTER, _TEAR)
_NEVER = 10**9
_TRIAL_SECONDS = 120
_HOLDER_BYTES = 256


class Mode(NamedTuple):
    """What happens at the chosen call; the call must have all the traits, and is counted only then."""

    way: int
    error: int = 0
    traits: int = _ANY
    lasting: bool = False


MODES = {
    # A kill before a call leaves what a kill after the one before it leaves.
    "kill after": Mode(_KILL_AFTER),
    "half written, killed": Mode(_TEAR, traits=_WRITES),
    "short write": Mode(_SHORTEN, traits=_WRITES),
    "EINTR": Mode(_FAIL, errno.EINTR),
    "EIO": Mode(_FAIL, errno.EIO),
    "EIO from then on": Mode(_FAIL, errno.EIO, lasting=True),
    "ENOSPC": Mode(_FAIL, errno.ENOSPC, _ALLOCATES),
    "ENOSPC from then on": Mode(_FAIL, errno.ENOSPC, _ALLOCATES, lasting=True),
}


class Step(NamedTuple):
    """One thing that a child does, and the labels of the events that it attempts by it: all or none."""

    act: Callable[[FileStore], object]
    labels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Scenario:
    """A workspace as it is before, and what is then done to it."""

    prepare: Callable[[Path], None]
    steps: tuple[Step, ...]
    repair: Callable[[FileStore], object] = lambda _store: None
    """What the next person would type before going on; nothing, where guard mends itself."""
    keeps: Callable[[Path], list[bytes]] = lambda _before: []
    """Damaged bytes that must be found somewhere in the workspace afterwards."""
    segment_max_bytes: int = 1 << 20

    def store(self, path: Path) -> FileStore:
        return FileStore(path, segment_max_bytes=self.segment_max_bytes)


@dataclass
class Trial:
    """What was said of a trial before it ended."""

    attempted: list[Sequence[str]] = field(default_factory=list)
    acknowledged: list[Sequence[str]] = field(default_factory=list)
    failures: list[tuple[Sequence[str], str]] = field(default_factory=list)
    bugs: list[str] = field(default_factory=list)
    seen: list[int] = field(default_factory=list)

    def hear(self, word: str, what: Any) -> None:
        getattr(self, word).append(what)


def compiled(folder: Path) -> Path:
    """The shim as a library in this folder."""
    library = folder / "faults.so"
    words = ["cc", "-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o", os.fspath(library)]
    subprocess.run([*words, os.fspath(SOURCE), "-ldl"], check=True, timeout=120)
    return library


def tried(scenario: str, library: Path, folder: Path, every: int = 1) -> dict[str, dict[str, Any]]:
    """Every mode at every call of a scenario, or at every n-th: by mode the number of those tried and the violations."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.faults", scenario, os.fspath(folder), str(every)],
        cwd=ROOT,
        env={**os.environ, "LD_PRELOAD": os.fspath(library)},
        stdout=subprocess.PIPE,
        text=True,
        timeout=1800,
        check=True,
    )
    results: dict[str, dict[str, Any]] = json.loads(done.stdout)
    return results


def _spawn(agent: str, task: str, label: str) -> Step:
    return Step(
        lambda store: registry.spawn(store, MOMENT, task_id=task, agent_id=agent, message=label),
        (label,),
    )


def _update(agent: str, status: Any, label: str) -> Step:
    return Step(
        lambda store: registry.update(
            store, MOMENT, registry.AgentUpdate("T1", agent, status, message=label)
        ),
        (label,),
    )


def _append(*events: BaseEvent) -> Step:
    def act(store: FileStore) -> None:
        with store.change() as change:
            change.append(*events)

    return Step(act, tuple(_label(event) for event in events))


def _rebuild(store: FileStore) -> object:
    return store.rebuild()


def _salvage(store: FileStore) -> object:
    return store.salvage(MOMENT, new_id())


def _salvage_by_name(store: FileStore) -> object:
    """The same in every trial, so that many of them end alike."""
    return store.salvage(MOMENT, "0123456789abcdef")


def _label(event: BaseEvent) -> str:
    """What tells an event of a trial from every other; empty for those that guard adds by itself."""
    match event:
        case AgentSpawned() | AgentUpdated():
            return event.message or event.id
        case RunStarted():
            return event.run
        case _:
            return ""


def _nothing(_path: Path) -> None:
    return


def _registry(path: Path, events: int = 12, segment_max_bytes: int = 1 << 20) -> None:
    """Two tasks and a run, with all views written."""
    store = FileStore(path, segment_max_bytes=segment_max_bytes)
    begin: list[BaseEvent] = [spawned("a1"), spawned("a2"), spawned("b1", "T2"), run_started()]
    rest = [updated(agent=f"a{number % 2 + 1}") for number in range(events - len(begin))]
    for event in [*begin, *rest]:
        with store.change() as change:
            change.append(event)


def _nearly_full(path: Path) -> None:
    """The first of these updates finds the live segment too large; there is an older one already."""
    _registry(path, events=18, segment_max_bytes=4096)
    _fill(path)


def _fill(path: Path) -> None:
    store = FileStore(path)
    while (path / "events.jsonl").stat().st_size < 4096:
        with store.change() as change:
            change.append(updated())


def _torn(path: Path) -> None:
    _registry(path)
    log = path / "events.jsonl"
    line = log.read_bytes().splitlines(keepends=True)[-1]
    with log.open("ab") as file:
        file.write(line[: len(line) // 2])


def _damaged_views(path: Path) -> None:
    _registry(path)
    (path / "T2/AGENT_REGISTRY.json").unlink()
    (path / "T1/AGENT_REGISTRY.json").write_bytes(b"{}")
    view = path / "registry/GLOBAL_REGISTRY.json"
    view.write_bytes(view.read_bytes().replace(b"working", b"blocked"))


def _damaged_log(path: Path) -> None:
    """A flipped bit in the middle of a sealed segment; what follows it has to go, too."""
    _registry(path, events=28, segment_max_bytes=4096)
    sealed = path / "events.000001.jsonl"
    data = bytearray(sealed.read_bytes())
    data[len(data) // 2] ^= 1
    sealed.write_bytes(data)


_SEVERAL = (
    _update("a1", "blocked", "blocked"),
    _append(updated(message="pair-1"), updated(agent="a2", message="pair-2, the longer" * 5)),
    _spawn("c1", "T3", "new-task"),
    _append(run_started(run="second-run")),
    _update("a2", "completed", "ended"),
)

SCENARIOS: dict[str, Scenario] = {
    "first append": Scenario(_nothing, (_spawn("a1", "T1", "first"),)),
    "one update": Scenario(_registry, (_update("a1", "blocked", "blocked"),)),
    "several updates": Scenario(_registry, _SEVERAL),
    "rotation": Scenario(
        _nearly_full,
        tuple(_update("a1", "working", f"update-{number}") for number in range(3)),
        segment_max_bytes=4096,
    ),
    "after a torn tail": Scenario(_torn, (_update("a1", "blocked", "blocked"),)),
    "rebuild": Scenario(
        _damaged_views,
        (Step(_rebuild),),
        repair=_rebuild,
        keeps=lambda before: [
            (before / name).read_bytes()
            for name in ("T1/AGENT_REGISTRY.json", "registry/GLOBAL_REGISTRY.json")
        ],
    ),
    "salvage": Scenario(
        _damaged_log,
        (Step(_salvage_by_name),),
        repair=_salvage,
        keeps=lambda before: [file.read_bytes() for file in sorted(before.glob("events.*"))],
    ),
}


class Driver:
    """One start of Python serves all trials of a scenario; those that kill are given a child each."""

    def __init__(self, scenario: Scenario, folder: Path, every: int) -> None:
        self._scenario, self._every = scenario, every
        self._before = folder / "before"
        self._path = folder / "workspace"
        self._shim = ctypes.CDLL(None)
        scenario.prepare(self._before)
        self._kept = scenario.keeps(self._before) if self._before.exists() else []
        self._base = _sound_labels(scenario.store(self._before))
        self._judged: dict[str, list[str]] = {}

    def results(self) -> dict[str, dict[str, Any]]:
        results = {}
        for name, mode in MODES.items():
            (points,) = self._trial(mode, _NEVER).seen
            violations = []
            chosen = range(1, points + 1, self._every)
            for at in chosen:
                trial = self._trial(mode, at)
                violations += [f"call {at}: {problem}" for problem in self._found(trial, mode)]
            results[name] = {"points": len(chosen), "violations": violations}
        return results

    def _store(self) -> FileStore:
        return self._scenario.store(self._path)

    def _trial(self, mode: Mode, at: int) -> Trial:
        shutil.rmtree(self._path, ignore_errors=True)
        if self._before.exists():
            shutil.copytree(self._before, self._path)
        trial = Trial()
        if mode.way in _DEADLY:
            self._in_a_child(trial, mode, at)
        else:
            self._play(trial.hear, mode, at)
        return trial

    def _in_a_child(self, trial: Trial, mode: Mode, at: int) -> None:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            self._play(lambda *said: os.write(writer, json.dumps(said).encode() + b"\n"), mode, at)
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader, encoding="ascii") as file:
            for line in file:
                trial.hear(*json.loads(line))
        status = os.waitpid(child, 0)[1]
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) != signal.SIGKILL:
            trial.bugs.append(f"ended by signal {os.WTERMSIG(status)}")

    def _play(self, say: Callable[[str, Any], object], mode: Mode, at: int) -> None:
        """Every step, whatever became of the one before, in one long-lived store."""
        signal.alarm(_TRIAL_SECONDS)
        store = self._store()
        folder = os.fsencode(self._path)
        self._shim.faults_arm(mode.way, mode.error, mode.traits, mode.lasting, at, folder)
        for step in self._scenario.steps:
            say("attempted", step.labels)
            try:
                step.act(store)
            except (GuardError, OSError) as error:
                say("failures", (step.labels, str(error)))
            except Exception as error:
                say("bugs", f"{type(error).__name__}: {error}")
            else:
                say("acknowledged", step.labels)
        say("seen", self._shim.faults_seen())
        self._shim.faults_arm(0, 0, 0, 0, 0, b"")

    def _found(self, trial: Trial, mode: Mode) -> list[str]:
        """What is wrong after a trial. Most calls change nothing, so many trials leave the same: that is judged once."""
        told = (trial.attempted, trial.acknowledged, trial.failures, trial.bugs)
        key = repr((told, mode.way, mode.lasting, _left_in(self._path)))
        if key not in self._judged:
            self._judged[key] = list(self._judge(trial, mode))
        return self._judged[key]

    def _judge(self, trial: Trial, mode: Mode) -> Iterator[str]:
        yield from trial.bugs
        if len(trial.failures) > 1 and not mode.lasting:
            yield f"one fault, but more than one failure: {trial.failures}"
        if trial.failures and mode.way == _SHORTEN:
            yield f"a short write failed: {trial.failures}"
        try:
            yield from self._judge_bytes_kept()
            self._scenario.repair(self._store())
            yield from self._judge_log(trial, mode)
            yield from _judge_views(self._store())
            yield from self._judge_next()
        except Exception as error:
            yield f"{type(error).__name__}: {error}"

    def _judge_bytes_kept(self) -> Iterator[str]:
        if self._kept:
            found = {file.read_bytes() for file in self._path.rglob("*") if file.is_file()}
            yield from (f"{len(kept)} bytes lost" for kept in self._kept if kept not in found)

    def _judge_log(self, trial: Trial, mode: Mode) -> Iterator[str]:
        report = self._store().verify()
        yield from (f"verify: {finding}" for finding in report.findings)
        present = [*filter(None, map(_label, _events(self._store())))]
        new = present[len(self._base) :]
        if present[: len(self._base)] != self._base:
            yield f"what was there before has changed: {present}"
        if new != [label for labels in trial.attempted for label in labels if label in new]:
            yield f"not attempted, twice or out of order: {new}"
        for labels, why in trial.failures:
            if set(labels) & set(new) and not mode.lasting:
                yield f"failed, but recorded: {labels}: {why}"
        for labels in trial.acknowledged:
            if not set(labels) <= set(new):
                yield f"acknowledged and lost: {labels}"
        for labels in trial.attempted:
            if set(labels) & set(new) not in (set(), set(labels)):
                yield f"half of a change: {set(labels) & set(new)} of {labels}"
        yield from self._judge_salvage()

    def _judge_salvage(self) -> Iterator[str]:
        """Whatever was set aside is named in the log, however often a salvage was begun."""
        told = [event for event in _events(self._store()) if isinstance(event, LogSalvaged)]
        named = {name for event in told for name in event.set_aside}
        aside = {file.name for file in self._path.glob("events*.damaged-*")}
        if not aside <= named:
            yield f"set aside and not recorded: {aside - named}"

    def _judge_next(self) -> Iterator[str]:
        _spawn("after", "T9", "after").act(self._store())
        report = self._store().verify()
        if not report.ok or report.behind or report.torn_bytes:
            yield f"after the next change: {report}"
        if "after" not in map(_label, _events(self._store())):
            yield "the next change is not in the log"


def _left_in(folder: Path) -> str:
    """A digest of all that is there; who holds the lock, which stands at its beginning, is another one in every trial."""
    found = sha256()
    for path in sorted(folder.rglob("*")):
        data = path.read_bytes() if path.is_file() else b""
        said = data[_HOLDER_BYTES:] if path.name == LOCK else data
        found.update(repr((str(path), path.lstat().st_mode, len(said))).encode() + said)
    return found.hexdigest()


def _events(store: FileStore) -> list[BaseEvent]:
    return [entry.event for entry in store.entries()]


def _sound_labels(store: FileStore) -> list[str]:
    """The labels up to the end of the log, or up to where it is damaged."""
    labels = []
    with suppress(GuardError):
        for entry in store.entries():
            labels.append(_label(entry.event))  # noqa: PERF401
    return [*filter(None, labels)]


def _judge_views(store: FileStore) -> Iterator[str]:
    replay = Replay()
    for entry in store.entries():
        replay.feed(entry)
    for path, fold in replay.folds.items():
        kind = replay.kinds[path]
        found: ViewDocument | None = store.view(kind, fold.key)
        if found != fold.document():
            yield f"{path} is read as {found}"


def _driver(scenario: str, folder: str, every: str) -> Driver:
    return Driver(SCENARIOS[scenario], Path(folder), int(every))


if __name__ == "__main__":
    gc.disable()
    gc.freeze()  # A collection in a child would copy every page that it shares with its parent.
    print(json.dumps(_driver(*sys.argv[1:]).results()))
