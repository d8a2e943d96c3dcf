"""What counts as new work, as tables over hand-made histories; and whose uncommitted files are."""

from dataclasses import replace
from typing import Any

import pytest

from guard.core.iteration.facts import DirtyFile
from guard.core.work.count import MOST_LINES, count_work
from guard.core.work.history import (
    Commit,
    CommitChange,
    History,
    descendants_of,
    foreign_commits,
    reachable_from,
)
from guard.core.work.leftovers import MOST_NAMES, Uncommitted, attribute_files, find_leftovers
from tests.support.baselines import COUNTS

MAIN = "refs/heads/main"


def oid(name: str) -> str:
    """An id that can be read: its name, and zeros."""
    return name.encode().hex().ljust(40, "0")


def one(name: str, *parents: str, tree: str | None = None, **more: Any) -> Commit:
    return Commit(oid(name), oid(f"t{tree or name}"), tuple(map(oid, parents)), name, **more)


def several(*commits: Commit) -> dict[str, Commit]:
    return {commit.oid: commit for commit in commits}


def touching(*paths: str, patch: str = "") -> CommitChange:
    return CommitChange(frozenset(paths), frozenset({patch or "+".join(paths)}))


B = one("B", "A")
START = History(
    before_head=B.oid,
    before_branch=MAIN,
    before_tree=B.tree,
    head=B.oid,
    branch=MAIN,
    names={MAIN: B.oid},
)


def on_main(*commits: Commit, **facts: Any) -> History:
    """These commits on main, the newest first, after B."""
    tip = commits[0].oid
    given = {"head": tip, "names": {MAIN: tip}, "commits": several(*commits), "around": several(B)}
    return replace(START, **(given | facts))


