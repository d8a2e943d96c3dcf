"""The tables about agents: their registries and claims, their helpers, signs of life, tasks, and how they are brought back."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from guard.core.activity.assess import MIN_CONFIDENCE
from guard.core.activity.file_patterns import checked_patterns
from guard.core.activity.lookback import (
    AGENT_TERMS_PATTERN,
    MAX_LOOKBACK_MINUTES,
    checked_agent_terms,
)
from guard.core.activity.outages import (
    OUTAGE_AGENTS,
    OUTAGE_HOLD_MINUTES,
    OUTAGE_SHARE,
    OUTAGE_WITHIN_MINUTES,
)
from guard.core.activity.sources import LOOKBACK_MINUTES
from guard.core.agents.registry import KEEP_FINISHED
from guard.core.base.section import USERS, Section
from guard.core.claims.policy import REQUIREMENTS_PATTERN, checked_requirements
from guard.core.resume.stall import MAX_PER_STALL, PAUSE_MINUTES

FilePatterns = Annotated[str, Field(max_length=4096), AfterValidator(checked_patterns)]


class Registry(Section):
    """The registries of agents."""

    keep_finished: Annotated[int, Field(ge=0, le=1_000_000)] = KEEP_FINISHED
    """How many finished agents the global registry lists (the newest); the task registries list all."""
    kill_grace_seconds: Annotated[float, Field(ge=0, le=3600, json_schema_extra=USERS)] = 30
    """How long an agent that is to be killed may take to end by itself before it is forced."""
    session_start_seconds: Annotated[float, Field(ge=0, le=86400, json_schema_extra=USERS)] = 30
    """How long after its registration an agent's tmux session may still have to appear; later it counts as ended."""


class Claims(Section):
    """How claims of completion are validated."""

    min_message_length: Annotated[int, Field(ge=0, le=65536, json_schema_extra=USERS)] = 40
    """How many characters a message of completion should have at least."""
    min_updates: Annotated[int, Field(ge=0, le=1000, json_schema_extra=USERS)] = 3
    """How many reports are expected before the one that claims completion."""
    min_seconds: Annotated[float, Field(ge=0, le=604800, json_schema_extra=USERS)] = 60
    """How long an agent is expected to take at least; 0 lets any time pass."""
    requirements: Annotated[
        str,
        Field(max_length=4096, pattern=REQUIREMENTS_PATTERN, json_schema_extra=USERS),
        AfterValidator(checked_requirements),
    ] = ""
    """What types of agents must have to show, beside those built in: `reviewer: findings=1; migrator: files=2 tests=1`."""
    evidence_words: Annotated[str, Field(max_length=4096, json_schema_extra=USERS)] = ""
    """More words that count as evidence in a message, with commas."""
    suspicious_phrases: Annotated[str, Field(max_length=4096, json_schema_extra=USERS)] = ""
    """More phrases that make a message suspicious, with commas."""
    strict: Annotated[bool, Field(json_schema_extra=USERS)] = False
    """Whether blocking issues refuse a completion."""


class Team(Section):
    """An agent's own helpers, and how long a completion is held back for them."""

    lease_seconds: Annotated[float, Field(gt=0, le=604800, json_schema_extra=USERS)] = 1800
    """How long a helper counts after its last sign of life, unless its spawn named another time."""
    max_hold_seconds: Annotated[float, Field(ge=0, le=604800, json_schema_extra=USERS)] = 7200
    """How long a completion is held back for a team, before the gate lets it go and says why."""


