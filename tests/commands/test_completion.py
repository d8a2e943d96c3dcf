"""`guard completion`: a script that really completes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from guard.cli import COMMANDS
from tests.support import TIME_LIMIT, run, write


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(shell: str) -> None:
    result = run("completion", shell)
    assert result.code == 0
    assert f"_GUARD_COMPLETE={shell}_complete" in result.out


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("guard ve", ["verify"]),
        ("guard ", list(COMMANDS)),
        ("guard agent sp", ["spawn"]),
        ("guard log --fo", ["--format", "--follow"]),
        ("guard log --format j", ["json"]),
    ],
)
def test_the_script_completes_in_bash(typed: str, offered: list[str], tmp_path: Path) -> None:
    program = write(tmp_path / "bin" / "guard", f'#!/bin/sh\nexec {sys.executable} -m guard "$@"\n')
    program.chmod(0o755)
    words = " ".join(f"'{word}'" for word in typed.split(" "))
    script = f"""
        eval "$(guard completion bash)"
        COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
        _guard_completion guard
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script],
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT,
        check=True,
        env={**os.environ, "PATH": path},
    )
    assert sorted(done.stdout.split()) == sorted(offered)