X, Y = one("X", "B"), one("Y", "X")
OLD = one("O", "A")
STORIES: dict[str, tuple[History, dict[str, Any]]] = {
    "nothing": (START, {}),
    "one commit": (on_main(X), {"new_commits": 1, "net_change": True}),
    "two commits": (on_main(Y, X), {"new_commits": 2, "net_change": True}),
    "a commit with its parent's tree": (on_main(one("X", "B", tree="B")), {"empty": 1}),
    "a commit that undoes the one before": (
        on_main(one("Y", "X", tree="B"), X),
        {"new_commits": 2},
    ),
    "a first commit with nothing in it": (
        on_main(
            Commit(oid("X"), "4b825dc642cb6eb9a060e54bf8d69288fbee4904", ()),
            before_head=None,
            before_tree=None,
            around={},
        ),
        {"empty": 1},
    ),
    "a first commit": (
        on_main(one("X"), before_head=None, before_tree=None, around={}),
        {"new_commits": 1, "net_change": True},
    ),
    "another first commit": (
        on_main(one("X"), around={}),
        {"new_commits": 1, "unrelated": True, "net_change": True},
    ),
    "a rescue": (on_main(one("X", "B", rescued=True)), {"rescued": 1}),
    "a merge of what is counted": (
        on_main(one("M", "B", "X"), X),
        {"new_commits": 1, "merges": 1, "net_change": True},
    ),
    "a merge that resolves": (
        on_main(one("M", "B", "O"), around=several(B, OLD), resolving=frozenset({oid("M")})),
        {"new_commits": 1, "net_change": True},
    ),
    "a fetched commit": (on_main(X, fetched=frozenset({X.oid})), {"imported": 1}),
    "a commit on a fetched one": (
        on_main(Y, X, fetched=frozenset({X.oid})),
        {"new_commits": 1, "imported": 1, "net_change": True},
    ),
    "a fetched commit on one that was made here": (
        on_main(Y, X, fetched=frozenset({Y.oid}), made_here=frozenset({X.oid})),
        {"new_commits": 1, "imported": 1, "net_change": True},
    ),
    "what only a tag leads to": (
        on_main(X, head=B.oid, names={MAIN: B.oid, "refs/tags/v": X.oid}),
        {"imported": 1},
    ),
    "what only a tag leads to, made here": (
        on_main(
            X, head=B.oid, names={MAIN: B.oid, "refs/tags/v": X.oid}, made_here=frozenset({X.oid})
        ),
        {
            "new_commits": 1,
            "on_other_branches": 1,
            "other_branches": ("refs/tags/v",),
            "net_change": True,
        },
    ),
    "a copy of a commit elsewhere": (
        on_main(
            X, earlier=frozenset({OLD.oid}), changes={X.oid: touching("f"), OLD.oid: touching("f")}
        ),
        {"copies": 1},
    ),
    "another change to the same file": (
        on_main(
            X,
            earlier=frozenset({OLD.oid}),
            changes={X.oid: touching("f", patch="x"), OLD.oid: touching("f", patch="o")},
        ),
        {"new_commits": 1, "net_change": True},
    ),
    "a commit replaced by one with the same files": (
        on_main(
            one("C", "A"),
            around=several(one("A")),
            removed=(B,),
            changes={oid("C"): touching("f", "g"), B.oid: touching("f", patch="b")},
        ),
        {"new_commits": 1, "rewritten": 1, "net_change": True},
    ),
    "a commit replaced by one with other files": (
        on_main(
            one("C", "A"),
            around=several(one("A")),
            removed=(B,),
            changes={oid("C"): touching("g"), B.oid: touching("f")},
        ),
        {"new_commits": 1, "lost": 1, "lost_tips": (B.oid,), "net_change": True},
    ),
    "a commit replaced by a copy": (
        on_main(
            one("C", "A", tree="B"),
            around=several(one("A")),
            removed=(B,),
            changes={oid("C"): touching("f"), B.oid: touching("f")},
        ),
        {"copies": 1, "rewritten": 1},
    ),
    "a squash that ends in the same tree": (
        on_main(
            one("C", "A", tree="B"),
            around=several(one("A")),
            removed=(B,),
            changes={oid("C"): touching("f", "g"), B.oid: touching("f")},
        ),
        {"new_commits": 1, "rewritten": 1},
    ),
    "a squash of what is still there elsewhere": (
        on_main(one("C", "A", tree="B"), around=several(one("A"))),
        {"new_commits": 1},
    ),
    "two commits taken away": (
        replace(
            START,
            head=oid("A"),
            names={MAIN: oid("A")},
            removed=(Y, X),
            changes={Y.oid: touching("y"), X.oid: touching("x")},
        ),
        {"lost": 2, "lost_tips": (Y.oid,)},
    ),
    "an empty commit taken away": (replace(START, removed=(X,)), {}),
    "a commit made and dropped": (
        replace(START, dropped=(X,), changes={X.oid: touching("f")}),
        {"lost": 1, "lost_tips": (X.oid,)},
    ),
    "a commit dropped for a better one": (
        on_main(
            one("Y", "B"),
            dropped=(X,),
            changes={X.oid: touching("f", patch="x"), Y.oid: touching("f", patch="y")},
        ),
        {"new_commits": 1, "net_change": True},
    ),
    "a pick given up whose original is still there": (
        replace(
            START,
            dropped=(X,),
            earlier=frozenset({OLD.oid}),
            changes={X.oid: touching("f"), OLD.oid: touching("f")},
        ),
        {},
    ),
    "work on another branch": (
        replace(
            START, names={MAIN: B.oid, "refs/heads/w": X.oid}, commits=several(X), around=several(B)
        ),
        {
            "new_commits": 1,
            "on_other_branches": 1,
            "other_branches": ("refs/heads/w",),
            "net_change": True,
        },
    ),
    "work on another branch that HEAD follows": (
        replace(
            START,
            head=X.oid,
            branch="refs/heads/w",
            names={MAIN: B.oid, "refs/heads/w": X.oid},
            commits=several(X),
            around=several(B),
        ),
        {
            "new_commits": 1,
            "on_other_branches": 1,
            "other_branches": ("refs/heads/w",),
            "branch_changed": True,
            "net_change": True,
        },
    ),
    "the branch under another name": (
        replace(
            START,
            head=X.oid,
            branch="refs/heads/n",
            names={"refs/heads/n": X.oid},
            commits=several(X),
            around=several(B),
        ),
        {"new_commits": 1, "branch_changed": True, "net_change": True},
    ),
    "one branch that cancels out beside one that does not": (
        on_main(
            one("R", "X", tree="B"),
            X,
            Y2 := one("Z", "B"),
            names={MAIN: oid("R"), "refs/heads/w": Y2.oid},
        ),
        {
            "new_commits": 3,
            "on_other_branches": 1,
            "other_branches": ("refs/heads/w",),
            "net_change": True,
        },
    ),
    "an own commit undone after a merge from elsewhere": (
        on_main(
            one("R", "C", tree="M"),
            one("C", "M"),
            one("M", "B", "X"),
            X,
            fetched=frozenset({X.oid}),
        ),
        {"new_commits": 2, "merges": 1, "imported": 1},
    ),
    "something stashed": (replace(START, stashed=(X.oid,)), {"stashed": (X.oid,)}),
    "a warning": (replace(START, warnings=("odd\x1b[2J",)), {"warnings": ("odd\\x1b[2J",)}),
}
FIELDS = (
    *COUNTS,
    *(
        "unrelated",
        "net_change",
        "branch_changed",
        "other_branches",
        "lost_tips",
        "stashed",
        "warnings",
    ),
)


