"""`guard loop --report-html`: a page that is current after every iteration, and never in the way of the loop."""

import os
from pathlib import Path

import pytest

from guard.report import page as page_module
from tests.support import commit, run, write
from tests.support.sessions import QUICK

WORK = "date +%s%N >> work.txt; git add work.txt; git commit -q -m 'feat: work'"


@pytest.fixture
def begun(repository: Path) -> Path:
    commit(repository, "first.txt")
    return repository


def test_the_page_is_current_after_every_iteration(begun: Path, tmp_path: Path) -> None:
    page, seen = tmp_path / "night.html", tmp_path / "seen"
    seen.mkdir()
    # What an iteration finds is the page of those before it.
    keep = f"[ -f {page} ] && cp {page} {seen}/$(ls {seen} | wc -l).html; {WORK}"
    words = ("--no-probe", *QUICK, "--", "sh", "-c", keep)
    done = run("loop", "--max-iterations", "3", "--report-html", page, *words)
    assert done.code == 0, done.err
    texts = [(seen / f"{number}.html").read_text() for number in range(2)] + [page.read_text()]
    for number, text in enumerate(texts, 1):
        assert f"{number} iteration" in text
        assert text.count('<i class="b-complete" title=') == number
    assert "ended: max_iterations" in texts[2]
    assert "ended: " not in texts[1]


def test_a_page_that_cannot_be_written_ends_no_loop(begun: Path, tmp_path: Path) -> None:
    folder = tmp_path / "pages"
    folder.mkdir()
    swap = f"rm -rf {folder}; ln -sfn {begun} {folder}; {WORK}"
    words = ("--no-probe", *QUICK, "--", "sh", "-c", swap)
    done = run("loop", "--max-iterations", "2", "--report-html", folder / "a.html", *words)
    assert (done.code, "a link was put in the place of its folder" in done.err) == (0, True)
    assert not (begun / "a.html").exists()


def test_a_folder_that_is_not_there_is_told_before_the_first_iteration(begun: Path) -> None:
    done = run("loop", "--report-html", begun / "none" / "a.html", "--", "true")
    assert (done.code, "--report-html" in done.err) == (2, True)
    assert run("log", "--type", "run_started", "--format", "json").json["events"] == []


def test_whatever_is_wrong_with_the_page_is_a_warning(
    begun: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from guard.context.invocation import Invocation

    assert run("run", "--no-probe", *QUICK, "--", "sh", "-c", WORK).code == 0
    [begin] = run("log", "--type", "run_started", "--format", "json").json["events"]
    write(tmp_path / "style.css", "")
    monkeypatch.setattr(page_module, "read_style", lambda: 1 / 0)
    page_module.keep_page(Invocation(), Path(os.path.realpath(tmp_path), "a.html"), begin["run"])
    assert "cannot write the page" in capsys.readouterr().err
