"""The evidence of one look at an iteration: git, processes, output, and the answers of probes.

A look is a document of its own (`guard/evidence/1`), so that a verdict can be replayed from the log, by `guard judge`, or from
a file that a user wrote by hand.
"""

from typing import Annotated, Literal

from pydantic import Field

from guard.core.base.fields import Count, Frozen, Instant, Line
from guard.core.classify import Classification
from guard.core.iteration.facts import Process, Seconds
from guard.core.probe.answer import ProbeResult
from guard.core.snapshots.snapshot import Rescue
from guard.core.tool_calls.agent_loop import LoopFound
from guard.core.work.count import Work
from guard.core.work.leftovers import Uncommitted

MOST_LIVING = 64

Cutoff = Literal["idle", "max_time", "budget", "looping"]
"""Why guard ends an agent: no sign of work for too long, its time or the budget was over, or it went round in circles."""


class Living(Frozen):
    """Something of this iteration that is alive, and how long ago it last showed progress."""

    kind: Literal["agent", "process", "member"]
    """The agent itself; a process that it left behind; a member of its team with a lease that has not run out."""
    name: Line
    idle_seconds: Seconds
    process: Process | None = None
    cpu_seconds: Seconds = 0
    moved: Count = 0
    """Its CPU time and the bytes it had written when it was last seen at work, for the next look to compare."""
    serves: bool = False
    """Whether it listens on a port, or only waits for a child that does: it is idle as soon as it is quiet."""


class TeamEvidence(Frozen):
    """The team of this iteration."""

    name: Line
    active: Count


class Policy(Frozen):
    """The settings and options that a judgement depends on."""

    max_probes: Annotated[int, Field(ge=1, le=1000)] = 5
    probe_interval_seconds: Seconds = 30
    final_rescue_attempt: bool = True
    progress_window_seconds: Seconds = 120
    max_wait_seconds: Seconds = 7200
    probe: bool = True
    wait: bool = True
    rescue: bool = True
    prove: bool = True
    prove_required: bool = False
    """Whether work that cannot be proven is an error."""


class Evidence(Frozen):
    """One look at an iteration."""

    schema_: Literal["guard/evidence/1"] = Field("guard/evidence/1", alias="schema")
    at: Instant
    round: Annotated[int, Field(ge=1)] = 1
    probed: bool = False
    """Whether this round's probe was made, or an earlier answer still stands; it is then the last of `probes`."""
    changed_since_probe: bool = False
    """Whether a ref has moved, something has ended, or the agent itself went on, since the last probe was asked."""
    waited_seconds: Seconds = 0
    """How long this check has waited for what is alive, in rounds that spent no probe."""
    work: Work
    uncommitted: Uncommitted
    output: Classification | None = None
    """What the agent's output and exit status mean; None if guard did not see them."""
    agent_ended: bool = False
    """Guard saw the agent's process end: whatever still comes, comes from what is alive."""
    ended_by_guard: Cutoff | None = None
    """Why guard ended the agent's process, if it did."""
    hooks_loop: LoopFound | None = None
    """What the agent repeated most by the word of its hooks; None if its output tells, or it did not."""
    can_ask: bool = False
    """Whether there is an agent to ask at all."""
    living: Annotated[tuple[Living, ...], Field(max_length=MOST_LIVING)] = ()
    team: TeamEvidence | None = None
    probes: tuple[ProbeResult, ...] = ()
    open_tasks: Count | None = None
    """Open boxes of the task file; None if there is no such file."""
    rescue: Rescue | None = None
    """What the rescue in this check did, if there was one."""

    @property
    def loop(self) -> LoopFound | None:
        """Return what the agent repeated most, if it went round in circles."""
        told = self.output.loop if self.output is not None else None
        return told or self.hooks_loop

    @property
    def own_commits(self) -> int:
        """Return how many new commits the agent made itself, without those of a rescue program."""
        made = set(self.rescue.commits) if self.rescue else set()
        return self.work.new_commits - sum(line.oid in made for line in self.work.commits)
