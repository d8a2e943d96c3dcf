"""Commits that did not come the usual way: past the checks, or past every hook."""

from collections.abc import Sequence
from dataclasses import dataclass

from guard.core.base.text import plural
from guard.core.hooks.git.state import Commits

_SHOWN, _SHORT = 3, 10


@dataclass(frozen=True, slots=True)
class Noticed:
    """What the hooks tell of some commits that were made here."""

    unverified: tuple[str, ...] = ()
    """Made past guard's `pre-commit` hook, as by `--no-verify`."""
    unrecorded: tuple[str, ...] = ()
    """No hook told of them."""

    def sentences(self) -> tuple[str, ...]:
        """In words, for people; none if there is nothing to say."""
        return tuple(
            f"{plural(len(oids), 'commit')} {how}: {_listed(oids)}"
            for oids, how in (
                (self.unverified, "made past the pre-commit hook (--no-verify)"),
                (self.unrecorded, "made past every hook"),
            )
            if oids
        )


def notice(view: Commits | None, made: Sequence[str], *, recorded_before: bool) -> Noticed:
    """What is odd about commits that were made here, oldest first.

    Only what came after the first that a hook told of can have been missed, unless the hooks were there before all of them.
    """
    known = view.known() if view is not None else frozenset()
    unverified = {one.oid for one in view.commits if one.verified is False} if view else set()
    first = next((place for place, oid in enumerate(made) if oid in known), len(made))
    expected = made if recorded_before else made[first:]
    return Noticed(
        unverified=tuple(oid for oid in dict.fromkeys(made) if oid in unverified),
        unrecorded=tuple(oid for oid in dict.fromkeys(expected) if oid not in known),
    )


def _listed(oids: Sequence[str]) -> str:
    more = " …" if len(oids) > _SHOWN else ""
    return ", ".join(oid[:_SHORT] for oid in oids[:_SHOWN]) + more
