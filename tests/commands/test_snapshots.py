"""`guard snapshots`: what is listed, in which order, and what is told of a snapshot that is damaged."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from guard.schemas.validate import validator
from tests.rescue.states import start
from tests.support import commit, git, run, write
from tests.support.rescues import NOW, fingerprint, take_snapshot
from tests.support.shelves import (
    damage,
    hold_unpromoted,
    keep,
    lose,
    make_read_only,
    mounted,
    refs,
    shadow_git,
)


@pytest.fixture(autouse=True)
def started(repository: Path) -> None:
    start(repository)


def listed(
    workspace: Path, *words: str, cwd: Path | None = None, env: dict[str, str] | None = None
) -> Any:
    call = ("snapshots", *words, "--format", "json")
    result = run(
        "--workspace", workspace, *call, cwd=cwd, env={"GUARD_NOW": NOW.isoformat(), **(env or {})}
    )
    assert result.code == 0, result.err
    assert list(validator("snapshots").iter_errors(result.json)) == []
    return result.json


def ids(report: Any) -> list[str]:
    return [entry["id"] for entry in report["snapshots"]]


def test_without_any_the_list_is_empty_and_nothing_is_written(workspace: Path) -> None:
    assert listed(workspace)["snapshots"] == []
    result = run("--workspace", workspace, "snapshots")
    assert (result.code, result.out, result.err) == (0, "no snapshots\n", "")
    assert not workspace.exists()


def test_each_has_what_its_manifest_says_the_newest_last(repository: Path, workspace: Path) -> None:
    write(repository / ".git/info/exclude", "node_modules/\n")
    write(repository / "node_modules/a.js", "x")
    kept = take_snapshot(repository, workspace)
    old = keep(repository, workspace, days_ago=2, kind="baseline")
    report = listed(workspace)
    assert ids(report) == [old, kept.id]
    entry = report["snapshots"][1]
    assert entry["recover"] == kept.recover
    assert entry["skipped"] == ["node_modules: installed packages"] == list(kept.skipped)
    assert (entry["files"], entry["at"]) == (6, "2026-01-01T00:00:00Z")
    size = sum(path.stat().st_size for path in repository.glob("*.*") if path.is_file())
    assert entry["bytes"] == size + len("inside\n")
    assert (entry["kind"], entry["run"], entry["whole"]) == ("by_hand", None, True)
    assert (entry["worktree"], report["worktree"]) == (str(repository), str(repository))


def test_those_of_one_moment_are_in_the_order_of_their_making(
    repository: Path, workspace: Path
) -> None:
    made = [keep(repository, workspace) for _ in range(5)]
    assert ids(listed(workspace)) == made


def test_the_table_has_a_line_for_each(repository: Path, workspace: Path) -> None:
    first, second = keep(repository, workspace, 1), keep(repository, workspace)
    hold_unpromoted(workspace, first)
    out = run("--workspace", workspace, "snapshots").out.splitlines()
    assert out[0].split() == ["id", "when", "run", "kind", "files", "bytes", "skipped"]
    assert out[1].split() == [
        *(first, "2025-12-31", "00:00:00", "-", "by_hand", "6", "154", "B", "0", "unpromoted")
    ]
    assert [line.split()[0] for line in out[1:]] == [first, second]


def test_each_work_tree_has_its_own_and_all_are_listed_on_request(
    repository: Path, workspace: Path, tmp_path: Path
) -> None:
    git(repository, "worktree", "add", "-q", str(tmp_path / "linked"))
    here, there = keep(repository, workspace, 1), keep(tmp_path / "linked", workspace)
    assert ids(listed(workspace)) == [here]
    assert ids(listed(workspace, cwd=tmp_path / "linked")) == [there]
    assert ids(listed(workspace, "--all")) == [here, there]
    text = run("--workspace", workspace, "snapshots", "--all").out
    assert f"{repository}:\n{here}" in text
    assert f"{tmp_path / 'linked'}:\n{there}" in text


def test_a_workspace_alone_lists_all(repository: Path, workspace: Path, tmp_path: Path) -> None:
    made = keep(repository, workspace)
    assert ids(listed(workspace, cwd=tmp_path)) == [made]


def test_a_vanished_git_directory_hides_none(repository: Path) -> None:
    write(repository / "new.txt", "new\n")
    assert run("baseline").code == 0
    shutil.rmtree(repository / ".git")
    result = run("snapshots", "--format", "json")
    assert (result.code, len(result.json["snapshots"])) == (0, 1)


def test_reading_needs_no_room_and_no_permission(repository: Path, tmp_path: Path) -> None:
    with mounted(tmp_path / "disk") as disk:
        made = keep(repository, disk / "workspace")
        make_read_only(disk)
        assert ids(listed(disk / "workspace")) == [made]


def test_listing_changes_nothing(repository: Path, workspace: Path) -> None:
    keep(repository, workspace)
    before = fingerprint(workspace)
    listed(workspace, "--all")
    assert fingerprint(workspace) == before


DAMAGES = {
    "no manifest": (lambda w, ref: lose(w, f"{ref}:manifest.json"), "its object is missing"),
    "no commit": (lambda w, ref: lose(w, ref), "its object is missing"),
    "another manifest": (
        lambda w, ref: damage(w, f"{ref}:manifest.json", b"{}"),
        "manifest.json",
    ),
    "an empty ref": (lambda w, ref: (w / "shadow.git" / ref).write_bytes(b""), "its ref is broken"),
}


@pytest.mark.parametrize(("harm", "why"), DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_one_is_named_and_the_others_are_listed(
    harm: Any, why: str, repository: Path, workspace: Path
) -> None:
    first = keep(repository, workspace, 2)
    write(repository / "new.txt", "new\n")
    bad = keep(repository, workspace, 1)
    write(repository / "new.txt", "newer\n")
    last = keep(repository, workspace)
    harm(workspace, f"refs/guard/snapshot/{bad}")
    report = listed(workspace)
    assert ids(report) == [first, last]
    (found,) = report["damaged"]
    assert found["id"] == bad
    assert why in found["why"]
    assert f"snapshot {bad} is damaged" in run("--workspace", workspace, "snapshots").err


def test_a_manifest_of_another_kind_is_named(repository: Path, workspace: Path) -> None:
    good = keep(repository, workspace)
    tree = shadow_git(workspace, "rev-parse", f"refs/guard/snapshot/{good}^{{tree}}")
    blob = shadow_git(workspace, "hash-object", "-w", "--stdin", stdin=b'{"schema": "x"}')
    entry = f"100644 blob {blob}\tmanifest.json".encode()
    assert tree
    words = ("-c", "user.name=x", "-c", "user.email=x", "commit-tree", "-m", "x")
    made = shadow_git(workspace, *words, shadow_git(workspace, "mktree", stdin=entry))
    shadow_git(workspace, "update-ref", "refs/guard/snapshot/odd", made)
    report = listed(workspace)
    assert (ids(report), [one["id"] for one in report["damaged"]]) == ([good], ["odd"])


def test_a_shadow_that_is_no_repository_is_an_error_of_the_state(workspace: Path) -> None:
    (workspace / "shadow.git").mkdir(parents=True)
    workspace.chmod(0o700)
    result = run("--workspace", workspace, "snapshots")
    assert (result.code, result.out) == (5, "")
    assert "guard: cannot read the snapshots in " in result.err
    assert "\nhint: " in result.err


def test_promoted_lets_a_snapshot_go(repository: Path, workspace: Path) -> None:
    held, _newest = keep(repository, workspace, 90), keep(repository, workspace)
    hold_unpromoted(workspace, held)
    prune = {"GUARD_RESCUE__KEEP_SNAPSHOTS": "1", "GUARD_RESCUE__KEEP_DAYS": "0"}
    assert listed(workspace, "--prune", env=prune)["pruned"] == []
    report = listed(workspace, "--promoted", held)
    assert (report["promoted"], report["snapshots"][0]["unpromoted"]) == (held, False)
    assert f"refs/guard/unpromoted/{held}" not in refs(workspace)
    assert listed(workspace, "--promoted", held)["promoted"] == held
    assert listed(workspace, "--prune", env=prune)["pruned"] == [held]


@pytest.mark.parametrize(
    ("snapshots", "days", "stay"),
    [("1", "0", 1), ("2", "0", 2), ("1", "2.5", 3), ("3", "2.5", 3), ("50", "14", 4)],
)
def test_the_knobs_say_what_prune_takes(
    snapshots: str, days: str, stay: int, repository: Path, workspace: Path
) -> None:
    made = [keep(repository, workspace, ago) for ago in (3, 2, 1, 0)]
    env = {"GUARD_RESCUE__KEEP_SNAPSHOTS": snapshots, "GUARD_RESCUE__KEEP_DAYS": days}
    report = listed(workspace, "--prune", env=env)
    assert report["pruned"] == made[: 4 - stay]
    assert ids(report) == made[4 - stay :]


def test_the_projects_file_does_not_say_what_is_kept(repository: Path, workspace: Path) -> None:
    made = [keep(repository, workspace, ago) for ago in (30, 20, 0)]
    write(repository / "guard.toml", "[rescue]\nkeep_snapshots = 1\nkeep_days = 0\n")
    assert ids(listed(workspace, "--prune")) == made


@pytest.mark.parametrize("word", ["nope", "", "by-hand"])
def test_a_word_that_names_none_or_many_is_wrong_usage(
    word: str, repository: Path, workspace: Path
) -> None:
    commit(repository)
    keep(repository, workspace)
    keep(repository, workspace)
    result = run("--workspace", workspace, "snapshots", "--promoted", word)
    assert (result.code, result.out) == (2, "")
