"""An agent breaks guard's own state while it runs: its work is saved all the same, and the verdict is never a success."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from guard.context.invocation import Invocation
from guard.iteration.begin import begin
from guard.iteration.kept_output import KeptOutput
from tests.support import Result, commit, git, run, write
from tests.support.shelves import mounted

TARGETS = {
    "log": "events.jsonl",
    "sealed segment": "events.000001.jsonl",
    "breaker view": "worktrees.d/KEY/breaker.json",
    "run view": "worktrees.d/KEY/run.json",
    "registry view": "registry/GLOBAL_REGISTRY.json",
    "lock": "workspace.lock",
    "shadow repository": "shadow.git",
    "workspace": ".",
}


def delete(path: Path | str) -> str:
    """A shell command that deletes a folder at once: guard writes there, and `rm` alone would stumble over its new files."""
    return f"mv {path} ../deleted 2> /dev/null; rm -rf ../deleted"


WAYS = {
    "deleted": delete("$P"),
    "empty": f"{delete('$P')}; : > $P; chmod 600 $P",
    "garbage": f"{delete('$P')}; echo garbage > $P; chmod 600 $P",
    "a folder": f"{delete('$P')}; mkdir -m 700 $P",
    "a link": "mv $P $OUT/moved; ln -s $OUT/moved $P",
    "a pipe": f"{delete('$P')}; mkfifo -m 600 $P",
    "an older copy": f"{delete('$P')}; cp -a $OLD $P",
}
MENDED = {
    # Guard makes these again from the log, which has everything; the lock has nothing that is not in the log.
    *((view, way) for view in ("breaker view", "run view", "registry view") for way in WAYS),
    *(("lock", way) for way in ("deleted", "empty", "garbage", "an older copy")),
    ("sealed segment", "an older copy"),  # The same bytes.
} - {(view, way) for view in TARGETS for way in ("a folder", "a link", "a pipe")}
RARE = ("run view", "registry view")
"""Of these only some ways are tried: they are read and written as the breaker's is."""
CELLS = [
    (target, way)
    for target in TARGETS
    for way in WAYS
    if target not in RARE or way in ("deleted", "garbage", "a pipe")
]
KNOWN = (
    "until grep -q '\"pid\": '$$, $GUARD_RUN_WORKSPACE/worktrees.d/*/run.json; do sleep 0.02; done"
)
"""Wait until guard has recorded the agent's process: until then it writes where the agent is about to break things."""
SAVED = "printf 'precious\\n' > work.txt; echo a > done.txt; git add done.txt; git commit -qm done"
WORK = f"{KNOWN}; {SAVED}"
RUN = ("run", "--no-probe", "--no-wait", "--", "sh", "-c")


class Scene(NamedTuple):
    """A repository with a history in guard's log, an older copy of the state, and a folder outside."""

    project: Path
    workspace: Path
    old: Path
    outside: Path


