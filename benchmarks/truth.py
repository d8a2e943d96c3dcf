"""How often what guard says is true, on labelled sets, beside other tools and the naive ways to tell.

Each line of a table is one way to tell; precision and recall have 95 % intervals by Wilson. A set that guard's rules were
tuned on is marked, because its figures say little of what guard does on others.
"""

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import Any

from benchmarks import peers, question_set
from benchmarks.claim_corpus import PARTS, claims
from benchmarks.measure import Row, progress, scratch
from benchmarks.proof import HONEST, TAMPERED, Outcome, play, some
from benchmarks.proof_cases.case import Case, environment
from benchmarks.simulation.runs import Judged, simulated
from guard.core.claims.settings import ClaimsSettings
from guard.core.claims.validate import is_believed, validate
from guard.core.classify import make_reader
from guard.core.classify.question import find_question
from tests.core.tool_calls.test_loops import HEALTHY, LOOPS, NOW
from tests.support.scripted_streams import Call, Person, Say, Step, write_stream

SESSIONS, SEED = 2_000, 7
_Z = 1.959964
_SESSION_NOTES = {
    peers.PROOF_OF_DONE: "sees the session alone: the command, and how it ended in the work tree",
    peers.CLAIMPROOF: "sees the last message alone, and wants the evidence in it",
}
_WORKERS = 2


@dataclass(frozen=True)
class Score:
    """What one way to tell said of a set: right and wrong alarms, and what it missed."""

    way: str
    right: int
    wrong: int
    missed: int
    passed: int
    note: str = ""

    @classmethod
    def of(cls, way: str, said: Iterable[tuple[bool, bool]], note: str = "") -> "Score":
        """Count pairs of what is true and what was said."""
        pairs = list(said)
        right, wrong = pairs.count((True, True)), pairs.count((False, True))
        missed, passed = pairs.count((True, False)), pairs.count((False, False))
        return cls(way, right, wrong, missed, passed, note)


def wilson(hits: int, of: int) -> tuple[float, float]:
    """Return the bounds of a share's 95 % interval; everything is possible where nothing was counted."""
    if of == 0:
        return 0.0, 1.0
    share, spread = hits / of, _Z * _Z / of
    middle = (share + spread / 2) / (1 + spread)
    half = _Z * sqrt(share * (1 - share) / of + spread / of / 4) / (1 + spread)
    return max(0.0, middle - half), min(1.0, middle + half)


def share(hits: int, of: int) -> str:
    if of == 0:
        return "-"
    low, high = wilson(hits, of)
    return f"{100 * hits / of:.0f} % ({100 * low:.1f} to {100 * high:.1f})"


def rows(
    sessions: int | None = None,
    seed: int | None = None,
    most: int | None = None,
    alone: bool = False,
) -> Iterator[Row]:
    """Judge all sets; `most` bounds the cases of each runner in the tamper set; `alone` asks no other tools."""
    sets: Mapping[str, Callable[[], list[Score]]] = {
        "Complete sessions of the simulation, found (guard was tuned on its kinds; the seed is another)": (
            lambda: _sessions(sessions or SESSIONS, SEED if seed is None else seed)
        ),
        "Work that looks green and is not, found (guard was tuned on it)": lambda: _trees(
            most, alone
        ),
        "Loops inside a session, found (guard was tuned on it)": lambda: _loops(alone),
        "Claims not to be believed, found (guard was tuned on it)": lambda: _claims(alone),
        "Last messages that stop for an answer, found (held out: judged once, nothing tuned)": _questions,
    }
    for title, judge in sets.items():
        progress(f"judging: {title} ...")
        scores = judge()
        guards = scores[0]
        size = guards.right + guards.wrong + guards.missed + guards.passed
        yield Row(
            f"{title}, of {size:,}",
            "printed, not judged",
            guards.right / max(1, guards.right + guards.missed),
            True,
            f"precision {share(guards.right, guards.right + guards.wrong)}",
            unit="",
            below=f"{title}:\n\n{table(scores)}",
        )


