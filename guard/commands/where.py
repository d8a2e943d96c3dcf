"""`guard where`."""

import click

from guard.context.invocation import Invocation
from guard.context.output import prints_report
from guard.context.workspace import Workspace
from guard.core.base.text import escape, utf8_text


@click.command("where")
@prints_report
def command(guard: Invocation, form: str) -> None:
    """Print where guard keeps the state of this repository."""
    # This prints warnings, such as that of a workspace in the project's file.
    guard.check_config()
    workspace = guard.workspace
    repository = workspace.repository
    if repository is not None and not repository.git_dir_exists:
        gone = "is not where .git leads to" if repository.git_dir.is_dir() else "is gone"
        guard.output.warn(f"{repository.git_dir} {gone}; the workspace was found by the index")
    if form == "json":
        _print_json(guard, workspace)
    else:
        guard.output.result(escape(utf8_text(workspace.path)))


# Scripts call this command often: the text needs no model of a report, and so no pydantic.
def _print_json(guard: Invocation, workspace: Workspace) -> None:
    from guard.core.log.reports import WhereReport

    repository = workspace.repository
    report = WhereReport(
        workspace=utf8_text(workspace.path),
        origin=workspace.origin,
        exists=workspace.path.is_dir(),
        worktree=utf8_text(repository.root) if repository else None,
        worktree_key=guard.worktree_key_if_any,
        git_dir=utf8_text(repository.git_dir) if repository else None,
        git_dir_exists=repository.git_dir_exists if repository else None,
        common_dir=utf8_text(repository.common_dir) if repository else None,
    )
    guard.output.document(report, "json", str)