class Activity(Section):
    """By what guard tells whether an agent is at work. Patterns of files are relative to the work tree and separated by `;`; \
in them {agent} and {task} stand for the ids."""

    lookback_minutes: Annotated[float, Field(gt=0, le=43200)] = LOOKBACK_MINUTES
    """How far back signs of activity count; each tier has its share of it."""
    min_confidence: Annotated[float, Field(ge=0, le=1)] = MIN_CONFIDENCE
    """From which confidence on an agent is taken to be at work."""
    adaptive: bool = True
    """Whether one looks back further for an agent that is often quiet for long."""
    max_lookback_minutes: Annotated[float, Field(gt=0, le=43200)] = MAX_LOOKBACK_MINUTES
    """How far at most, by an agent's rhythm or by what was learned of it; longer pauses are no rhythm."""
    agent_terms: Annotated[
        str,
        Field(max_length=65536, json_schema_extra={"pattern": AGENT_TERMS_PATTERN}),
        AfterValidator(checked_agent_terms),
    ] = ""
    """Terms of single agents, as in `builder-1: lookback_minutes=180 min_confidence=0.6; docs: lookback_minutes=30`."""
    outage_agents: Annotated[int, Field(ge=2, le=100_000)] = OUTAGE_AGENTS
    """How many agents have to fall silent at the same moment for an outage,"""
    outage_share: Annotated[float, Field(gt=0, le=1)] = OUTAGE_SHARE
    """and which share of those that were at work."""
    outage_within_minutes: Annotated[float, Field(gt=0, le=1440)] = OUTAGE_WITHIN_MINUTES
    """How far apart their last signs may be."""
    outage_hold_minutes: Annotated[float, Field(ge=0, le=43200)] = OUTAGE_HOLD_MINUTES
    """How long an outage keeps its agents from being taken for stalled."""
    noise_patterns: Annotated[str, Field(max_length=4096)] = ""
    """More words that show a message to be noise, separated by `;`."""
    status_files: FilePatterns = "agent_workspaces/{agent}/status.json;.agents/{agent}/status.json"
    """The agent's own status file."""
    workspace_folders: FilePatterns = "agent_workspaces/{agent};.agents/{agent}"
    """Folders that are the agent's alone: what changes there is its work."""
    devlog_files: FilePatterns = "devlogs/{agent}*.md;agent_workspaces/{agent}/devlogs/*"
    """Logs that the agent writes for people."""
    inbox_files: FilePatterns = (
        "agent_workspaces/{agent}/inbox/processed/*;agent_workspaces/{agent}/inbox/archive/*"
    )
    """Messages that the agent has taken from its inbox."""
    queue_files: FilePatterns = "message_queue/*.json;message_queue/*.jsonl"
    """Queues in which a message names its sender."""
    event_files: FilePatterns = "runtime/activity/*.jsonl;.agents/{agent}/events.jsonl"
    """Files with one event in each line, which name the agent."""
    contract_files: FilePatterns = "contracts/*.json;.agents/{agent}/contract.json"
    """Documents that name who claimed a task, and when."""
    most_events: Annotated[int, Field(ge=1, le=100_000)] = 200
    """How many of the newest lines of a file, and commits, are looked at."""
    collector_seconds: Annotated[float, Field(gt=0, le=60)] = 2
    """How long one source may take to look through."""


class Coordinator(Section):
    """How `guard plan` sends agents to the tasks of a plan."""

    active_developers: Annotated[int, Field(ge=1, le=1000, json_schema_extra=USERS)] = 3
    """How many developers and auditors are at work at once."""
    remediation_attempts: Annotated[int, Field(ge=1, le=1000, json_schema_extra=USERS)] = 3
    """How many attempts to remedy the infrastructure may fail before a person is asked."""
    agent_timeout_minutes: Annotated[float, Field(gt=0, le=43200, json_schema_extra=USERS)] = 15
    """How long an agent may take for its task; one that is at work then gets half as much again, twice at most."""
    redispatch_limit: Annotated[int, Field(ge=0, le=1000, json_schema_extra=USERS)] = 3
    """How often a task whose agent was lost is given to another before a person is asked."""
    max_concurrent_per_agent: Annotated[int, Field(ge=1, le=1000, json_schema_extra=USERS)] = 2
    """How many requests one supporting agent works on at once; more of them are queued."""
    usage_command: Annotated[str, Field(max_length=4096, json_schema_extra=USERS)] = ""
    """The program that tells how much of its limits the session has used, as one JSON document on its stdout."""
    plan_file: Annotated[str, Field(max_length=1024)] = "PLAN.md"
    """The plan that `guard plan load` reads, if none is named; relative to the work tree."""


class Resume(Section):
    """How an agent that has fallen silent is brought back."""

    validate_activity: bool = True
    """Whether an agent is looked at first, and gets no prompt while it is at work."""
    auto_claim_tasks: bool = True
    """Whether the next task of the plan is claimed for the agent, and not only shown to it."""
    max_per_stall: Annotated[int, Field(ge=0, le=10, json_schema_extra=USERS)] = MAX_PER_STALL
    """How many prompts are sent in one silence, before a person is needed."""
    pause_minutes: Annotated[float, Field(ge=0, le=43200, json_schema_extra=USERS)] = PAUSE_MINUTES
    """How long to wait between two prompts of one silence."""
    priorities: Annotated[str, Field(max_length=4096)] = ""
    """What matters most in this project, separated by `;`: every prompt says it."""
    by: Annotated[
        Literal["auto", "tmux", "session", "inbox", "command"], Field(json_schema_extra=USERS)
    ] = "auto"
    """How a prompt is sent: tmux, inbox or command, whichever is there first, or by one way only."""
    inbox_folders: FilePatterns = "agent_workspaces/{agent}/inbox;.agents/{agent}/inbox"
    """Folders in the work tree where the agent finds messages: the first that exists gets the prompt as a file."""
    command: Annotated[str, Field(max_length=4096, json_schema_extra=USERS)] = ""
    """A program that brings the prompt to the agent: it gets it on its stdin, and finds the ids in its environment."""
    command_seconds: Annotated[float, Field(gt=0, le=3600, json_schema_extra=USERS)] = 60
    """How long that program may take."""
    watch_seconds: Annotated[float, Field(ge=0.1, le=86400, json_schema_extra=USERS)] = 60
    """How often the monitor looks at all agents when nothing happens."""
