"""A plan of many tasks whose agents crash, forget to commit, conflict and fail audits; and guard killed in the middle of it."""

import os
import random
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from guard.context.invocation import Invocation
from guard.plan.slots import Slots
from guard.store.log import LIVE
from tests.support import TIME_LIMIT
from tests.support.plan_runs import PlanRunStory

Fault = Literal["none", "crash", "forgotten", "failed_audit", "conflict", "no_commits"]
KillKind = Literal["alone", "group", "all"]
FAULTS: tuple[Fault, ...] = (
    *("no_commits", "conflict", "conflict", "crash"),
    *("forgotten", "failed_audit", "none"),
)
_LINES = 'grep -qx -- "- $GUARD_TASK" CHANGELOG.md || echo "- $GUARD_TASK" >> CHANGELOG.md\n'
_DONE = f"""\
{_LINES}echo "$GUARD_TASK" > "$GUARD_TASK.txt"
git add -A
git commit -q -m "feat: do $GUARD_TASK"
echo "READY FOR AUDIT: $GUARD_TASK"
"""
# The second task merges what the target has; both lines stay.
_SHARED = """\
merged=$(grep -o 'git merge [^`]*' "$here/$key.prompt-$number" | head -n 1)
if [ -n "$merged" ]; then
    $merged > /dev/null 2>&1
    sed -i '/^[<=>]\\{7\\}/d' shared.txt
    git add -A
    git commit -q -m "merge: the target"
elif ! grep -q "^$GUARD_TASK$" shared.txt; then
    sed -i "1s/^/$GUARD_TASK\\n/" shared.txt
fi
"""
KILLS: tuple[KillKind, ...] = ("alone", "group", "all")
AUDIT = 'test -f "$GUARD_TASK.txt" && ! grep -q bad "$GUARD_TASK.txt"'
_FIRST: dict[Fault, str] = {
    "none": "",
    "crash": "echo half > half.txt; kill -9 $$\n",
    "forgotten": f'{_LINES}echo "$GUARD_TASK" > "$GUARD_TASK.txt"; echo "READY FOR AUDIT: $GUARD_TASK"\n',
    "failed_audit": 'echo bad > "$GUARD_TASK.txt"; git add -A; git commit -q -m "feat: bad"\n',
    "conflict": "",
    "no_commits": 'echo "READY FOR AUDIT: $GUARD_TASK"\n',
}


def fault_of(number: int) -> Fault:
    return FAULTS[number % len(FAULTS)]


class FaultyPlan(PlanRunStory):
    """Tasks T1 to Tn; every third one depends on the two before it."""

    def __init__(self, root: Path, count: int) -> None:
        self.names = [f"T{number}" for number in range(1, count + 1)]
        lines = []
        for number, name in enumerate(self.names, 1):
            needs = f" (depends: T{number - 1}, T{number - 2})" if number % 3 == 0 else ""
            lines.append(f"{name}: do {name}{needs}")
        (root / "shared.txt").write_text("end\n")
        (root / "CHANGELOG.md").write_text("# Changelog\n")
        super().__init__(root, *lines)
        self.does("work", _DONE)
        for number, name in enumerate(self.names, 1):
            fault = fault_of(number)
            if _FIRST[fault]:
                self.does(f"{name}.work.1", _FIRST[fault])
            if fault == "conflict":
                for session in range(1, 9):
                    self.does(f"{name}.work.{session}", f"{_SHARED}{_DONE}")

    def start(self, *options: str, env: Any = None) -> "subprocess.Popen[bytes]":
        # As many conflicts as there are tasks that touch the same line are no reason to ask a person.
        return super().start(
            "--audit", AUDIT, *options, env={"GUARD_LANDING__ATTEMPTS": "20", **(env or {})}
        )

    def kill(self, process: "subprocess.Popen[bytes]", kind: KillKind) -> None:
        """Kill guard: alone, with its process group, or with all guards that it has started."""
        if kind == "alone":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(TIME_LIMIT)
        if kind == "all":
            for slot in Slots(Invocation(repo=self.root, environ=os.environ)).existing():
                work = slot.record().work
                if work is not None and work.process is not None:
                    with suppress(ProcessLookupError):
                        os.killpg(work.process.pid, signal.SIGKILL)

    def finish(self, seed: int, kills: int, *options: str, most: int = 60) -> list[str]:
        """Kill the run after random numbers of records, start it again, and return what was done."""
        chance, told = random.Random(seed), list[str]()
        for _ in range(kills):
            records, kind = chance.randint(1, most), chance.choice(KILLS)
            process = self.start(*options)
            if not self._wait_for_records(process, records):
                told.append(f"ended with {process.returncode}")
                return told
            self.kill(process, kind)
            told.append(f"killed {kind} after {records} records")
        told.append(f"ended with {self.start(*options).wait(4 * TIME_LIMIT)}")
        return told

    def _wait_for_records(self, process: "subprocess.Popen[bytes]", more: int) -> bool:
        """Wait until the log has so many more records; return False if the process ends before."""
        log = Invocation(repo=self.root, environ=os.environ).workspace.path / LIVE
        before = _count_lines(log)
        deadline = time.monotonic() + TIME_LIMIT
        while _count_lines(log) < before + more:
            assert time.monotonic() < deadline, "the run hangs"
            if process.poll() is not None:
                return False
            time.sleep(0.01)
        return True

    def problems(self) -> list[str]:
        """Return what is wrong after a run that ended complete: tasks that landed not at all, twice, or in part."""
        landed = self.landed()
        found = [
            f"{name} landed {landed.count(name)} times"
            for name in self.names
            if landed.count(name) != 1
        ]
        changelog = self.shown("CHANGELOG.md").split("\n")
        shared = self.shown("shared.txt").split("\n")
        for number, name in enumerate(self.names, 1):
            if self.shown(f"{name}.txt") != f"{name}\n":
                found.append(f"{name}.txt is {self.shown(f'{name}.txt')!r}")
            if changelog.count(f"- {name}") != 1:
                found.append(f"{name} is {changelog.count(f'- {name}')} times in CHANGELOG.md")
            if fault_of(number) == "conflict" and shared.count(name) != 1:
                found.append(f"{name} is {shared.count(name)} times in shared.txt")
        if self.shown("PLAN.md").count("- [x]") != len(self.names):
            found.append("not every box is ticked")
        if self.branches():
            found.append(f"branches are left: {self.branches()}")
        return found


def _count_lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0
