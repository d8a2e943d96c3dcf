"""The two plays of the demo: damaged state, and iterations that end in every way."""

import shlex
import signal
import subprocess
from hashlib import sha256
from pathlib import Path

from guard.demo.stage import Stage
from guard.errors import Refused
from guard.system.processes import start
from guard.system.programs import own_python

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
    """Agents report, writers are killed and files are damaged; the record survives, or guard finds the damage."""

    def play(self) -> None:
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
        writer = start(
            own_python("-c", _WRITER),
            self._environ,
            self._folder,
            stdin=subprocess.DEVNULL,
            stderr=None,
        )
        with writer:
            assert writer.stdout is not None
            acknowledged = [writer.stdout.readline() for _ in range(25)]
            writer.send_signal(signal.SIGKILL)
            acknowledged += writer.stdout.readlines()
        count = len([line for line in acknowledged if line.endswith(b"\n") and line.strip()])
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
            "The log itself is edited: the chain says where, and to go on is the user's decision"
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


_AGENT = tuple(own_python("-m", "guard.demo.agent"))


class IterationsPlay(Stage):
    """A scripted agent commits, forgets to commit, delegates, meets a limit, stalls and recovers."""

    def play(self) -> None:
        """Play all scenes in order; a scene with an unexpected outcome ends the demo."""
        self._make_repository()
        self._git("commit", "-q", "--allow-empty", "-m", "chore: begin")
        self._scene("The agent commits: complete")
        self._iterate("commits")
        self._scene("It forgets to commit: its session is asked, and its work is committed")
        self._iterate("forgets", says="complete")
        self._scene("It leaves a helper at work: guard waits, until the helper's commit lands")
        self._iterate("delegates", says="waiting")
        self._scene("It meets a usage limit: no stall, and it is said when to go on")
        self._iterate("limited", agent="claude", code=13)
        self._scene("It stalls three times: only that opens the breaker")
        for _ in range(3):
            self._iterate("stalls", says="working", code=10)
        self._iterate("stalls", says="working", code=20)
        self._scene("A person commits: that earns a trial, the agent recovers, the breaker closes")
        self._git("commit", "-q", "--allow-empty", "-m", "chore: a hint for the agent")
        self._recover()
        self._guard("metrics")

    def _iterate(self, part: str, *, says: str = "", agent: str = "", code: int = 0) -> None:
        words = ["run", "--max-probes", "2", "--probe-interval", "0.2"]
        words = words if part == "delegates" else ["--quiet", *words]
        shown = ["run"]
        if says:
            words += ["--probe-command", shlex.join([*_AGENT, "answer", says])]
        if agent:
            words += ["--agent", agent]
            shown += ["--agent", agent]
        self._guard(
            *words, "--", *_AGENT, part, code=code, shown=f"{' '.join(shown)} -- agent {part}"
        )

    def _recover(self) -> None:
        (self._folder / "greeting.py").unlink()
        self._git("commit", "-q", "-a", "-m", "chore: start over")
        self._iterate("commits")
        shown = self._guard("breaker", "show", "--format", "json", shown="breaker show", quiet=True)
        self._expect('"state": "closed"' in shown, "the breaker did not close")
        self._tell("  closed")
