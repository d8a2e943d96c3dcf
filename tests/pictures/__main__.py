"""`python -m tests.pictures` makes the pictures below docs/pictures; with `--check` it names those that are out of date."""

import sys
import tempfile
from pathlib import Path

from tests.pictures.draw import FOLDER, draw, outdated, play


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="guard-pictures-") as folder:
        played = play(Path(folder).resolve())
        if "--check" not in sys.argv[1:]:
            draw(played)
            return 0
        old = outdated(played)
    for name in old:
        print(f"{FOLDER / name} is out of date: run `python -m tests.pictures`")
    return 1 if old else 0


if __name__ == "__main__":
    sys.exit(main())
