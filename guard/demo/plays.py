"""The plays of the demo: damaged state, iterations that end in every way, and a plan that is worked off."""

import re
import shlex
import signal
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

from guard.demo.stage import SECONDS, Stage
from guard.errors import Refused
from guard.system.processes import run, start
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


_TESTS = """\
import unittest

import prices


class Total(unittest.TestCase):
    def test_none(self):
        self.assertEqual(prices.total([]), 0)

    def test_two(self):
        self.assertEqual(prices.total([2, 3]), 5)
"""
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
        self._scene(
            "It breaks the code and removes the test that shows it: refuted, until it repairs"
        )
        self._write_tests()
        self._iterate("cheats", proves=True, code=17)
        self._iterate("repairs", proves=True)
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

    def _write_tests(self) -> None:
        (self._folder / "prices.py").write_text("def total(prices):\n    return sum(prices)\n")
        (self._folder / "test_prices.py").write_text(_TESTS)
        self._git("add", "-A")
        self._git("commit", "-q", "-m", "feat: add up prices")

    def _iterate(
        self, part: str, *, says: str = "", agent: str = "", proves: bool = False, code: int = 0
    ) -> None:
        words = ["run", "--max-probes", "2", "--probe-interval", "0.2"]
        words = words if part == "delegates" else ["--quiet", *words]
        shown = ["run"]
        if says:
            words += ["--probe-command", shlex.join([*_AGENT, "answer", says])]
        if proves:
            words += ["--prove", shlex.join([sys.executable, "-m", "unittest", "-q"])]
            shown += ["--prove", "'python3 -m unittest'"]
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


_PLAN = """\
# Plan

- [ ] schema: Write the schema of the orders
- [ ] loader: Load the orders (depends: schema)
- [ ] menu: Put a menu on the page
- [ ] title: Put a title on the page
- [ ] colours: Colour the page
"""
_NO_TODO = "! grep -n TODO *.py"


class PlanPlay(Stage):
    """Three agents at once work a plan off; one crashes, two conflict, an audit fails, and one asks a person."""

    _seconds = 600.0

    def play(self) -> None:
        self._make_repository()
        self._scene("A plan of five tasks")
        (self._folder / "PLAN.md").write_text(_PLAN)
        (self._folder / "page.txt").write_text("the end of the page\n")
        self._git("add", "-A")
        self._git("commit", "-q", "-m", "docs: plan the shop")
        self._tell(_PLAN.rstrip())
        self._scene("Three agents at once: one crashes, two conflict, an audit fails, one asks")
        asked = self._work(code=14)
        question = re.search(r"guard plan answer (\S+)", asked)
        self._expect(question is not None, "no agent asked a person")
        self._scene("A person answers, and the plan is worked off to its end")
        self._guard("plan", "answer", question[1] if question else "", "blue, as the logo")
        self._work(code=0)
        self._check_target()

    def _work(self, code: int) -> str:
        words = ("plan", "run", "--agents", "3", "--audit", _NO_TODO, "--", *_AGENT, "plan")
        shown = f"plan run --agents 3 --audit '{_NO_TODO}' -- agent"
        return self._guard(*words, code=code, shown=shown)

    def _check_target(self) -> None:
        self._scene("Every task has landed once, and the person's own branch is as it was")
        words = ["git", "log", "--reverse", "--format=%s", "main..guard/plan/PLAN"]
        done = run(words, environ=self._environ, time_limit=SECONDS, cwd=self._folder)
        landed = done.stdout.decode(errors="replace").splitlines()
        for subject in landed:
            self._tell(f"  {subject}")
        self._expect(len(landed) == 5, f"{len(landed)} commits are on the target, not 5")
        words = ["git", "show", "guard/plan/PLAN:page.txt"]
        shown = run(words, environ=self._environ, time_limit=SECONDS, cwd=self._folder)
        parts = sorted(shown.stdout.decode(errors="replace").splitlines())
        self._expect(
            parts == ["menu", "the end of the page", "title"], "a part of the page is lost"
        )
