"""Write a file that others may have replaced by a link or a pipe."""

import os
from pathlib import Path

import pytest

from guard.system.foreign_files import write_anew
from tests.support import write


def test_a_file_is_written_and_keeps_its_mode(tmp_path: Path) -> None:
    path = write(tmp_path / "report.json", "before\n")
    path.chmod(0o640)
    write_anew(path, b"after\n")
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"after\n", 0o640)
    write_anew(tmp_path / "new.json", b"new\n")
    assert sorted(os.listdir(tmp_path)) == ["home", "new.json", "report.json"]


@pytest.mark.parametrize("kind", ["link", "dangling link", "second name"])
def test_nothing_is_written_through_a_link(kind: str, tmp_path: Path) -> None:
    mine, path = write(tmp_path / "mine", "mine\n"), tmp_path / "report.json"
    if kind == "second name":
        path.hardlink_to(mine)
    else:
        path.symlink_to(mine if kind == "link" else tmp_path / "nothing")
    write_anew(path, b"report\n")
    assert (mine.read_bytes(), path.read_bytes()) == (b"mine\n", b"report\n")
    assert not path.is_symlink()
    assert not (tmp_path / "nothing").exists()


def test_a_pipe_is_written_to_only_while_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    os.mkfifo(path)
    with pytest.raises(OSError, match="No such device"):
        write_anew(path, b"report\n")
    reading = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    write_anew(path, b"report\n")
    assert os.read(reading, 100) == b"report\n"
    os.close(reading)
    write_anew(Path(os.devnull), b"report\n")
