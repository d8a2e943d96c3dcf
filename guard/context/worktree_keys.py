"""Find the key of a work tree, and have it go on with the state that an older guard kept under the path alone."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from guard.context.workspace import worktree_key, worktree_key_of_path
from guard.core.log.adoption import WorktreeAdopted
from guard.errors import GuardError
from guard.system.host import machine_id
from guard.system.process_identity import is_alive

if TYPE_CHECKING:
    from guard.context.invocation import Invocation
    from guard.core.log.view import ViewDocument, ViewKind
    from guard.store import Change


def find_key(guard: "Invocation", root: Path) -> str:
    """Return the key of the work tree on this machine."""
    own, before = worktree_key(root, guard.environ), worktree_key_of_path(root)
    if own == before or guard.store.has_state_of(own) or not guard.store.has_state_of(before):
        return own
    return _adopt(guard, own, before)


def _adopt(guard: "Invocation", own: str, before: str) -> str:
    if _is_under_way(guard, before):
        return before
    try:
        with guard.store.change() as change:
            if change.find_event(f"adopted-{before}") is None:
                _record(guard, change, own, before)
    except (GuardError, OSError):
        # The disk may be full or read-only, which the command says itself if it has to write.
        return before
    return own


def _is_under_way(guard: "Invocation", before: str) -> bool:
    # The guard that watches over it is an older one, which goes on to use the key that it knows.
    from guard.core.iteration.run import RUN

    run = guard.store.view(RUN, before)
    opened = run.open_iteration if run is not None else None
    watch = opened.supervisor if opened is not None else None
    return watch is not None and watch.host is None and is_alive(watch.pid, watch.start)


def _record(guard: "Invocation", change: "Change", own: str, before: str) -> None:
    from guard.core.log.table import view_kinds
    from guard.core.team.state import TEAM, team_key

    views: dict[str, str] = {}
    for kind in view_kinds():
        if kind.folder == "worktrees.d/":
            _carry(views, kind, kind.path(own), change.view(kind, before), own)
    for team in guard.store.views(TEAM).values():
        if team.worktree == before:
            path = TEAM.path(team_key(own, team.session))
            _carry(views, TEAM, path, change.view(TEAM, team.key()), own)
    change.append(
        WorktreeAdopted(
            at=guard.clock.now(),
            id=f"adopted-{before}",
            worktree=own,
            before=before,
            machine=machine_id(guard.environ) or "",
            views=views,
        )
    )


def _carry(
    views: dict[str, str],
    kind: "ViewKind[Any, Any]",
    path: str,
    document: "ViewDocument | None",
    own: str,
) -> None:
    if document is not None:
        moved = kind.document.model_validate(
            {**document.model_dump(by_alias=True), "worktree": own}, strict=False
        )
        views[path] = moved.model_dump_json(by_alias=True)