@pytest.fixture
def scene(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    monkeypatch.setenv("GUARD_STORE__SEGMENT_MAX_BYTES", "4096")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    commit(repository, "first.txt")
    write(repository / "mine.txt", "the user's\n")
    guard = Invocation()
    begin(guard)
    spawn = ("agent", "spawn", "--task", "T1", "--agent", "a1", "--type", "claude")
    assert run(*spawn).code == 0
    workspace, old, outside = guard.workspace.path, tmp_path / "old", tmp_path / "outside"
    while not (workspace / "events.000001.jsonl").exists():
        assert run("breaker", "record", "--status", "waiting").code == 0
    assert run("breaker", "record", "--status", "waiting").code == 0
    shutil.copytree(workspace, old, symlinks=True)
    outside.mkdir(mode=0o700)
    write(outside / "kept.txt", "outside\n")
    write(outside / "folder/inner.txt", "outside\n")
    return Scene(repository, workspace, old, outside)


def breaking(scene: Scene, target: str, way: str) -> str:
    path = TARGETS[target].replace("KEY", Invocation().worktree_key)
    place = os.path.normpath(scene.workspace / path)
    older = os.path.normpath(scene.old / path)
    return f"P={place} OLD={older} OUT={scene.outside}; {WAYS[way]}"


def listed(folder: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
        if not path.is_fifo()
    }


def restored(result: Result, folder: Path) -> Path:
    """Run the command that the result prints."""
    told = re.search(r"guard ((?:--\S+ \S+ )*restore \S+) --to DIR", result.out + result.err)
    assert told, result
    back = run(*told[1].split(), "--to", folder)
    assert back.code == 0, back
    return folder


def unpacked(result: Result, folder: Path) -> Path:
    """Run the command of git's that the result prints where no command of guard's would do."""
    told = re.search(r"saved: (git .* \| tar -x -C) DIR", result.err)
    assert told, result
    folder.mkdir()
    subprocess.run(["sh", "-c", f"{told[1]} {folder}"], check=True)
    return folder


@pytest.mark.parametrize(("target", "way"), CELLS, ids=[f"{a}: {b}" for a, b in CELLS])
def test_the_work_is_saved_whatever_an_agent_breaks(
    target: str, way: str, scene: Scene, tmp_path: Path
) -> None:
    script = breaking(scene, target, way)
    after = f"{WORK}; {script}; ls -lR $OUT > ../listing"
    result = run(*RUN, after)
    back = restored(result, tmp_path / "back")
    assert (back / "work.txt").read_bytes() == b"precious\n"
    assert (back / "mine.txt").read_bytes() == b"the user's\n"
    assert (scene.project / "work.txt").read_bytes() == b"precious\n"
    assert git(scene.project, "log", "-1", "--format=%s") == "done\n"
    now = subprocess.run(["ls", "-lR", scene.outside], capture_output=True, check=True).stdout
    assert now == (tmp_path / "listing").read_bytes()
    if (target, way) in MENDED:
        assert result.code == 0, result
        assert run("verify").code == 0, "a verdict is given only if the state was mended"
        return
    assert result.code in (5, 6), result
    assert "complete" not in result.out + result.err
    again = run("breaker", "show", "--format", "json")
    assert again.code == 5 or again.json["streak"] == 0, "a fault of guard is no stall"
    found = run("snapshots", "--format", "json").json["snapshots"]
    assert any(entry["id"] in result.err for entry in found)


@pytest.mark.parametrize("target", ["log", "shadow repository", "workspace"])
def test_a_loop_ends_when_its_state_is_gone(target: str, scene: Scene, tmp_path: Path) -> None:
    count = tmp_path / "count"
    script = f"echo x >> {count}; {WORK} --allow-empty; {breaking(scene, target, 'deleted')}"
    result = run("loop", "--no-probe", "--max-iterations", "3", "--", "sh", "-c", script)
    assert result.code == 5, result
    assert count.read_text() == "x\n"
    assert (restored(result, tmp_path / "back") / "work.txt").exists()


@pytest.mark.parametrize("words", [("prove", "--command"), RUN[:-3]])
@pytest.mark.parametrize("target", ["log", "workspace", "lock"])
def test_a_proof_whose_command_breaks_the_state_proves_nothing(
    words: tuple[str, ...], target: str, scene: Scene, tmp_path: Path
) -> None:
    """What proves the work is the agent's code."""
    command = breaking(scene, target, "a pipe" if target == "lock" else "deleted")
    if words[0] == "prove":
        write(scene.project / "work.txt", "precious\n")
        result = run(*words, command)
    else:
        result = run(*words, "--prove", command, "--", "sh", "-c", SAVED)
    assert result.code in (5, 6), result
    assert "proven" not in result.out
    assert "complete" not in result.out
    back = restored(result, tmp_path / "back")
    assert (back / "work.txt").read_text() == "precious\n"


@pytest.mark.parametrize(
    "words", [("check", "--no-probe", "--no-wait"), ("rescue",), ("baseline",), ("snapshot",)]
)
@pytest.mark.parametrize("target", ["log", "workspace", "shadow repository"])
def test_every_command_that_saves_work_saves_it_first(
    words: tuple[str, ...], target: str, scene: Scene, tmp_path: Path
) -> None:
    way = "a link" if target == "shadow repository" else "deleted"
    for segment in scene.workspace.glob("events.0*") if target == "log" else ():
        segment.unlink()
    subprocess.run(["sh", "-c", breaking(scene, target, way)], check=True)
    write(scene.project / "work.txt", "precious\n")
    result = run(*words)
    if words == ("baseline",) and target == "shadow repository":
        # An iteration may begin: what the user had is safe elsewhere.
        assert result.code == 0, result
        assert "the work tree is safe: git --git-dir=" in result.err
    else:
        assert result.code == 5, result
        back = restored(result, tmp_path / "back")
        assert (back / "work.txt").read_text() == "precious\n"
    assert run("restore", "latest", "work.txt", "--to", tmp_path / "one").code == 0


def test_the_options_that_found_the_workspace_are_in_the_command(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(repository, "first.txt")
    monkeypatch.chdir(tmp_path)
    words = ("--repo", repository, "--workspace", tmp_path / "state")
    assert run(*words, "baseline").code == 0
    write(repository / "work.txt", "precious\n")
    shutil.rmtree(tmp_path / "state")
    result = run(*words, "check")
    assert result.code == 5, result
    assert (restored(result, tmp_path / "back") / "work.txt").read_text() == "precious\n"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with mounted(tmp_path / "disk") as folder:
        yield folder
        if not os.access(folder, os.W_OK):
            subprocess.run(["umount", str(folder)], check=True)


def make_read_only(disk: Path) -> str:
    """The same disk once more on top of itself, read-only: guard has files open below, so it cannot be mounted anew."""
    return f"mount --bind {disk} {disk} && mount -o remount,bind,ro {disk}"


@pytest.mark.parametrize("way", ["full", "read-only"])
@pytest.mark.parametrize("kind", ["the workspace", "the whole state home"])
def test_a_disk_that_fills_up_or_turns_read_only(
    way: str,
    kind: str,
    repository: Path,
    disk: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    commit(repository, "first.txt")
    if kind == "the workspace":
        monkeypatch.setenv("GUARD_WORKSPACE", str(disk / "state"))
    else:
        monkeypatch.setenv("XDG_STATE_HOME", str(disk))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    fill = f"dd if=/dev/zero of={disk}/fill bs=4k 2> ../dd || true; cat ../dd > {disk}/rest || true"
    script = fill if way == "full" else make_read_only(disk)
    result = run(*RUN, f"{WORK}; head -c 200000 /dev/urandom > large.bin; {script} 2> ../trouble")
    large = (repository / "large.bin").read_bytes()
    assert result.code in (5, 6), result
    assert "complete" not in result.out
    back = restored(result, tmp_path / "back")
    assert (back / "large.bin").read_bytes() == large
    assert (back / "work.txt").read_bytes() == b"precious\n"


def test_where_nothing_can_be_written_the_message_says_why(
    repository: Path, disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(repository, "first.txt")
    monkeypatch.setenv("XDG_STATE_HOME", str(disk / "home"))
    (disk / "tmp").mkdir(mode=0o700)
    monkeypatch.setenv("TMPDIR", str(disk / "tmp"))
    result = run(*RUN, f"{WORK}; {make_read_only(disk)}")
    assert result.code == 6, result
    assert "no snapshot could be taken" in result.err
    assert "Read-only file system" in result.err
    assert "complete" not in result.out


def test_an_agent_that_deletes_the_state_is_not_ended_for_it(scene: Scene, tmp_path: Path) -> None:
    # Guard looks at the agent every second.
    agent = f"{delete(scene.workspace)}; {SAVED}; sleep 2.5; echo yes > {tmp_path}/lived"
    result = run("run", "--task", "T1", "--no-probe", "--no-wait", "--", "sh", "-c", agent)
    assert (tmp_path / "lived").read_text() == "yes\n"
    assert result.code == 5, result
    assert "ends it" not in result.err
    assert (restored(result, tmp_path / "back") / "work.txt").exists()


def test_a_loop_whose_second_iteration_breaks_the_state_ends_with_it(
    scene: Scene, tmp_path: Path
) -> None:
    count = tmp_path / "count"
    breaks = f"test $(wc -l < {count}) -lt 2 || {{ {breaking(scene, 'log', 'deleted')}; }}"
    script = f"echo x >> {count}; cp {count} number.txt; git add -A; git commit -qm more; {breaks}"
    words = ("loop", "--no-probe", "--max-iterations", "5", "--format", "json", "--", "sh", "-c")
    result = run(*words, script)
    assert (result.code, result.json["reason"], result.json["exit_code"]) == (5, "fault", 5)
    assert [one["status"] for one in result.json["iterations"]] == ["complete"]
    assert count.read_text() == "x\nx\n"
    restored(result, tmp_path / "back")


def test_an_iteration_that_could_not_be_judged_is_judged_by_the_next_run(scene: Scene) -> None:
    assert run(*RUN, f"{WORK}; {breaking(scene, 'shadow repository', 'deleted')}").code == 5
    assert run("verify").code == 0
    result = run(*RUN, "git add -A; git commit -qm rest")
    assert result.code == 0, result
    assert "left unfinished" in result.err
    assert run("breaker", "show", "--format", "json").json["streak"] == 0
    (lost,) = run("log", "--type", "baseline_snapshot_lost", "--format", "json").json["events"]
    assert "shadow.git" in lost["kept"]


INSIDE = {
    "objects": "mv objects $OUT/; ln -s $OUT/objects objects",
    "pack": "mv objects/pack $OUT/; ln -s $OUT/pack objects/pack",
    "refs": "mv refs $OUT/; ln -s $OUT/refs refs",
    "lock": "rm guard.lock; ln -s $OUT/kept.txt guard.lock",
    "memory": "rm -rf guard.memory; ln -s $OUT guard.memory",
    "locks": "mkdir $OUT/locks; ln -s $OUT/locks guard.locks",
    "a pack": "mkfifo objects/pack/pack-1.idx; touch objects/pack/pack-1.pack",
    "settings": "rm config; mkfifo config",
    "common folder": "mkdir $OUT/other; cp -a . $OUT/other/; echo $OUT/other > commondir",
}


@pytest.mark.parametrize("what", INSIDE)
def test_nothing_is_written_through_a_link_inside_the_shadow_repository(
    what: str, scene: Scene, tmp_path: Path
) -> None:
    script = f"OUT={scene.outside}; cd {scene.workspace}/shadow.git; {INSIDE[what]}"
    subprocess.run(["sh", "-c", script], check=True)
    before = listed(scene.outside)
    write(scene.project / "work.txt", "precious\n")
    result = run("check", "--no-probe", "--no-wait")
    assert result.code == 5, result
    assert (restored(result, tmp_path / "back") / "work.txt").exists()
    assert listed(scene.outside) == before


def test_the_kept_output_goes_through_no_link(scene: Scene) -> None:
    for number in range(40):
        write(scene.outside / f"{number}.txt", "mine")
    (scene.workspace / "output.d").symlink_to(scene.outside)
    before = listed(scene.outside)
    kept = KeptOutput(scene.workspace, "r1.000001")
    with kept.open() as (out, _):
        out.write(b"said")
        kept.touch()
    assert listed(scene.outside) == before
    assert not kept.is_kept()
    (scene.workspace / "output.d").unlink()
    with kept.open() as (out, _):
        out.write(b"said")
    assert kept.is_kept()
    assert (scene.workspace / "output.d/r1.000001.stdout").read_bytes() == b"said"


@pytest.mark.parametrize("name", ["output.d", "rollbacks.d", "teams.d"])
def test_a_folder_of_the_state_that_becomes_a_link_ends_the_run(
    name: str, scene: Scene, tmp_path: Path
) -> None:
    before = listed(scene.outside)
    place = scene.workspace / name
    result = run(*RUN, f"{WORK}; {delete(place)}; ln -s {scene.outside} {place}")
    assert result.code == 5, result
    assert (restored(result, tmp_path / "back") / "work.txt").exists()
    assert run("check", "--no-probe", "--no-wait").code != 0 or name == "output.d"
    assert listed(scene.outside) == before


def test_a_damaged_index_does_not_keep_the_work_from_being_saved(
    scene: Scene, home: Path, tmp_path: Path
) -> None:
    (entry,) = (home / "state/guard/index.d").iterdir()
    write(entry, "garbage")
    write(scene.project / "work.txt", "precious\n")
    result = run("check")
    assert result.code == 5, result
    assert (unpacked(result, tmp_path / "back") / "work.txt").read_text() == "precious\n"


@pytest.mark.parametrize("way", ["mkfifo {}", "echo x > {}", "ln -s {} {}"])
@pytest.mark.parametrize("name", ["", "index.d"])
def test_the_printed_command_works_though_guard_finds_its_state_no_more(
    name: str, way: str, scene: Scene, home: Path, tmp_path: Path
) -> None:
    place = home / "state/guard" / name
    result = run(*RUN, f"{WORK}; {delete(place)}; {way.format(place, place)}")
    assert result.code == 5, result
    assert "complete" not in result.out + result.err
    assert (unpacked(result, tmp_path / "back") / "work.txt").read_text() == "precious\n"


def test_the_printed_command_works_though_the_folder_of_the_workspace_is_gone(
    repository: Path, tmp_path: Path
) -> None:
    commit(repository, "first.txt")
    (repository / "state").mkdir()
    place = repository / "state/guard"
    result = run("--workspace", place, *RUN, f"{WORK}; {delete(place.parent)}")
    assert result.code == 5, result
    assert (unpacked(result, tmp_path / "back") / "work.txt").read_text() == "precious\n"


def test_what_is_no_shadow_repository_any_more_is_moved_away(scene: Scene, tmp_path: Path) -> None:
    shadow = scene.workspace / "shadow.git"
    result = run(*RUN, f"{WORK}; {delete(shadow / 'objects')}")
    assert result.code == 6, result
    assert f"if {shadow} itself is damaged, move it away" in result.err
    assert (restored(result, tmp_path / "back") / "work.txt").exists()
    assert run("verify").code == 1
    shadow.rename(tmp_path / "damaged")
    assert run(*RUN, "true").code == 5, "the snapshot from before the iteration is in the old one"
    assert run(*RUN, "git add -A; git commit -qm all").code == 0


EDIT = """
import os, sys
path = sys.argv[1]
before = os.stat(path)
data = open(path, "rb").read()
with open(path, "r+b") as file:
    # The second record of the segment: the first one is read by every command.
    file.seek(data.index(b'"at":"', data.index(b"\\n")) + len(b'"at":"'))
    file.write(b"3")
os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
"""


@pytest.mark.parametrize("target", ["log", "sealed segment"])
@pytest.mark.parametrize("words", [("run", "--no-wait"), ("loop", "--max-iterations", "3")])
def test_a_changed_byte_in_an_old_record_is_no_success(
    words: tuple[str, ...], target: str, scene: Scene, tmp_path: Path
) -> None:
    count, edit = tmp_path / "count", write(tmp_path / "edit.py", EDIT)
    place = scene.workspace / TARGETS[target]
    work = f"echo x >> {count}; {WORK}; {sys.executable} {edit} {place}"
    result = run(*words, "--no-probe", "--", "sh", "-c", work)
    assert result.code == 5, result
    assert "complete" not in result.out + result.err
    assert f"{TARGETS[target]}: record " in result.err
    assert count.read_text() == "x\n"
    assert (restored(result, tmp_path / "back") / "work.txt").read_bytes() == b"precious\n"
    assert run("verify").code == 1
    if target == "log":
        assert run(*RUN, "true").code == 5
        assert run("check", "--no-probe").code == 5
        assert run("rebuild", "--salvage").code == 0
        assert run(*RUN, "echo x > new.txt; git add new.txt; git commit -qm new").code == 0
