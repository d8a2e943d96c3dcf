"""A repository with guard's hooks, as `guard install git` leaves it."""

from pathlib import Path

import pytest

from guard.context.invocation import Invocation
from guard.install import git_options as git_asked


@pytest.fixture
def hooked(repository: Path) -> Path:
    """All hooks are installed, and nothing is committed yet."""
    git_asked.install_git_hooks(Invocation(), (), shared=False, dry_run=False, command=None)
    return repository
