"""The play about state: agents report, writers are killed, files are damaged, and the record stands."""

import signal
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

from guard.demo.stage import Stage
from guard.errors import Refused

_TASK = "login-page"
_WRITER = """\
from guard import update_agent_progress
number = 0
while True:
    number += 1
    update_agent_progress("login-page", "builder-1", "working", f"step {number}")
    print(number, flush=True)
"""


class StatePlay(Stage):
    """Agents report, writers are killed, files are damaged: the record stands, or the damage is found out."""

    def play(self) -> None:
        """All scenes in order; a scene that goes otherwise than it should ends the demo."""
        self._set_the_stage()
        self._report_agents()
        self._kill_a_writer()
        self._damage_a_view()
        self._lose_all_views()
        self._edit_the_log()

    def _set_the_stage(self) -> None:
        self._scene("A repository, and where guard keeps its state: outside of it")
        self._make_repository()
        self._workspace = Path(self._guard("where").rstrip("\n"))

    def _report_agents(self) -> None:
        self._scene("Two agents report; one ends, and both registries count it once")
        for agent, kind in (("builder-1", "builder"), ("fixer-1", "fixer")):
            self._guard("agent", "spawn", "--task", _TASK, "--agent", agent, "--type", kind)
        self._update("fixer-1", "working", "--progress", "40", "--message", "found the broken test")
        self._update(
            "fixer-1", "completed", "--progress", "100", "--message", "fixed and committed"
        )
        self._guard("agent", "list")

    def _update(self, agent: str, status: str, *words: str) -> None:
        self._guard(
            "agent", "update", "--task", _TASK, "--agent", agent, "--status", status, *words
        )

    def _kill_a_writer(self) -> None:
        self._scene("A process that writes without pause is killed with SIGKILL")
        writer = subprocess.Popen(  # noqa: S603
            [sys.executable, "-c", _WRITER],
            cwd=self._folder,
            env=self._environ,
            stdout=subprocess.PIPE,
            text=True,
        )
        with writer:
            assert writer.stdout is not None
            acknowledged = [writer.stdout.readline() for _ in range(25)]
            writer.send_signal(signal.SIGKILL)
            acknowledged += writer.stdout.readlines()
        count = len([line for line in acknowledged if line.endswith("\n") and line.strip()])
        if not count:
            raise Refused("the demo's writer did not write", "run `guard doctor`")
        steps = self._guard("log", "--type", "agent_updated", "-n", "2")
        self._expect(
            f'"step {count}"' in steps, f"step {count} was acknowledged but is not in the log"
        )
        self._tell(f"  {count} updates were acknowledged before the kill; all of them are there")
        self._guard("verify")

    def _damage_a_view(self) -> None:
        self._scene("A bit flips in a registry: found out, and made again from the log")
        view = self._workspace / _TASK / "AGENT_REGISTRY.json"
        data = bytearray(view.read_bytes())
        data[len(data) // 2] ^= 1
        view.write_bytes(data)
        self._guard("verify", code=1)
        self._guard("rebuild")
        self._guard("verify")

    def _lose_all_views(self) -> None:
        self._scene("All views are deleted: the log makes them again, byte for byte")
        before = self._digest()
        for path in self._views():
            path.unlink()
        self._guard("rebuild")
        self._expect(self._digest() == before, "the rebuilt views differ")
        self._tell(f"  sha256 over all views, before and after: {before[:16]}")

    def _edit_the_log(self) -> None:
        self._scene(
            "Somebody edits the log itself: the chain says where; going on is a person's decision"
        )
        log = self._workspace / "events.jsonl"
        log.write_bytes(log.read_bytes().replace(b"fixed and committed", b"fixed, never tested"))
        self._guard("verify", code=1)
        self._guard("rebuild", code=5)
        self._guard("rebuild", "--salvage")
        self._guard("verify")

    def _views(self) -> list[Path]:
        return sorted(self._workspace.rglob("*_REGISTRY.json"))

    def _digest(self) -> str:
        return sha256(b"".join(path.read_bytes() for path in self._views())).hexdigest()
