"""The demo's scripted agent, which ends sessions as real agents do, without a model."""

import json
import os
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


def _answer(status: str) -> None:
    sys.stdin.read()
    print(json.dumps({"status": status, "message": f"scripted: {status}"}))


PARTS: dict[str, Callable[[], None]] = {
    "commits": _commits,
    "forgets": _forgets,
    "delegates": _delegates,
    "helper": _helper,
    "limited": _hits_limit,
    "stalls": _stalls,
}


# `python -m guard.demo.agent PART` plays one part in the current folder; `answer STATUS` in place of PART answers a probe.
if __name__ == "__main__":
    if sys.argv[1] == "answer":
        _answer(sys.argv[2])
    else:
        PARTS[sys.argv[1]]()
