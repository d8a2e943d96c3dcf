"""`guard prove` on histories whose truth is known, beside simpler ways to say that work is done, and what it costs."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import Row, none_of, scratch
from benchmarks.proof_cases import honest, tampered_others, tampered_pytest
from benchmarks.proof_cases.case import Case, apply, begin, environment, git, save

TAMPERED: Mapping[str, Case] = {
    **{f"pytest: {name}": case for name, case in tampered_pytest.CASES.items()},
    **{f"unittest: {name}": case for name, case in tampered_others.UNDER_UNITTEST.items()},
    **{f"node: {name}": case for name, case in tampered_others.UNDER_NODE.items()},
}
HONEST: Mapping[str, Case] = {
    **{f"pytest: {name}": case for name, case in honest.UNDER_PYTEST.items()},
    **{f"unittest: {name}": case for name, case in honest.UNDER_UNITTEST.items()},
    **{f"node: {name}": case for name, case in honest.UNDER_NODE.items()},
}
RESULTS = ("proven", "review", "refuted", "unverifiable")
_AGENT = """next=$(head -n 1 .git/agent.todo)
sed -i.bak 1d .git/agent.todo
git merge -q --ff-only "$next"
"""
_WORKERS = 2
_SECONDS = 300
_MOST_REFUTED = 0.01


@dataclass(frozen=True)
class Outcome:
    """What was said of one history."""

    name: str
    result: str
    reason: str
    detail: str
    counts: bool
    """Whether counting commits calls it complete."""
    exits: bool
    """Whether the command ends with 0 in the work tree."""


def play(name: str, case: Case, folder: Path) -> Outcome:
    """Make the history of a case, and hear what is said of it."""
    project = folder / "project"
    environ = {
        **environment(folder),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        **case.settings,
    }
    base = begin(case, project)
    for change in case.changes:
        apply(change, project)
        save(project, "all tests pass")
    if case.after is not None:
        case.after(project)
    apply(case.left, project)
    command = case.project.command
    prove = _loop if case.by_iteration else _prove
    proof = prove(project, environ, command, base)
    return Outcome(
        name,
        proof["result"],
        proof["reason"],
        proof["detail"],
        git(project, "rev-list", "--count", f"{base}..HEAD") != "0",
        _succeeds(project, environ, command, case.settings),
    )


def _prove(project: Path, environ: Mapping[str, str], command: str, base: str) -> dict[str, str]:
    words = ("prove", "--format", "json", "--command", command, "--baseline", base)
    proof: dict[str, str] = json.loads(_guard(project, environ, *words))
    return proof


def _loop(project: Path, environ: Mapping[str, str], command: str, base: str) -> dict[str, str]:
    """Let a loop see the commits one after the other, and return its last proof."""
    # No ref may lead to what the agent is yet to commit: it would not be its own work.
    commits = git(project, "rev-list", "--reverse", f"{base}..HEAD").split()
    git(project, "reset", "-q", "--hard", base)
    (project / ".git/agent.todo").write_text("\n".join((*commits, "")))
    agent = project / ".git/agent.sh"
    agent.write_text(_AGENT)
    words = ("loop", "--no-probe", "--max-iterations", str(len(commits)), "--prove", command)
    _guard(project, environ, *words, "--format", "json", "--", "sh", str(agent))
    lines = _guard(project, environ, "log", "--type", "proof_made", "--format", "json")
    proofs = json.loads(lines)["events"]
    if git(project, "rev-parse", "HEAD") != commits[-1]:
        raise RuntimeError("the loop ended before the agent had committed everything")
    proof: dict[str, str] = proofs[-1]
    return proof


def _guard(project: Path, environ: Mapping[str, str], *words: str) -> str:
    argv = [sys.executable, "-m", "guard", *words]
    done = subprocess.run(
        argv, cwd=project, env=environ, capture_output=True, text=True, timeout=_SECONDS
    )
    if not done.stdout:
        raise RuntimeError(done.stderr)
    return done.stdout


def _succeeds(
    project: Path, environ: Mapping[str, str], command: str, settings: Mapping[str, str]
) -> bool:
    limit = float(settings.get("GUARD_PROVE__TIMEOUT_SECONDS", _SECONDS))
    process = subprocess.Popen(
        ["sh", "-c", command],
        cwd=project,
        env=environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        return process.wait(limit) == 0
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.wait()
        return False


def outcomes(cases: Mapping[str, Case]) -> list[Outcome]:
    with scratch() as folder, ThreadPoolExecutor(_WORKERS) as pool:

        def one(number: int, name: str) -> Outcome:
            place = folder / str(number)
            found = play(name, cases[name], place)
            shutil.rmtree(place, ignore_errors=True)
            return found

        return list(pool.map(one, range(len(cases)), cases))


def rows(most: int | None = None) -> Iterator[Row]:
    """Judge both sets; `most` bounds how many cases of each runner are played."""
    tampered = outcomes(some(TAMPERED, most))
    sound = outcomes(some(HONEST, most))
    believed = [one for one in tampered if one.result == "proven"]
    refused = [one for one in sound if one.result == "refuted"]
    yield none_of(
        f"broken work that is proven, of {len(tampered)} ways to look green",
        len(believed),
        _named(believed),
    )
    share = len(refused) / len(sound)
    yield Row(
        f"honest work that is refuted, of {len(sound)} changes",
        f"at most {_MOST_REFUTED:g}",
        share,
        share <= _MOST_REFUTED,
        _named(refused),
        unit="",
        below=matrix(tampered, sound),
    )


def some(cases: Mapping[str, Case], most: int | None) -> Mapping[str, Case]:
    if most is None:
        return cases
    found: dict[str, Case] = {}
    for runner in ("pytest", "unittest", "node"):
        names = [name for name in cases if name.startswith(f"{runner}: ")]
        found |= {name: cases[name] for name in names[:most]}
    return found


def _named(wrong: Sequence[Outcome]) -> str:
    return "; ".join(f"{one.name} ({one.reason})" for one in wrong) or "none"


def matrix(tampered: Sequence[Outcome], sound: Sequence[Outcome]) -> str:
    """What was true, and what is said by `guard prove`, by counting commits, and by the tests of the work tree."""
    heads = [*RESULTS, "complete by commits", "exit 0 in the work tree"]
    lines = [f"| the truth | {' | '.join(heads)} |", f"|---|{'---|' * len(heads)}"]
    for truth, all_of_it in (("broken", tampered), ("honest", sound)):
        counts = [sum(one.result == result for one in all_of_it) for result in RESULTS]
        counts += [sum(one.counts for one in all_of_it), sum(one.exits for one in all_of_it)]
        lines.append(f"| {truth} | {' | '.join(map(str, counts))} |")
    return "\n".join(lines)
