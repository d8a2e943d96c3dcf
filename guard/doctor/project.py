"""Look at a project: agent CLIs on PATH, how its tests are run, its task files and its CI. Nothing is run or changed."""

from collections.abc import Iterator
from typing import NamedTuple

from guard.context.invocation import Invocation
from guard.core.base.text import utf8_text
from guard.core.config.proposal import ProjectFinding, find_agents, find_ci, find_tasks
from guard.core.config.report import ProofProposal
from guard.doctor.machine import AGENT_CLIS
from guard.prove.propose import list_paths, propose
from guard.system.programs import search_program


class ProjectSurvey(NamedTuple):
    """What was found, and the command that could prove work here."""

    agents: tuple[str, ...]
    findings: tuple[ProjectFinding, ...]
    proof: ProofProposal | None


def survey(guard: Invocation) -> ProjectSurvey:
    agents = tuple(name for name in AGENT_CLIS if search_program(name, guard.environ).program)
    proof = propose(guard)
    return ProjectSurvey(agents, tuple(_findings(guard, agents, proof)), proof)


def _findings(
    guard: Invocation, agents: tuple[str, ...], proof: ProofProposal | None
) -> Iterator[ProjectFinding]:
    yield from find_agents(agents, AGENT_CLIS)
    if proof is not None:
        means = "guard can prove work by them: `prove.command`"
        yield ProjectFinding(
            kind="tests", found=f"{proof.command} ({'; '.join(proof.why)})", means=means
        )
    paths = [utf8_text(path) for path in list_paths(guard)]
    yield from find_tasks(paths)
    yield from find_ci(paths)
