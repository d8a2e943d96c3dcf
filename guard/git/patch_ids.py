"""Which commits have to be compared by what they change, and what that is.

A commit that was picked, rebased or amended keeps its author and the time of writing, and gets a new time of committing. So
only a commit with two times, or one that a reflog tells of, or one in a history that was rewritten, is compared at all.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain, islice

from guard.core.work.history import Commit, History, imported
from guard.git.commits import changes, listed, resolving
from guard.git.reader import RepositoryReader

_MOST_OLD = 20_000
_MOST_COMPARED = 500


def compared(git: RepositoryReader, facts: History, before: Sequence[str]) -> History:
    """The facts, with what is to be known of commits that may repeat or replace others."""
    foreign = imported(facts)
    own = [commit for oid, commit in facts.commits.items() if oid not in foreign]
    plain = [commit for commit in own if len(commit.parents) < 2]
    merges = [commit.oid for commit in own if len(commit.parents) > 1]
    suspects = [one for one in (*plain, *facts.dropped) if _is_suspect(one, facts)]
    earlier = _earlier(git, facts, suspects, before) if suspects else []
    if facts.removed or facts.dropped:
        suspects = [*plain, *facts.dropped, *facts.removed]
    elif not earlier:
        suspects = []
    wanted = dict.fromkeys(commit.oid for commit in chain(_few(earlier), _few(suspects)))
    return replace(
        facts,
        earlier=frozenset(commit.oid for commit in earlier),
        changes=changes(git, wanted),
        resolving=resolving(git, merges[:_MOST_COMPARED]),
    )


def _is_suspect(commit: Commit, facts: History) -> bool:
    return commit.author[1] != commit.committed or commit.oid in facts.taken_over


def _earlier(
    git: RepositoryReader, facts: History, suspects: Iterable[Commit], before: Sequence[str]
) -> list[Commit]:
    """Commits of the baseline that were written by the same author at the same time as one that looks new."""
    authors = {commit.author for commit in suspects}
    old = listed(git, before, facts.around, _MOST_OLD).commits.values()
    return [commit for commit in old if commit.author in authors and len(commit.parents) < 2]


def _few(commits: Iterable[Commit]) -> Iterable[Commit]:
    return islice(commits, 2 * _MOST_COMPARED)
