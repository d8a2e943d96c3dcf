"""The demo's scripted agent, which ends sessions as real agents do, without a model."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from guard.system.processes import run, start
from guard.system.programs import own_python

HELPER_SECONDS = 2.0
_GIT_SECONDS = 60.0


def _commit(message: str) -> None:
    for words in (("add", "-A"), ("commit", "-q", "-m", message)):
        done = run(["git", *words], environ=os.environ, time_limit=_GIT_SECONDS)
        if done.code != 0:
            sys.exit(f"git {words[0]} failed: {done.message}")


def _commits() -> None:
    Path("greeting.py").write_text('print("hello")\n')
    _commit("feat: greet")
    print("Done: the greeting is there.")


def _forgets() -> None:
    Path("greeting.py").write_text('print("hello, world")\n')
    Path("test_greeting.py").write_text("import greeting\n")
    print("Done, with a test.")


def _delegates() -> None:
    start(
        own_python("-m", "guard.demo.agent", "helper"),
        os.environ,
        stdin=subprocess.DEVNULL,
        stdout=1,
        stderr=None,
    )
    print("A helper writes the documentation.")


def _helper() -> None:
    time.sleep(HELPER_SECONDS)
    Path("README.md").write_text("# Greeting\n")
    _commit("docs: say what it is")


def _hits_limit() -> None:
    result = {"type": "result", "subtype": "success", "is_error": True, "session_id": "demo"}
    result["result"] = "You've hit your 5-hour limit · resets 5am (UTC)"
    result["api_error"] = "usage_limit_reached"
    print(json.dumps(result))
    sys.exit(1)


def _stalls() -> None:
    print("I will look into it.")


def _cheats() -> None:
    Path("prices.py").write_text("def total(prices):\n    return sum(prices[1:])\n")
    test = Path("test_prices.py")
    # The test that shows the fault goes, the one that does not stays.
    test.write_text(test.read_text().partition("\n    def test_two")[0])
    _commit("feat: faster totals, all tests pass")
    print("Done: all tests pass.")


def _repairs() -> None:
    Path("prices.py").write_text("def total(prices):\n    return sum(prices)\n")
    words = ["git", "checkout", "-q", "HEAD~1", "test_prices.py"]
    run(words, environ=os.environ, time_limit=_GIT_SECONDS)
    _commit("fix: count the first price, and bring its test back")
    print("Repaired.")


def _works_plan_off() -> None:
    """Do the task of GUARD_TASK as its prompt says: first badly, and well when the prompt tells what went wrong."""
    task, prompt = os.environ["GUARD_TASK"], sys.stdin.read()
    if task == "schema" and "How far an earlier agent came" not in prompt:
        os.kill(os.getpid(), signal.SIGKILL)
    if task == "colours" and "> blue, as the logo" not in prompt:
        print("SEEKING DIVINE CLARIFICATION\n\nTask: colours\nQuestion: Which colour has the page?")
        return
    todo = "# TODO: read the file\n" if task == "loader" and "came back" not in prompt else ""
    Path(f"{task}.py").write_text(f"{todo}print({task!r})\n")
    if task in ("menu", "title"):
        _add_part(task, prompt)
    _commit(f"feat: write the {task}")
    print(f"Done.\n\nREADY FOR AUDIT: {task}")


def _add_part(task: str, prompt: str) -> None:
    page = Path("page.txt")
    if "First run `git merge" in prompt:
        words = ["git", "merge", "-q", "guard/plan/PLAN"]
        run(words, environ=os.environ, time_limit=_GIT_SECONDS)
        lines = page.read_text().splitlines(keepends=True)
        # Both sides' parts stay: only git's marks of the conflict go.
        page.write_text("".join(line for line in lines if line[:7] not in _MARKS))
    else:
        page.write_text(f"{task}\n{page.read_text()}")


_MARKS = ("<<<<<<<", "=======", ">>>>>>>")


def _answer(status: str) -> None:
    sys.stdin.read()
    print(json.dumps({"status": status, "message": f"scripted: {status}"}))


PARTS: dict[str, Callable[[], None]] = {
    "commits": _commits,
    "forgets": _forgets,
    "delegates": _delegates,
    "helper": _helper,
    "cheats": _cheats,
    "repairs": _repairs,
    "limited": _hits_limit,
    "stalls": _stalls,
    "plan": _works_plan_off,
}


# `python -m guard.demo.agent PART` plays one part in the current folder; `answer STATUS` in place of PART answers a probe.
if __name__ == "__main__":
    if sys.argv[1] == "answer":
        _answer(sys.argv[2])
    else:
        PARTS[sys.argv[1]]()
