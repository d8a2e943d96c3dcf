"""Find the workspaces that the dashboard shows."""

from collections.abc import Iterator

from guard.context.invocation import Invocation
from guard.context.workspace import list_entries, path_of_uri
from guard.dashboard.workspace import ShownWorkspace
from guard.errors import GuardError, WrongUsage


def find_sites(guard: Invocation, *, every: bool) -> list[ShownWorkspace]:
    """Return this workspace, or each workspace in the index of work trees that is still there."""
    if not every:
        return [ShownWorkspace(guard)]
    sites: dict[str, ShownWorkspace] = {}
    for each in _invocations(guard):
        try:
            site = ShownWorkspace(each)
        except (GuardError, OSError) as error:
            guard.output.warn(f"left out {each.repo or each.workspace_option}: {error}")
            continue
        sites.setdefault(site.key, site)
    if not sites:
        raise WrongUsage(
            "the index has no workspace yet", "`guard baseline` in a repository makes one"
        )
    return sorted(sites.values(), key=lambda site: (site.name, site.key))


def _invocations(guard: Invocation) -> Iterator[Invocation]:
    seen = set()
    for entry in list_entries(guard.environ, guard.output.warn):
        place, root = path_of_uri(entry.workspace), path_of_uri(entry.worktree)
        if place in seen or not place.is_dir():
            continue
        seen.add(place)
        yield Invocation(
            repo=root if root.is_dir() else None,
            workspace_option=str(place),
            config_file=guard.config_file,
            clock=guard.clock,
            output=guard.output,
            environ=guard.environ,
        )