@pytest.mark.parametrize(("history", "expected"), STORIES.values(), ids=STORIES)
def test_counted(history: History, expected: dict[str, Any]) -> None:
    work = count_work(history)
    blank = count_work(START)
    assert {name: getattr(work, name) for name in FIELDS} == {
        name: getattr(blank, name) for name in FIELDS
    } | expected
    assert (work.head, work.branch) == (history.head, history.branch)


def test_every_new_commit_is_of_one_kind() -> None:
    for history, _ in STORIES.values():
        work = count_work(history)
        kinds = (
            work.new_commits,
            work.empty,
            work.copies,
            work.merges,
            work.rescued,
            work.imported,
        )
        assert sum(kinds) == len(history.commits)


def test_the_newest_commits_are_listed_with_their_branches() -> None:
    chain = [one("C0", "B"), *(one(f"C{number}", f"C{number - 1}") for number in range(1, 60))]
    beside = one(
        "S",
        "B",
    )
    commits = [*reversed(chain), beside]
    history = on_main(*commits, names={MAIN: chain[-1].oid, "refs/heads/w": beside.oid})
    work = count_work(history)
    assert (work.new_commits, len(work.commits)) == (61, MOST_LINES)
    assert (work.commits[0].subject, work.commits[0].branch) == ("C59", MAIN)
    assert (
        count_work(
            replace(
                history, commits=several(beside), names={MAIN: B.oid, "refs/heads/w": beside.oid}
            )
        )
        .commits[0]
        .branch
        == "refs/heads/w"
    )


def test_long_texts_are_cut() -> None:
    commit = X._replace(subject="s" * 600)
    name = "refs/heads/" + "n" * 600
    work = count_work(on_main(commit, names={name: commit.oid}, branch=name, warnings=("w" * 600,)))
    assert {
        len(text) for text in (work.commits[0].subject, work.branch or "", work.warnings[0])
    } == {512}


def test_walks() -> None:
    commits = several(one("M", "X", "O"), Y, X, OLD)
    assert reachable_from([oid("M"), "unknown"], commits) == {oid("M"), X.oid, OLD.oid}
    assert descendants_of({X.oid}, commits) == {oid("M"), Y.oid, X.oid}
    assert foreign_commits(on_main(Y, X, fetched=frozenset({Y.oid}))) == {X.oid, Y.oid}


