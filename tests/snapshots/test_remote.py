"""`rescue.remote`: snapshots are pushed to a private repository, and restored on another machine."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support import Result, commit, git, run, write

SECRET = "t0ken-of-the-remote"


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    path = tmp_path / "remote.git"
    subprocess.run(["git", "init", "-q", "--bare", str(path)], check=True, timeout=60)
    return path


def pushed(remote: Path) -> list[str]:
    return git(remote, "for-each-ref", "--format=%(refname)").split()


def on(machine: str, state: Path, remote: Path | str, *words: str | Path) -> Result:
    """Call guard on a machine with a state home of its own."""
    env = {"GUARD_MACHINE": machine, "XDG_STATE_HOME": str(state)}
    return run(*words, env={**env, "GUARD_RESCUE__REMOTE": str(remote)})


def test_work_is_restored_on_another_machine(
    repository: Path, tmp_path: Path, remote: Path
) -> None:
    commit(repository)
    write(repository / ".git" / "info" / "exclude", "secret.env\n")
    one, two = tmp_path / "one", tmp_path / "two"
    write(repository / "secret.env", "KEY=1\n")
    agent = "echo work > work.txt"
    done = on("a", one, remote, "run", "--no-probe", "--no-rescue", "--", "sh", "-c", agent)
    assert "not pushed" not in done.err
    taken = on("a", one, remote, "snapshot", "--format", "json")
    assert taken.code == 0, taken.err
    identity = taken.json["id"]
    assert any(name.endswith(f"/{identity}") for name in pushed(remote))
    assert git(repository, "for-each-ref", "refs/guard/snapshot") == ""
    shutil.rmtree(one)
    (repository / "work.txt").unlink()
    lost = on("b", two, remote, "restore", identity, "--to", tmp_path / "out")
    assert lost.code == 2
    fetched = on("b", two, remote, "-v", "snapshots", "--fetch")
    assert fetched.code == 0, fetched.err
    assert f"fetched snapshot {identity}" in fetched.err
    assert identity in fetched.out
    restored = on("b", two, remote, "restore", identity, "--to", tmp_path / "out")
    assert restored.code == 0, restored.err
    assert (tmp_path / "out" / "work.txt").read_text() == "work\n"
    assert (tmp_path / "out" / "secret.env").read_text() == "KEY=1\n"
    assert "fetched snapshot" not in on("b", two, remote, "-v", "snapshots", "--fetch").err
    assert on("b", two, remote, "snapshot").code == 0
    assert len({name.split("/")[2] for name in pushed(remote)}) == 2


def test_nothing_is_pushed_unless_the_user_names_a_remote(
    repository: Path, tmp_path: Path, remote: Path
) -> None:
    write(repository / ".guard.toml", f'[rescue]\nremote = "{remote}"\n')
    commit(repository)
    done = run("snapshot")
    assert done.code == 0
    assert pushed(remote) == []
    assert run("snapshots", "--fetch").code == 2


def test_a_remote_that_fails_is_a_warning_without_its_password(
    repository: Path, tmp_path: Path
) -> None:
    commit(repository)
    address = f"https://me:{SECRET}@127.0.0.1:1/x.git"
    done = on("a", tmp_path / "one", address, "run", "--no-probe", "--", "true")
    assert done.code == 10
    assert "were not pushed to the remote" in done.err
    fetched = on("a", tmp_path / "one", address, "snapshots", "--fetch")
    assert fetched.code == 6
    shown = on("a", tmp_path / "one", address, "config", "--format", "json")
    for each in (done, fetched, shown, on("a", tmp_path / "one", address, "config")):
        assert SECRET not in each.out + each.err


def test_the_password_is_in_no_command_line(repository: Path, tmp_path: Path) -> None:
    commit(repository)
    log, real = tmp_path / "argv", shutil.which("git")
    write(tmp_path / "bin" / "git", f'#!/bin/sh\necho "$@" >> {log}\nexec {real} "$@"\n').chmod(
        0o755
    )
    env = {
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
        "GUARD_RESCUE__REMOTE": f"https://me:{SECRET}@127.0.0.1:1/x.git",
    }
    assert run("snapshot", env=env).code == 0
    assert "push" in log.read_text()
    assert SECRET not in log.read_text()
