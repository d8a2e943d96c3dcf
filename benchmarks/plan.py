"""A plan worked off by four scripted agents with every fault, and guard killed in the middle of it again and again."""

import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.measure import Row, none_of, scratch
from tests.support import git
from tests.support.faulty_plan import FaultyPlan
from tests.support.plan_runs import WORK, PlanRunStory

TASKS = KILLS = 30
_QUIET_TASKS = 10
_MOST_SECONDS = 1.5
_OWN = ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME")


def rows(seed: int = 1) -> Iterator[Row]:
    with scratch() as folder, _own_home(folder / "home"):
        yield _killed(_project(folder / "killed"), seed)
        yield _overhead(_project(folder / "quiet"))


def _killed(root: Path, seed: int) -> Row:
    story = FaultyPlan(root, TASKS)
    told = story.finish(seed, KILLS, "--agents", "4")
    problems = story.problems() if told[-1] == "ended with 0" else [told[-1]]
    sessions = sum(story.sessions(name) for name in story.names)
    what = f"tasks of {TASKS} that did not land once, guard killed up to {KILLS} times, seed {seed}"
    detail = f"{len(told) - 1} kills, {sessions} sessions of agents; {'; '.join(problems[:3]) or 'all landed once'}"
    return none_of(what, len(problems), detail)


def _overhead(root: Path) -> Row:
    story = PlanRunStory(root, *(f"T{number}: do it" for number in range(_QUIET_TASKS)))
    before = _children_seconds()
    code = story.start("--agents", "2", "--audit", "true").wait()
    assert code == 0, (story.scripts / "run.log").read_text()
    whole = _children_seconds() - before
    agents = _agent_seconds(root) * _QUIET_TASKS
    each = (whole - agents) / _QUIET_TASKS
    return Row(
        "CPU time of a run of the plan beside the agent's own, for each task",
        f"at most {_MOST_SECONDS} s",
        each,
        each <= _MOST_SECONDS,
        f"{whole:.1f} s for {_QUIET_TASKS} tasks, of which the agents took {agents:.1f} s",
        unit=" s",
    )


def _agent_seconds(root: Path) -> float:
    before = _children_seconds()
    environ = {**os.environ, "GUARD_TASK": "alone"}
    subprocess.run(["sh", "-c", WORK], cwd=root, env=environ, check=True, capture_output=True)
    return _children_seconds() - before


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _project(root: Path) -> Path:
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    git(root, "config", "user.name", "Another Author")
    git(root, "config", "user.email", "another@example.com")
    return root


@contextmanager
def _own_home(home: Path) -> Iterator[None]:
    """Have a home and a state of the benchmark's own inside."""
    before = {name: os.environ.get(name) for name in _OWN}
    home.mkdir()
    own = (home, home / "state", home / "config")
    os.environ.update({name: os.fspath(path) for name, path in zip(_OWN, own, strict=True)})
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
