"""The settings of `activity`, and file patterns in them: relative to a work tree, separated by `;`, with the ids open."""

from typing import Annotated

from pydantic import AfterValidator, Field

from guard.core.activity import lookback, outages
from guard.core.activity.assess import MIN_CONFIDENCE
from guard.core.activity.sources import LOOKBACK_MINUTES, WINDOWS
from guard.core.base.fields import Section

PLACEHOLDERS = ("{agent}", "{task}")
NAME_END = "\0"
"""In a filled pattern: the name before it ends here, so that `{agent}*` of a1 does not match files of a10."""


def split_list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(";") if part.strip())


def validate_patterns(text: str) -> str:
    """Return the text; ValueError if a pattern could lead out of the work tree, or has an unknown placeholder."""
    for pattern in split_list(text):
        parts = pattern.split("/")
        if (
            pattern.startswith("/")
            or ".." in parts
            or "" in parts
            or "." in parts
            or "\0" in pattern
        ):
            raise ValueError(f"{pattern!r} is not a path below the work tree")
        if "**" in pattern:
            raise ValueError(f"{pattern!r}: `**` is not supported; name each level with `*`")
        rest = pattern
        for place in PLACEHOLDERS:
            rest = rest.replace(place, "")
        if "{" in rest or "}" in rest:
            raise ValueError(f"{pattern!r}: only {' and '.join(PLACEHOLDERS)} can stand in braces")
    return text


def fill_patterns(text: str, agent: str, task: str) -> tuple[tuple[str, ...], ...]:
    for place, name in zip(PLACEHOLDERS, (agent, task), strict=True):
        for wild in "*?[":
            text = text.replace(f"{place}{wild}", f"{name}{NAME_END}{wild}")
        text = text.replace(place, name)
    return tuple(tuple(pattern.split("/")) for pattern in split_list(text))


FilePatterns = Annotated[str, Field(max_length=4096), AfterValidator(validate_patterns)]


class ActivitySettings(Section):
    """How guard tells whether an agent is at work. File patterns are relative to the work tree and separated by `;`; {agent} \
and {task} stand for the ids."""

    lookback_minutes: Annotated[float, Field(gt=0, le=43200)] = LOOKBACK_MINUTES
    """How far back signs of activity count; each tier has a share of it."""
    min_confidence: Annotated[float, Field(ge=0, le=1)] = MIN_CONFIDENCE
    """The least confidence at which an agent counts as at work."""
    min_confidence_threshold: Annotated[float, Field(ge=0, le=1)] | None = None
    """Another name of `min_confidence`, which it replaces if it is set."""
    tier1_window_seconds: Annotated[float, Field(gt=0, le=2_592_000)] = WINDOWS[0]
    """For how long a sign of tier 1 counts, with a look-back of 60 minutes; with another look-back accordingly."""
    tier2_window_seconds: Annotated[float, Field(gt=0, le=2_592_000)] = WINDOWS[1]
    """The same for signs of tier 2."""
    tier3_window_seconds: Annotated[float, Field(gt=0, le=2_592_000)] = WINDOWS[2]
    """The same for signs of tier 3."""
    adaptive: bool = True
    """Whether guard looks back further for an agent that is often quiet for long."""
    max_lookback_minutes: Annotated[float, Field(gt=0, le=43200)] = lookback.MAX_LOOKBACK_MINUTES
    """The longest look-back that an agent's rhythm or a lesson can ask for; longer pauses are no rhythm."""
    agent_terms: Annotated[
        str,
        Field(max_length=65536, json_schema_extra={"pattern": lookback.AGENT_TERMS_PATTERN}),
        AfterValidator(lookback.validate_agent_terms),
    ] = ""
    """Terms of single agents, as in `builder-1: lookback_minutes=180 min_confidence=0.6; docs: lookback_minutes=30`."""
    outage_agents: Annotated[int, Field(ge=2, le=100_000)] = outages.OUTAGE_AGENTS
    """How many agents have to fall silent at the same moment for an outage."""
    outage_share: Annotated[float, Field(gt=0, le=1)] = outages.OUTAGE_SHARE
    """Which share of the agents at work has to fall silent for an outage."""
    outage_within_minutes: Annotated[float, Field(gt=0, le=1440)] = outages.OUTAGE_WITHIN_MINUTES
    """How far apart the last signs of agents in one outage may be."""
    outage_hold_minutes: Annotated[float, Field(ge=0, le=43200)] = outages.OUTAGE_HOLD_MINUTES
    """How long agents in an outage do not count as stalled."""
    noise_patterns: Annotated[str, Field(max_length=4096)] = ""
    """More words that mark a message as noise, separated by `;`."""
    status_files: FilePatterns = "agent_workspaces/{agent}/status.json;.agents/{agent}/status.json"
    """The agent's own status file."""
    workspace_folders: FilePatterns = "agent_workspaces/{agent};.agents/{agent}"
    """Folders of the agent alone: a change there is its work."""
    devlog_files: FilePatterns = "devlogs/{agent}*.md;agent_workspaces/{agent}/devlogs/*"
    """Logs that the agent writes for people."""
    inbox_files: FilePatterns = (
        "agent_workspaces/{agent}/inbox/processed/*;agent_workspaces/{agent}/inbox/archive/*"
    )
    """Messages that the agent has taken from its inbox."""
    queue_files: FilePatterns = "message_queue/*.json;message_queue/*.jsonl"
    """Queues in which a message names its sender."""
    event_files: FilePatterns = "runtime/activity/*.jsonl;.agents/{agent}/events.jsonl"
    """Files with one event per line; an event names its agent."""
    contract_files: FilePatterns = "contracts/*.json;.agents/{agent}/contract.json"
    """Documents that say which agent claimed a task, and when."""
    most_events: Annotated[int, Field(ge=1, le=100_000)] = 200
    """How many of the newest lines of a file, and of the newest events of guard's log, count for one agent."""
    collector_seconds: Annotated[float, Field(gt=0, le=60)] = 2
    """How long one source may take."""
