"""Decide a completion check: evidence in, a verdict or the next step out.

`RULES` is the order in which a check decides, to be read from top to bottom: the first rule that does not return None decides,
and the trail names the rules that were asked. Nothing here looks at the world: `guard check` gathers the evidence, does the
step, and asks again.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from math import inf
from typing import Literal

from guard.core.base.first_use import dataclass
from guard.core.base.text import fit_line, plural
from guard.core.check.evidence import Evidence, Living, Policy
from guard.core.check.holders import (
    SERVER_WINDOW_SECONDS,
    hung_members,
    is_holding,
    living_agent,
    may_commit,
    may_go_on,
)
from guard.core.classify import Classification, status_of
from guard.core.iteration.facts import Status
from guard.core.probe.answer import ProbeResult
from guard.core.prove.summary import ProofSummary
from guard.core.snapshots.snapshot import Rescue

Action = Literal["probe", "wait", "rescue"]

_SETTLED_BY_RESCUE = ("uncommitted", "no_commits", "no_answer", "crashed", "rescue_refused")


@dataclass(frozen=True)
class Verdict:
    """What became of the iteration, and why."""

    status: Status
    reason: str
    detail: str
    retry_at: datetime | None = None


@dataclass(frozen=True)
class Step:
    """What to do before looking again."""

    action: Action
    detail: str
    seconds: float = 0
    """For a wait: at most this long; a commit that lands or a process that ends is the end of it."""
    next_round: bool = False
    holds: bool = False
    """Whether it waits for something that lives: all such waits together have one limit."""


Decision = Verdict | Step
_PASSING = ("timeout", "overloaded", "crashed")
"""Failures of a probe that may be over when it is asked again."""


@dataclass(frozen=True)
class Ruling:
    """A decision and the rules that were asked on the way to it; the last one decided."""

    decision: Decision
    trail: tuple[str, ...]


def judge(evidence: Evidence, policy: Policy) -> Ruling:
    """Return the verdict on this evidence, or the step that finds out more."""
    trail = []
    for name, rule in RULES:
        trail.append(name)
        decision = rule(evidence, policy)
        if decision is not None:
            return Ruling(decision, tuple(trail))
    raise AssertionError("the last rule always decides")


def _helpers_killed(seen: Evidence, policy: Policy) -> Decision | None:
    if seen.output is None or not seen.output.killed or _has_hung(seen):
        return None
    outlived = next((living for living in seen.living if is_holding(living, policy)), None)
    if outlived is not None and policy.wait and seen.waited_seconds < policy.max_wait_seconds:
        return _hold(seen, policy, f"the session was cut off, and {outlived.name} outlived it")
    lost = seen.output.killed
    return Verdict(
        "interrupted",
        "helpers_killed",
        f"{plural(len(lost), 'background job')} killed with the session: {', '.join(lost[:3])}",
        seen.output.retry_at,
    )


def _new_commits(seen: Evidence, policy: Policy) -> Decision | None:
    if not _has_commits(seen):
        return None
    if seen.team is not None and seen.team.active and not hung_members(seen, policy):
        held = f"team {seen.team.name} has {plural(seen.team.active, 'active member')}"
        return _hold(seen, policy, f"commits are there, but {held}")
    retry_at = seen.output.retry_at if seen.output else None
    return Verdict("complete", "commits", plural(seen.own_commits, "new commit"), retry_at=retry_at)


def _output_says(seen: Evidence, _policy: Policy) -> Decision | None:
    if seen.output is None:
        return None
    status = status_of(seen.output.outcome)
    if status is None and seen.ended_by_guard == "max_time":
        return Verdict("working", "max_time", "guard ended the agent, because its time was over")
    if status is None and seen.ended_by_guard == "budget":
        return Verdict("working", "budget", "guard ended the agent, because the budget was used up")
    if status is None or (status == "interrupted" and _has_hung(seen)):
        return None
    reason = seen.output.reason if status == seen.output.outcome else seen.output.outcome
    return Verdict(status, reason, _own_words(seen.output), seen.output.retry_at)


def _something_alive(seen: Evidence, policy: Policy) -> Decision | None:
    at_work = [living for living in seen.living if is_holding(living, policy)]
    if not at_work:
        return None
    names = ", ".join(living.name for living in at_work[:3])
    if all(living.serves for living in at_work):
        return _hold(seen, policy, f"{names} listens on a port", SERVER_WINDOW_SECONDS)
    return _hold(seen, policy, f"{names} at work")


def _hung_members(seen: Evidence, policy: Policy) -> Decision | None:
    members = hung_members(seen, policy)
    if not members:
        return None
    return Verdict(
        "timeout", "hung", f"{members[0].name} is alive without progress for {_span(members[0])}"
    )


def _went_in_circles(seen: Evidence, _policy: Policy) -> Decision | None:
    if seen.ended_by_guard != "looping":
        return None
    found = seen.loop
    what = found.sentence if found is not None else "the agent repeated itself"
    return Verdict("timeout", "looping", f"guard ended the agent: {what}")


def _probe_failed_for_good(seen: Evidence, _policy: Policy) -> Decision | None:
    failed = _probe_of_round(seen)
    if failed is None or failed.failure is None:
        return None
    if failed.failure == "limited":
        return Verdict("limited", "probe_limited", failed.detail, failed.retry_at)
    return Verdict("error", failed.failure, failed.detail) if failed.lasting else None


def _waits_for_helper(seen: Evidence, policy: Policy) -> Decision | None:
    # A claim to wait counts for nothing alone, and neither does an idle process; but the one bears out the other.
    probe = _probe_of_round(seen)
    answer = probe.answer if probe else None
    if answer is None or not (answer.agents_active or answer.reading() == "waiting"):
        return None
    quiet = [living for living in seen.living if may_go_on(living, policy)]
    if not quiet:
        return None
    newest = min(quiet, key=lambda living: living.idle_seconds)
    why = f"the session waits for helpers, and {newest.name} is alive, idle for {_span(newest)}"
    if seen.round >= policy.max_probes:
        return _goes_on(seen, policy, why)
    held = _hold(seen, policy, why, policy.max_wait_seconds - newest.idle_seconds)
    return replace(held, next_round=True) if isinstance(held, Step) else held


def _needs_person(seen: Evidence, _policy: Policy) -> Decision | None:
    probe = _probe_of_round(seen)
    answer = probe.answer if probe else None
    if answer is None or not answer.needs_person or answer.reading() == "complete":
        return None
    asked = answer.question or answer.message or "the session does not say what it needs"
    return Verdict("blocked", "question", fit_line(" ".join(asked.split())))


def _says_complete(seen: Evidence, policy: Policy) -> Decision | None:
    if _reading(seen) != "complete":
        return None
    if seen.rescue is not None and seen.rescue.commits and seen.rescue.branch is None:
        return Verdict(
            "complete", "rescued", f"{plural(len(seen.rescue.commits), 'commit')} by the rescue"
        )
    if seen.uncommitted.has_any:
        if seen.rescue is not None or not seen.uncommitted.names or not may_commit(seen, policy):
            return None
        return Step("rescue", "the agent says it is done and left work uncommitted")
    if _has_doubt(seen):
        return None
    if seen.work.rescued:
        return Verdict("complete", "rescued", "an earlier check rescued what was left")
    done = f"the agent says it is done, and nothing was left{_false_claim(seen)}"
    return Verdict("complete", "nothing_to_do", done)


def _ask(seen: Evidence, policy: Policy) -> Decision | None:
    if not policy.probe or not seen.can_ask or seen.probed:
        return None
    return Step("probe", f"ask the session, probe {len(seen.probes) + 1} of {policy.max_probes}")


def _next_round(seen: Evidence, policy: Policy) -> Decision | None:
    if not policy.wait or seen.round >= policy.max_probes or not _may_change(seen, policy):
        return None
    return Step(
        "wait",
        f"round {seen.round} of {policy.max_probes}: {_last_word(seen)}",
        policy.probe_interval_seconds,
        next_round=True,
    )


def _may_change(seen: Evidence, policy: Policy) -> bool:
    """Tell whether another look or another probe can find anything else than this one did."""
    if living_agent(seen, policy) is not None:
        return True
    if not (policy.probe and seen.can_ask):
        # Only an agent of which guard has seen nothing at all may still do something unseen.
        return not seen.agent_ended and not seen.living
    probe = _probe_of_round(seen)
    if probe is None:
        return True
    if probe.failure in _PASSING:
        # Where the agent hung too, a second probe without an answer shows that it is not the moment.
        return not _has_hung(seen) or sum(one.failure == "timeout" for one in seen.probes) < 2
    if probe.failure is not None:
        return sum(one.failure not in (None, *_PASSING) for one in seen.probes) == 1
    if _reading(seen) == "complete" and seen.uncommitted.has_any and not policy.rescue:
        return False  # Only a rescue could follow from it.
    return seen.changed_since_probe or any(may_go_on(living, policy) for living in seen.living)


def _give_up(seen: Evidence, policy: Policy) -> Decision:
    agent = living_agent(seen, policy)
    if agent is not None:
        return Verdict("working", "agent_alive", f"{agent.name} is alive, idle for {_span(agent)}")
    outage = _outage(seen)
    if outage is not None:
        return Verdict("limited", "outage", outage.detail, outage.retry_at)
    last = seen.probes[-1] if seen.probes else None
    if _has_hung(seen):
        return Verdict(
            "timeout", "hung", "guard ended the agent, because it showed no sign of work any more"
        )
    if seen.rescue is not None:
        return _after_rescue(seen.rescue, seen.rescue.detail)
    if seen.output is not None and seen.output.outcome == "crash":
        left = "; work was left uncommitted" if seen.uncommitted.has_any else ""
        return Verdict("timeout", "crashed", f"{_how_it_ended(seen.output)}{left}")
    if seen.uncommitted.stashed and not seen.uncommitted.names:
        where = f"`git stash apply {seen.uncommitted.stashed[-1]}` brings it back"
        return Verdict("timeout", "uncommitted", f"no commits, and work was stashed: {where}")
    if seen.uncommitted.has_any:
        left = f"no commits, and work was left uncommitted{_false_claim(seen)}"
        return Verdict("timeout", "uncommitted", left)
    if last is not None and last.failure is not None:
        return Verdict("timeout", "no_answer", last.detail)
    return Verdict("timeout", "no_commits", _last_word(seen))


def settle(verdict: Verdict, seen: Evidence) -> Verdict:
    """Return the verdict with the reason that the final rescue gives it: what was left is saved by now, or it is not."""
    rescue, is_stall = seen.rescue, (verdict.status == "timeout")
    if rescue is None or not is_stall or verdict.reason not in _SETTLED_BY_RESCUE:
        return verdict
    if seen.uncommitted.stashed or not (rescue.commits or rescue.held_back or rescue.has_failed):
        return verdict
    crash = f"{verdict.detail.partition(';')[0]}; " if verdict.reason == "crashed" else ""
    return _after_rescue(rescue, f"{crash}{rescue.detail}")


def hold_against_proof(verdict: Verdict, proof: ProofSummary | None, policy: Policy) -> Verdict:
    """Return the verdict on complete work after its proof; None where none was made."""
    if proof is None or verdict.status != "complete":
        return verdict
    if proof.result == "refuted":
        return Verdict("refuted", proof.reason, proof.detail, verdict.retry_at)
    if proof.result == "unverifiable" and (policy.prove_required or proof.reason == "hangs"):
        return Verdict("error", "unverifiable", proof.detail, verdict.retry_at)
    return verdict


def _after_rescue(rescue: Rescue, detail: str) -> Verdict:
    return Verdict("timeout", "rescued" if rescue.saved_all else "rescue_refused", detail)


RULES: tuple[tuple[str, Callable[[Evidence, Policy], Decision | None]], ...] = (
    ("helpers killed with the session", _helpers_killed),
    ("new commits", _new_commits),
    ("the agent's output", _output_says),
    ("something is at work", _something_alive),
    ("a member hangs", _hung_members),
    ("the agent went round in circles", _went_in_circles),
    ("the probe failed for good", _probe_failed_for_good),
    ("the session waits for a helper", _waits_for_helper),
    ("the session needs the user", _needs_person),
    ("the session says complete", _says_complete),
    ("ask the session", _ask),
    ("another round", _next_round),
    ("give up", _give_up),
)


def _has_commits(seen: Evidence) -> bool:
    return seen.own_commits > 0 and seen.work.net_change


def _hold(seen: Evidence, policy: Policy, why: str, most: float = inf) -> Step | Verdict:
    left = policy.max_wait_seconds - seen.waited_seconds
    if policy.wait and left > 0:
        return Step("wait", why, min(left, most), holds=True)
    return _goes_on(seen, policy, why)


def _goes_on(seen: Evidence, policy: Policy, why: str) -> Verdict:
    if living_agent(seen, policy) is not None:
        return Verdict("working", "agent_alive", why)
    return Verdict("waiting", "team" if seen.team and seen.team.active else "alive", why)


def _probe_of_round(seen: Evidence) -> ProbeResult | None:
    return seen.probes[-1] if seen.probed and seen.probes else None


def _has_hung(seen: Evidence) -> bool:
    # Guard ended an agent that did nothing new any more: what died with it had hung too, and is no interruption.
    return seen.ended_by_guard in ("idle", "looping")


def _reading(seen: Evidence) -> str | None:
    probe = _probe_of_round(seen)
    return probe.answer.reading() if probe and probe.answer else None


def _outage(seen: Evidence) -> ProbeResult | None:
    """Return the newest probe that met an overloaded service, if none was answered since."""
    for probe in reversed(seen.probes):
        if probe.answer is not None:
            return None
        if probe.failure == "overloaded":
            return probe
    return None


def _has_doubt(seen: Evidence) -> bool:
    """Tell whether something speaks against a claim that there was nothing to do."""
    probe = _probe_of_round(seen)
    pending = bool(probe and probe.answer and probe.answer.tasks_pending)
    clean = seen.output is None or seen.output.outcome == "ok"
    elsewhere = seen.rescue is not None and seen.rescue.branch is not None
    return pending or not clean or bool(seen.open_tasks) or seen.work.lost > 0 or elsewhere


def _own_words(output: Classification) -> str:
    """Return what the output says in its own words: the question, the denied tools, the error."""
    tools = ", ".join(output.denied_tools[:5]) if output.outcome == "denied" else ""
    words = [text for text in (tools, output.words or "") if text]
    return ": ".join(words) or output.reason


def _how_it_ended(output: Classification) -> str:
    code, words = output.exit_code, f": {output.words}" if output.words else ""
    if output.reason.startswith("sig"):
        return f"the agent was ended by {output.reason.replace('_', ' ').upper()}{words}"
    if code:
        return f"the agent ended with exit code {code}{words}"
    return f"the agent failed ({output.reason}){words}"


def _last_word(seen: Evidence) -> str:
    found = "the new commits cancel each other out" if seen.work.new_commits else "no new commits"
    if not seen.probes:
        return found
    last = seen.probes[-1]
    if last.answer is None:
        return f"the probe failed: {last.detail}"
    return f"{found}, and the session says {last.answer.reading()}{_false_claim(seen)}"


def _false_claim(seen: Evidence) -> str:
    """Return what the session claims of its commits, if git knows of fewer; a resumed session may count older ones."""
    answers = [probe.answer for probe in seen.probes if probe.answer is not None]
    if not answers or answers[-1].commits_made <= seen.own_commits:
        return ""
    return (
        f"; it claims {plural(answers[-1].commits_made, 'commit')}, and git has {seen.own_commits}"
    )


def _span(living: Living) -> str:
    return f"{living.idle_seconds / 60:.0f} min"