def table(scores: Iterable[Score]) -> str:
    heads = (
        "way to tell",
        "found",
        "false alarms",
        "missed",
        "rightly passed",
        "precision",
        "recall",
        "note",
    )
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for one in scores:
        counts = (one.right, one.wrong, one.missed, one.passed)
        cells = (
            *map(str, counts if any(counts) else ("-",) * 4),
            share(one.right, one.right + one.wrong),
            share(one.right, one.right + one.missed),
        )
        lines.append(f"| {one.way} | {' | '.join(cells)} | {one.note} |")
    return "\n".join(lines)


def _sessions(count: int, seed: int) -> list[Score]:
    judged = simulated(count, seed)
    said = [(_is_done(one), one.status == "complete") for one in judged]
    plain = [
        (
            not one.plain.is_false_complete if one.plain.is_complete else _is_done(one),
            one.plain.is_complete,
        )
        for one in judged
        if one.plain is not None
    ]
    note = "until its third session without a commit stops the run"
    return [Score.of("guard check", said), Score.of("counting commits", plain, note)]


def _is_done(one: Judged) -> bool:
    # A false claim that there was nothing to do counts as an error, though no evidence can tell it from a true one.
    if one.status == "complete":
        return not (one.is_false_complete or one.is_lie_believed)
    return "complete" in one.truth.right


@dataclass(frozen=True)
class TreeJudged:
    """What each way said of one history of the tamper set."""

    broken: bool
    outcome: Outcome
    peers: Mapping[peers.Peer, bool | None]


def _trees(most: int | None, alone: bool) -> list[Score]:
    programs, absent = _installed(alone, peers.PROOFED_AGENT, peers.PROOF_OF_DONE, peers.CLAIMPROOF)
    cases = [(True, *one) for one in some(TAMPERED, most).items()]
    cases += [(False, *one) for one in some(HONEST, most).items()]
    with scratch() as folder, ThreadPoolExecutor(_WORKERS) as pool:

        def one(number: int, told: tuple[bool, str, Case]) -> TreeJudged:
            place = folder / str(number)
            broken, name, case = told
            outcome = play(name, case, place)
            said = {
                peer: _ask_of_tree(peer, programs[peer], place, case, outcome) for peer in programs
            }
            shutil.rmtree(place, ignore_errors=True)
            return TreeJudged(broken, outcome, said)

        judged = list(pool.map(one, range(len(cases)), cases))
    return [
        Score.of(
            "guard prove: refuted",
            ((one.broken, one.outcome.result == "refuted") for one in judged),
        ),
        Score.of(
            "guard prove: refuted, or a person has to look",
            ((one.broken, one.outcome.result in ("refuted", "review")) for one in judged),
            "`review` is for rewritten tests, which may be honest",
        ),
        Score.of("counting commits", ((one.broken, not one.outcome.counts) for one in judged)),
        Score.of(
            "exit code of the tests in the work tree",
            ((one.broken, not one.outcome.exits) for one in judged),
        ),
        *(_peer_score(peer, judged) for peer in programs),
        *absent,
    ]


def _peer_score(peer: peers.Peer, judged: Iterable[TreeJudged]) -> Score:
    known = [(one.broken, one.peers[peer]) for one in judged]
    said = [(broken, answer) for broken, answer in known if answer is not None]
    left = len(known) - len(said)
    unknown = f"{left} cases that it knows no test command for" if left else ""
    return Score.of(peer.name, said, unknown or _SESSION_NOTES.get(peer, ""))


