"""Temporary folders in the workspace: the sweep of another process leaves those that are in use."""

import os
import subprocess
import sys
from pathlib import Path

from tests.support import commit, run


def use_scratch(script: str) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-c", script]
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def read_line(process: subprocess.Popen[bytes]) -> Path:
    assert process.stdout is not None
    return Path(process.stdout.readline().decode().strip())


def test_a_sweep_deletes_what_a_killed_process_left_and_nothing_that_is_in_use(
    repository: Path,
) -> None:
    commit(repository)
    workspace = Path(run("where").out.strip())
    assert run("snapshot").code == 0
    script = f"""
import pathlib, sys
from guard.snapshots.shadow import scratch_folder
with scratch_folder(pathlib.Path({os.fspath(workspace)!r})) as folder:
    print(folder, flush=True)
    sys.stdin.read()
"""
    with use_scratch(script) as living, use_scratch(script) as killed:
        used, left = read_line(living), read_line(killed)
        killed.kill()
        killed.wait()
        assert run("snapshot").code == 0
        assert used.is_dir()
        assert not left.exists()
        living.communicate()
    assert not used.exists()
