"""A folder that was deleted and made again at the same path is another one, even with the same inode."""

from pathlib import Path

import pytest

from guard.system.folder_identity import folder_identity, is_same_folder


def test_a_folder_is_itself_whatever_is_in_it(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    known = folder_identity(folder)
    assert known is not None
    (folder / "file").write_text("x")
    folder.rename(tmp_path / "renamed")
    assert is_same_folder(known, folder_identity(tmp_path / "renamed"))
    assert folder_identity(folder) is None
    assert not is_same_folder(known, None)


def test_a_folder_made_again_is_another_one(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    for _ in range(20):
        folder.mkdir()
        known = folder_identity(folder)
        assert known is not None
        folder.rmdir()
        folder.mkdir()
        assert not is_same_folder(known, folder_identity(folder))
        folder.rmdir()


@pytest.mark.parametrize(
    ("known", "found", "same"),
    [
        ("1:2:3.5", "1:2:3.5", True),
        ("1:2:3.5", "9:2:3.5", True),
        ("1:2:3.5", "1:2:4.5", False),
        ("1:2:3.5", "1:7:3.5", False),
        ("1:2:", "1:2:3.5", True),
        ("1:2:", "9:2:3.5", False),
        ("1:2:", "1:2:", True),
    ],
)
def test_the_time_of_birth_decides_where_both_have_one(known: str, found: str, same: bool) -> None:
    assert is_same_folder(known, found) is same