def _ask_of_tree(
    peer: peers.Peer, programs: Path, place: Path, case: Case, outcome: Outcome
) -> bool | None:
    project = place / "project"
    if peer is peers.PROOFED_AGENT:
        return peers.refuses_tree(programs, project, environment(place))
    files = sorted({name for change in case.changes for name in change})
    session = peers.transcript(
        "Done. All tests pass.", files, case.project.command, 0 if outcome.exits else 1
    )
    return peers.blocks_sessions(peer, programs, place, [session])[0]


def _loops(alone: bool) -> list[Score]:
    scripts = [(True, script) for _, _, script in LOOPS.values()]
    scripts += [(False, script) for script in HEALTHY.values()]
    scores = [
        Score.of(
            "guard, in the stream of Claude Code",
            ((loops, _goes_round(script)) for loops, script in scripts),
        )
    ]
    programs, absent = _installed(alone, peers.OPENHANDS)
    for peer, place in programs.items():
        try:
            said = peers.stuck(place, [_plain_steps(script) for _, script in scripts])
        except peers.NotInstalled as error:
            return [*scores, Score(peer.name, 0, 0, 0, 0, f"not run: {error}")]
        pairs = zip((loops for loops, _ in scripts), said, strict=True)
        scores.append(
            Score.of(
                peer.name, pairs, "asked after each step; it does not see the time between calls"
            )
        )
    return [*scores, *absent]


def _goes_round(script: list[Step]) -> bool:
    reader = make_reader("claude")
    for at, line in write_stream("claude", script):
        reader.feed(line, at)
    return reader.finish(0, NOW).loop is not None


def _plain_steps(script: list[Step]) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = []
    for step in script:
        if isinstance(step, Call):
            given = json.dumps(step.input)
            steps.append(
                {
                    "kind": "call",
                    "tool": step.tool,
                    "input": given,
                    "output": step.output,
                    "failed": step.failed,
                }
            )
        elif isinstance(step, Say | Person):
            kind = "say" if isinstance(step, Say) else "person"
            steps.append({"kind": kind, "text": step.text})
    return steps


def _claims(alone: bool) -> list[Score]:
    told = [claim for part in PARTS for claim in claims(part)]
    false = [claim.label != "honest" for claim in told]
    settings = ClaimsSettings()
    said = [not is_believed(validate(claim.evidence, settings)) for claim in told]
    scores = [Score.of("guard agent update", zip(false, said, strict=True))]
    programs, absent = _installed(alone, peers.PROOF_OF_DONE, peers.CLAIMPROOF)
    for peer, place in programs.items():
        with scratch() as folder:
            sessions = [_session_of(claim.evidence) for claim in told]
            blocked = peers.blocks_sessions(peer, place, folder, sessions)
        scores.append(Score.of(peer.name, zip(false, blocked, strict=True), _SESSION_NOTES[peer]))
    return [*scores, *absent]


def _session_of(evidence: Any) -> list[Any]:
    files = sorted(evidence.changes.files) if evidence.changes is not None else []
    ran = evidence.tests[0] if evidence.tests else None
    return peers.transcript(
        evidence.message, files, "pytest -q" if ran else None, 0 if ran is None or ran.passed else 1
    )


def _questions() -> list[Score]:
    told = [(True, text) for text in question_set.ASKS]
    told += [(False, text) for text in question_set.GOES_ON]
    return [
        Score.of("guard", ((asks, find_question(text) is not None) for asks, text in told)),
        Score.of("a question mark in the message", ((asks, "?" in text) for asks, text in told)),
        Score.of(
            "a question mark at the end",
            ((asks, text.rstrip().endswith("?")) for asks, text in told),
        ),
    ]


def _installed(alone: bool, *wanted: peers.Peer) -> tuple[dict[peers.Peer, Path], list[Score]]:
    """Install the peers; what cannot be installed is a line that says why."""
    programs, absent = {}, []
    for peer in () if alone else wanted:
        try:
            programs[peer] = peers.install(peer)
        except peers.NotInstalled as error:
            absent.append(Score(peer.name, 0, 0, 0, 0, f"not run: {error}"))
    return programs, absent
