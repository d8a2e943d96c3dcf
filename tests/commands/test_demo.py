"""`guard demo`: the README's first command does what the README shows."""

import os
from pathlib import Path

import pytest

from tests.support import ROOT, run, write
from tests.support.sessions import script

pytestmark = pytest.mark.long


@pytest.mark.parametrize(
    ("words", "scenes"),
    [((), 7), (("--state",), 6), (("--plan",), 4)],
    ids=["iterations", "state", "plan"],
)
def test_all_scenes_go_as_they_should_and_nothing_is_left_behind(
    words: tuple[str, ...], scenes: int, repository: Path, home: Path, tmp_path: Path
) -> None:
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    for name in ("git", "sh", "python3", "guard", "cmp"):
        # In the repository that the user stands in, with its virtual environment first on PATH: none of them runs.
        script(repository / ".venv/bin" / name, f"touch {tmp_path}/ran; exit 1")
    write(repository / "guard.py", f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    path = f"{repository}/.venv/bin{os.pathsep}{os.environ['PATH']}"
    result = run(
        "demo",
        *words,
        env={"TMPDIR": str(scratch), "GUARD_NOW": "2026-01-31T12:00:00Z", "PATH": path},
    )
    assert not (tmp_path / "ran").exists()
    assert result.code == 0, result.out + result.err
    assert "All scenes went as expected" in result.out
    assert result.out.count("\n== ") == scenes
    assert list(scratch.iterdir()) == []
    assert not (home / "state").exists()


def test_keep_says_where_the_folder_is(tmp_path: Path) -> None:
    result = run("demo", "--state", "--keep", cwd=tmp_path, env={"TMPDIR": str(tmp_path)})
    kept = Path(result.out.partition("kept: ")[2].splitlines()[0])
    assert (kept / "project" / ".git").is_dir()
    assert os.path.commonpath([kept, tmp_path]) == str(tmp_path)


def test_a_demo_that_cannot_run_says_so(tmp_path: Path) -> None:
    result = run("demo", cwd=tmp_path, env={"PATH": str(tmp_path)})
    assert result.code != 0
    assert "Traceback" not in result.err


def test_the_readme_shows_what_the_demo_prints() -> None:
    shown = (ROOT / "README.md").read_text()
    code = "".join(path.read_text() for path in (ROOT / "guard" / "demo").glob("*.py"))
    scenes = [line.removeprefix("== ") for line in shown.splitlines() if line.startswith("== ")]
    assert scenes
    assert [scene for scene in scenes if scene not in code] == []
