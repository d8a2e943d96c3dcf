"""Read what of a project shows how its tests are run."""

import os
from contextlib import suppress
from pathlib import Path

from guard.context import config
from guard.context.invocation import Invocation
from guard.core.base.text import utf8_text
from guard.core.config.report import ProofProposal
from guard.core.prove.propose import (
    ENVIRONMENTS,
    PROJECT_FILES,
    ProjectFacts,
    install_command,
    propose_command,
)
from guard.errors import GuardError
from guard.git.locate import Repository
from guard.git.reader import RepositoryReader
from guard.system.foreign_files import read_regular

_MOST_BYTES = 1024 * 1024


def propose(guard: Invocation) -> ProofProposal | None:
    """Return a command for `prove.command`; None if one is named, or nothing shows one. Nothing is run or changed."""
    # A proposal is no reason to fail.
    with suppress(GuardError):
        repository = guard.repository_if_any
        if repository is None or guard.config.settings.prove.checks_at("end"):
            return None
        found = propose_command(_read_facts(guard, repository))
        if found is None:
            return None
        return ProofProposal(
            **dict(found),
            user_file=utf8_text(config.user_folder(guard.environ) / config.USER_FILE),
            project_file=utf8_text(repository.root / config.PROJECT_FILE),
        )
    return None


def propose_setup(guard: Invocation) -> str:
    """Return the command that installs what the project needs; empty if nothing names one."""
    with suppress(GuardError):
        return install_command(_read_facts(guard, guard.repository))
    return ""


def list_paths(guard: Invocation) -> frozenset[str]:
    """Return the files of the work tree that git does not ignore; none where git cannot tell."""
    with suppress(GuardError):
        return _list_paths(guard, guard.repository)
    return frozenset()


def _list_paths(guard: Invocation, repository: Repository) -> frozenset[str]:
    limit = guard.config.settings.completion_check.git_timeout_seconds
    git = RepositoryReader(repository, guard.environ, limit)
    listed = git.ask("ls-files", "-z", "--cached", "--others", "--exclude-standard")
    return frozenset(os.fsdecode(path) for path in listed.split(b"\0") if path)


def _read_facts(guard: Invocation, repository: Repository) -> ProjectFacts:
    paths = _list_paths(guard, repository)
    texts = {name: _read(repository.root / name) for name in PROJECT_FILES if name in paths}
    looked_for = ["node_modules", *(f"{name}/bin/python" for name in ENVIRONMENTS)]
    looked_for += [f"{name}/bin/pytest" for name in ENVIRONMENTS]
    present = frozenset(name for name in looked_for if (repository.root / name).exists())
    return ProjectFacts(paths, texts, present)


def _read(path: Path) -> str:
    try:
        return read_regular(path, _MOST_BYTES).decode(errors="replace")
    except (OSError, ValueError):
        return ""
