"""Propose a short configuration file and the next commands, from what a project and its machine have."""

import json
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Literal

from guard.core.base.fields import Frozen, Text
from guard.core.base.text import escape
from guard.core.prove.propose import CommandProposal

FindingKind = Literal["agent", "tests", "tasks", "ci"]
DEFAULT_TASK_FILE = "specs/{spec}/tasks.md"
AGENT_COMMANDS = {
    "claude": "claude -p --output-format stream-json --verbose --dangerously-skip-permissions",
    "codex": "codex exec --json --dangerously-bypass-approvals-and-sandbox -",
    "gemini": "gemini -o stream-json --approval-mode yolo -p '{prompt}'",
    "qwen": "qwen -o stream-json --approval-mode yolo -p '{prompt}'",
    "opencode": "opencode run --format json",
    "copilot": "copilot --output-format json --allow-all-tools -p '{prompt}'",
}
"""By agent CLI, how it runs unattended: events on stdout, and leave to use its tools without a question."""
_TASK_FILES = ("tasks.md", "TASKS.md", "TODO.md", "todo.md", "fix_plan.md", "PLAN.md", "plan.md")
_SPECS = ("specs", ".specify/specs", "openspec/changes", ".kiro/specs", "docs/specs")
_CI = (
    *(".github/workflows/*.yml", ".github/workflows/*.yaml", ".gitlab-ci.yml", "Jenkinsfile"),
    *(".circleci/config.yml", "azure-pipelines.yml", ".forgejo/workflows/*", ".gitea/workflows/*"),
)
_MOST_NAMED = 3


class ProjectFinding(Frozen):
    """One thing that guard found, and what follows from it."""

    kind: FindingKind
    found: Text
    means: Text


def find_agents(present: Sequence[str], known: Sequence[str]) -> Iterator[ProjectFinding]:
    """Yield what is said of the agent CLIs on PATH, of all those that guard knows."""
    for name in present:
        yield ProjectFinding(
            kind="agent",
            found=f"{name} is on PATH",
            means=f"`guard install {name}` puts guard's hooks into its sessions",
        )
    if not present:
        yield ProjectFinding(
            kind="agent",
            found=f"none of {', '.join(known)} is on PATH",
            means="guard runs any other command, too",
        )


def find_tasks(paths: Iterable[str]) -> Iterator[ProjectFinding]:
    """Yield the task files: one in the root, and those of specs."""
    known = set(paths)
    for name in _TASK_FILES:
        if name in known:
            means = f"`guard loop --until-tasks-done {name}` goes on until no box is open"
            yield ProjectFinding(kind="tasks", found=name, means=means)
            break
    pattern = spec_pattern(known)
    if pattern is not None:
        said = "`--spec NAME` finds its task file"
        yield ProjectFinding(kind="tasks", found=pattern, means=said)


def spec_pattern(paths: Iterable[str]) -> str | None:
    """Return where the task files of specs lie; None if there are none."""
    known = list(paths)
    for folder in _SPECS:
        if any(fnmatchcase(path, f"{folder}/*/tasks.md") for path in known):
            return f"{folder}/{{spec}}/tasks.md"
    return None


def find_ci(paths: Iterable[str]) -> Iterator[ProjectFinding]:
    found = sorted(path for path in paths if any(fnmatchcase(path, one) for one in _CI))
    if not found:
        return
    named = ", ".join(found[:_MOST_NAMED]) + (", ..." if len(found) > _MOST_NAMED else "")
    on_github = any(path.startswith(".github/") for path in found)
    means = (
        "guard is an action, too: docs/guide/github.md"
        if on_github
        else "`guard check` and `guard prove` judge there by their exit codes"
    )
    yield ProjectFinding(kind="ci", found=named, means=means)


def project_config(findings: Sequence[ProjectFinding], proof: CommandProposal | None) -> str:
    """Return a short `guard.toml`: only what differs from the defaults, and why; nothing of the user's machine."""
    lines = [
        "# guard: settings of this repository, proposed by `guard init` from what it found:",
        *(f"# - {one.kind}: {escape(one.found)}" for one in findings if one.kind != "agent"),
        "# `guard config` lists every setting; `guard init --all --dry-run` shows a file with all of them.",
    ]
    pattern = next((one.found for one in findings if "{spec}" in one.found), DEFAULT_TASK_FILE)
    if pattern != DEFAULT_TASK_FILE:
        lines += ["", "[completion_check]", f"task_file = {json.dumps(pattern)}"]
    if proof is not None:
        lines += [
            "",
            f"# Done is only what passes this; proposed because {'; '.join(proof.why)}.",
            "# An agent can edit this file, so guard ignores these lines until you commit them and run `guard trust`.",
            *proof.toml(),
        ]
    return "\n".join([*lines, ""])


def next_commands(
    findings: Sequence[ProjectFinding], agents: Sequence[str], proof: CommandProposal | None
) -> tuple[str, ...]:
    """Return what to type next, the most useful first."""
    commands = []
    if proof is not None:
        save = "git add guard.toml && git commit -m 'Add guard.toml' && guard trust"
        commands += [save, "guard prove"]
    tasks = next(
        (one.found for one in findings if one.kind == "tasks" and "{spec}" not in one.found), None
    )
    until = f"--until-tasks-done {tasks} " if tasks else "--max-iterations 10 "
    agent = AGENT_COMMANDS[agents[0]] if agents else "YOUR-AGENT"
    commands.append(f"guard loop {until}--prompt-file prompt.md -- {agent}")
    return tuple(commands)
