"""Group changes into atomic commits by rules alone: the same changes in any order give the same commits."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import compress
from typing import NamedTuple

from guard.core.base.paths import path_line
from guard.core.rescue.change import Changed, ChangedFile, common_parts, member, parse_change
from guard.core.rescue.change_text import is_fix, is_layout
from guard.core.rescue.commit_message import (
    KINDS,
    CommitKind,
    list_lines,
    wip_subject,
    write_subject,
)
from guard.core.rescue.links import link_changes
from guard.core.snapshots.paths import folders_above

__all__ = ["MOST_GROUPS", "Changed", "Group", "group_changes", "mark_wip", "untangle"]

MOST_GROUPS = 12
_MOST_COMPARED = 200


class Group(NamedTuple):
    """One commit to be: what it says and what it has."""

    subject: str
    body: str
    changes: tuple[Changed, ...]


class _Unit(NamedTuple):
    """Changes that go into one commit, if not into one with others of their kind."""

    kind: CommitKind
    pieces: tuple[ChangedFile, ...]

    @property
    def parts(self) -> tuple[str, ...]:
        code = [piece.place.parts for piece in self.pieces if piece.place.role == "source"]
        return common_parts(code or [piece.place.parts for piece in self.pieces])

    @property
    def sort(self) -> str:
        """What happens to its code, or for whom it is: units of different sorts are not of one thought."""
        if self.kind in ("build", "docs"):
            return member(self.parts) or ""
        if self.kind == "tests":
            return "" if any(piece.place.role == "test" for piece in self.pieces) else "data"
        if self.kind != "code":
            return ""
        code = [piece for piece in self.pieces if piece.place.role in ("source", "migration")]
        letters = {piece.change.letter for piece in code}
        if not code or "A" in letters:
            return "new" if code else "other"
        return "deleted" if letters == {"D"} else "fixed" if is_fix(self.pieces) else "changed"

    @property
    def stands_alone(self) -> bool:
        """A new module with its tests is a commit of its own."""
        roles = {piece.place.role for piece in self.pieces}
        return self.sort == "new" and self.kind == "code" and "test" in roles


Key = Callable[[_Unit], Hashable]
_COARSER: tuple[Key, ...] = (
    lambda unit: (unit.kind, unit.sort, unit.parts),
    lambda unit: (unit.kind, unit.sort, unit.parts[:2]),
    lambda unit: (unit.kind, unit.sort, unit.parts[:1]),
    lambda unit: (unit.kind, unit.sort in ("", "new", "changed", "fixed"), unit.parts[:1]),
    lambda unit: unit.kind,
)


def group_changes(changes: Sequence[Changed]) -> list[Group]:
    """Put every change in exactly one commit, in the order in which they are to be made."""
    pieces = [parse_change(change) for change in sorted(changes, key=_order)]
    layout = [piece.place.role == "source" and is_layout(piece.change) for piece in pieces]
    others = [piece for piece, is_style in zip(pieces, layout, strict=True) if not is_style]
    units = [_Unit(_kind(together), tuple(together)) for together in link_changes(others)]
    units += [_Unit("style", tuple(compress(pieces, layout)))] if any(layout) else []
    units = _limit(_merge(units, _natural_key))
    return [_group(unit) for unit in sorted(units, key=_turn)]


def untangle(groups: Sequence[Group]) -> list[Group]:
    """Join commits so that a file that became a folder, or a folder that became a file, is in one of them as a whole."""
    places: dict[bytes, int] = {}
    joined = list(range(len(groups)))

    def top(at: int) -> int:
        return at if joined[at] == at else top(joined[at])

    for at, group in enumerate(groups):
        places |= {
            path: at for change in group.changes for path in (change.path, change.old_path) if path
        }
    for path, at in places.items():
        for folder in folders_above(path):
            if folder in places:
                low, high = sorted((top(at), top(places[folder])))
                joined[high] = low
    together: defaultdict[int, list[Group]] = defaultdict(list)
    for at, group in enumerate(groups):
        together[top(at)].append(group)
    return [_join_groups(many) for many in together.values()]


def _join_groups(many: Sequence[Group]) -> Group:
    if len(many) == 1:
        return many[0]
    changes = tuple(change for group in many for change in group.changes)
    return Group(many[0].subject, list_lines([change.line for change in changes]), changes)


def mark_wip(group: Group, faults: Mapping[bytes, str]) -> Group:
    """Call a commit unfinished work if it has files that do not parse, and name them in its message."""
    found = [change.path for change in group.changes if change.path in faults]
    if not found:
        return group
    named = list_lines([f"- {path_line(path)}: {faults[path]}" for path in found])
    body = "\n\n".join(filter(None, (group.body, f"Does not parse:\n{named}")))
    return Group(wip_subject(group.subject), body, group.changes)


def _order(change: Changed) -> tuple[bytes, ...]:
    letter = change.letter.encode(errors="backslashreplace")
    return change.path, letter, change.old_path or b"", change.added, change.removed


def _turn(unit: _Unit) -> tuple[int, bytes]:
    return KINDS.index(unit.kind), min(piece.change.path for piece in unit.pieces)


def _group(unit: _Unit) -> Group:
    pieces = sorted(unit.pieces, key=lambda piece: _order(piece.change))
    body = list_lines([piece.change.line for piece in pieces])
    return Group(write_subject(unit.kind, pieces), body, tuple(piece.change for piece in pieces))


def _kind(together: Sequence[ChangedFile]) -> CommitKind:
    roles = {piece.place.role for piece in together}
    if roles & {"source", "generated", "migration", "asset"}:
        letters = {piece.change.letter for piece in together if piece.place.role == "source"}
        return "renames" if "R" in letters and "A" not in letters else "code"
    if roles & {"manifest", "lock"}:
        return "build"
    if roles & {"test", "fixture"}:
        return "tests"
    return "docs" if "docs" in roles else "ci" if "ci" in roles else "config"


def _natural_key(unit: _Unit) -> Hashable:
    """What units must have in common to be told in one subject."""
    if unit.stands_alone:
        return unit.pieces[0].change
    by_folder = unit.kind in ("code", "tests", "renames") and unit.sort != "data"
    return unit.kind, unit.sort, unit.parts if by_folder else ()


def _merge(units: Sequence[_Unit], key: Key) -> list[_Unit]:
    found: defaultdict[Hashable, list[_Unit]] = defaultdict(list)
    for unit in units:
        found[key(unit)].append(unit)
    return [_join_units(many) for many in found.values()]


def _join_units(many: Sequence[_Unit]) -> _Unit:
    return _Unit(many[0].kind, tuple(piece for unit in many for piece in unit.pieces))


def _limit(units: list[_Unit]) -> list[_Unit]:
    """Merge the smallest that are alike until there are no more than a person reads."""
    for key in _COARSER:
        if len(units) > _MOST_COMPARED:
            units = _merge(units, key)
        while len(units) > MOST_GROUPS:
            pair = _smallest_pair(units, key)
            if pair is None:
                break
            rest = [unit for unit in units if unit is not pair[0] and unit is not pair[1]]
            units = [*rest, _join_units(pair)]
    return units


def _smallest_pair(units: Sequence[_Unit], key: Key) -> list[_Unit] | None:
    alike: defaultdict[Hashable, list[_Unit]] = defaultdict(list)
    for unit in sorted(units, key=lambda unit: (len(unit.pieces), _turn(unit))):
        alike[key(unit)].append(unit)
    pairs = [many[:2] for many in alike.values() if len(many) > 1]
    sizes = {id(pair): sum(len(unit.pieces) for unit in pair) for pair in pairs}
    return min(pairs, key=lambda pair: (sizes[id(pair)], _turn(pair[0])), default=None)