def dirty(path: str = "f", content: str | None = "a", **more: Any) -> DirtyFile:
    digest = None if content is None else content.encode().hex().ljust(64, "0")
    fields = {
        "kind": "file",
        "stamp": "1:1",
        "index": None,
        "staged": False,
        "unstaged": True,
        "untracked": False,
    }
    return DirtyFile(path=path, content=digest, **(fields | more))


STAGED: dict[str, Any] = {"staged": True, "unstaged": False}
BOTH: dict[str, Any] = {"staged": True, "unstaged": True}
NEW: dict[str, Any] = {"unstaged": False, "untracked": True}
LEFT: dict[str, tuple[DirtyFile | None, DirtyFile, dict[str, Any]]] = {
    "changed since": (None, dirty(), {"unstaged": ("f",)}),
    "staged since": (None, dirty(**STAGED), {"staged": ("f",)}),
    "staged and changed again": (None, dirty(**BOTH), {"staged": ("f",), "unstaged": ("f",)}),
    "new": (None, dirty(**NEW), {"untracked": ("f",)}),
    "as before": (dirty(), dirty(), {"users": 1}),
    "with other bytes": (dirty(), dirty(content="b"), {"unstaged": ("f",)}),
    "of another kind": (dirty(), dirty(kind="executable"), {"unstaged": ("f",)}),
    "with the same bytes at another time": (dirty(), dirty(stamp="1:2"), {"users": 1}),
    "unread, of the same size and time": (dirty(content=None), dirty(content=None), {"users": 1}),
    "unread before, of the same size and time": (dirty(content=None), dirty(), {"users": 1}),
    "unread, at another time": (
        dirty(content=None),
        dirty(content=None, stamp="1:2"),
        {"unstaged": ("f",)},
    ),
    "staged as it was on disk": (dirty(), dirty(**STAGED, index=oid("a")), {"users": 1}),
    "untracked, and staged as it was": (
        dirty(**NEW),
        dirty(**STAGED, index=oid("a")),
        {"users": 1},
    ),
    "no longer staged": (dirty(**STAGED, index=oid("a")), dirty(), {"users": 1}),
    "partly staged as before": (
        dirty(**BOTH, index=oid("b")),
        dirty(**BOTH, index=oid("b")),
        {"users": 1},
    ),
    "with something else staged": (
        dirty(),
        dirty(**BOTH, index=oid("b")),
        {"staged": ("f",), "unstaged": ("f",)},
    ),
    "left by an iteration before": (dirty(left_by="iteration"), dirty(), {"unstaged": ("f",)}),
}


@pytest.mark.parametrize(("before", "now", "expected"), LEFT.values(), ids=LEFT)
def test_a_file_that_is(before: DirtyFile | None, now: DirtyFile, expected: dict[str, Any]) -> None:
    left = find_leftovers((before,) if before else (), (now,))
    assert left == Uncommitted(**expected)
    assert left.has_any == (left.users == 0)


def test_stashed_work_is_left_too() -> None:
    left = find_leftovers((), (), (X.oid,))
    assert (left.stashed, left.has_any) == ((X.oid,), True)


@pytest.mark.parametrize(("count", "truncated"), [(MOST_NAMES, False), (MOST_NAMES + 1, True)])
def test_long_lists_are_cut(count: int, truncated: bool) -> None:
    left = find_leftovers((), tuple(dirty(str(number), **NEW) for number in range(count)))
    assert (len(left.untracked), left.truncated) == (MOST_NAMES, truncated)


def test_files_are_attributed_by_path_and_content() -> None:
    files = (dirty("left"), dirty("changed"), dirty("users"))
    carried = (dirty("left"), dirty("changed", content="b"), dirty("gone"))
    found = {file.path: file.left_by for file in attribute_files(files, carried)}
    assert found == {"left": "iteration", "changed": "user", "users": "user"}
