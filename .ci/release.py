"""Check that a tag fits the built distributions and the changelog, and print the release notes.

Usage: python .ci/release.py TAG DIST

DIST is the folder with one wheel and one sdist. The notes are the changelog's section of the version.
"""

import re
import sys
from pathlib import Path

CHANGELOG = Path(__file__).resolve().parents[1] / "CHANGELOG.md"
_VERSION = r"\d+\.\d+\.\d+((a|b|rc)\d+)?"
_NAME = "completion_guard"


def release_notes(tag: str, dist: Path, changelog: str) -> str:
    """Return the release notes; exit with a message if the tag, the files or the changelog do not fit."""
    version = tag.removeprefix("v")
    if not tag.startswith("v") or not re.fullmatch(_VERSION, version):
        sys.exit(f"the tag {tag} is not v and a version such as 1.2.3 or 1.2.3rc1")
    expected = {f"{_NAME}-{version}-py3-none-any.whl", f"{_NAME}-{version}.tar.gz"}
    found = {path.name for path in dist.iterdir()}
    if found != expected:
        sys.exit(
            f"the tag {tag} does not fit the built files: {', '.join(sorted(found)) or 'none'}"
        )
    section = re.search(
        rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d\n(.*?)(?=^## |\Z)",
        changelog,
        re.MULTILINE | re.DOTALL,
    )
    if section is None or not section[1].strip():
        sys.exit(f"CHANGELOG.md has no section `## [{version}] - YYYY-MM-DD` with changes")
    return section[1].strip() + "\n"


if __name__ == "__main__":
    sys.stdout.write(release_notes(sys.argv[1], Path(sys.argv[2]), CHANGELOG.read_text("utf-8")))
