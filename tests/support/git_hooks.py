"""What guard's hooks in git have told, and git whether it succeeds or not."""

import os
import shutil
import subprocess
from pathlib import Path

from guard.context.invocation import Invocation
from guard.core.hooks.git.state import COMMITS, Commits
from guard.hooks.ingest import ingest_hooks
from tests.support import TIME_LIMIT, git, write


def commits(root: Path | None = None) -> Commits:
    """What the hooks have told of the commits of a work tree, taken in."""
    guard = Invocation(repo=root)
    ingest_hooks(guard)
    view = guard.store.view(COMMITS, guard.worktree_key)
    assert view is not None
    return view


def tried(repository: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Git, whether it succeeds or not."""
    return subprocess.run(
        ["git", *words],
        cwd=repository,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT,
        check=False,
    )


def commit_without_trace(root: Path, name: str) -> str:
    """Commit one file as another committer, so that the reflogs show only that a branch was moved to the commit."""
    write(root / name, "text\n")
    git(root, "add", "--", name)
    git(root, "-c", "user.email=agent@example.com", "commit", "-q", "-m", f"Add {name}")
    made = git(root, "rev-parse", "HEAD").strip()
    git(root, "reset", "-q", "--hard", "HEAD~1")
    shutil.rmtree(root / ".git" / "logs")
    git(root, "reset", "-q", "--hard", made)
    return made
