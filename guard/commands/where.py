"""`guard where`."""

import click

from guard.core.reports.state import WhereReport
from guard.core.text import valid, visible
from guard.invocation import Invocation
from guard.output import format_option


@click.command("where")
@format_option
@click.pass_obj
def command(guard: Invocation, form: str) -> None:
    """Print where guard keeps the state of this repository."""
    guard.config  # noqa: B018  Says what it passes over, as a workspace in the project's file.
    workspace = guard.workspace
    repository = workspace.repository
    report = WhereReport(
        workspace=valid(workspace.path),
        origin=workspace.origin,
        exists=workspace.path.is_dir(),
        worktree=valid(repository.root) if repository else None,
        worktree_key=workspace.worktree_key,
        git_dir=valid(repository.git_dir) if repository else None,
        git_dir_exists=repository.git_dir_exists if repository else None,
        common_dir=valid(repository.common_dir) if repository else None,
    )
    if repository is not None and not repository.git_dir_exists:
        guard.output.warn(f"{repository.git_dir} is gone; the workspace was found by the index")
    guard.output.document(report, form, lambda found: visible(found.workspace))
