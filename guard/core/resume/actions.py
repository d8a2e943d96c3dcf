"""What an agent can do to recover: by the state that it is in, and by what went wrong last."""

from collections.abc import Iterator

from guard.core.agents.agent import Agent
from guard.core.events.agent import AgentStatus
from guard.core.resume.evidence import Failure, ResumeEvidence

BY_STATE: dict[AgentStatus, tuple[str, ...]] = {
    "deployed": (
        "You were registered and have not reported that you began. Read your task, then begin with its first step.",
        "Report that you are there: `{update} --status running`.",
    ),
    "running": (
        "You began and have not reported work since. Look at `git status` and `git log`, and decide on the next step.",
        "Report what you work on: `{update} --status working --message TEXT`.",
    ),
    "working": (
        "You were at work. Look at what you have changed so far, and go on from there; do not begin anew.",
        "Report what you have done since, and what shows it: `{update} --status working --message TEXT --progress N`.",
    ),
    "blocked": (
        "You reported that you cannot go on. Check whether that still holds: try again what failed.",
        "If it does not hold, go on and report it: `{update} --status working --message TEXT`.",
        "If it does, say what is missing and who can give it: `{update} --status blocked --message TEXT`.",
        "Then work on what does not depend on it.",
    ),
}
_ENDED = (
    "You count as ended, and your work may not be. Look at `git status` and `git log` for what is left to do.",
    "If there is work left, do it and report it; if not, say so in one line and stop.",
)
_BY_FAILURE: dict[str, str] = {
    "limited": "A usage limit or an outage stopped you. If it still does, say until when, and stop; do not try in a loop.",
    "error": "The last attempt ended in an error. Find its cause before you repeat what led to it.",
    "blocked": "The last attempt waited for a person. Do not guess the answer: ask for it in one question.",
    "interrupted": "Background work was killed with your session. Start again only what is still needed, and wait for it.",
    "timeout": "The last attempt ended without a commit. Commit small steps as soon as each of them works.",
    "waiting": "The last check found helpers at work. Collect what they have done before you go on.",
    "breaker": "The run is stopped because it went nowhere. Do something else than before, and say what.",
}
_UPDATE = "guard agent update --task {task} --agent {agent}"


def actions(evidence: ResumeEvidence) -> Iterator[str]:
    """What to do, in order."""
    yield from (_filled(line, evidence.agent) for line in by_state(evidence.agent.status))
    yield from dict.fromkeys(_on(evidence.failures))
    if evidence.lost and not any(one.kind == "interrupted" for one in evidence.failures):
        yield _BY_FAILURE["interrupted"]
    if evidence.left is not None and evidence.left.own:
        yield "Commit the files below that are finished; finish or undo the others."
    yield "When all is done: " + _filled(
        "`{update} --status completed --message TEXT`.", evidence.agent
    )


def by_state(status: AgentStatus) -> tuple[str, ...]:
    """The recovery actions of a state of the lifecycle."""
    return BY_STATE.get(status, _ENDED)


def _on(failures: tuple[Failure, ...]) -> Iterator[str]:
    for failure in failures:
        if failure.kind in _BY_FAILURE:
            yield _BY_FAILURE[failure.kind]


def _filled(line: str, agent: Agent) -> str:
    update = _UPDATE.format(task=agent.task_id, agent=agent.agent_id)
    return line.replace("{update}", update)
