"""How many made-up secrets the built-in rules find, and how often they take something else for one.

Where the library detect-secrets is installed, it looks at the same files in the same run.
"""

import os
import sysconfig
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import process_time
from typing import NamedTuple

from benchmarks.measure import Row, scratch
from benchmarks.secret_corpus import WHOLE, File, files_with_secrets, files_without
from guard.core.rescue.secrets import find_secrets

_SEED = 1
_LARGEST = 1_000_000
_THEIRS_OF = 20
"""The library takes seconds for a megabyte, so that of installed code it gets every twentieth file."""

Scanner = Callable[[Path], bool]


class Scanned(NamedTuple):
    hits: frozenset[Path]
    files: int
    seconds_per_megabyte: float

    @property
    def share(self) -> float:
        return len(self.hits) / max(1, self.files)


def rows(rounds: int = 4, every: int = 1) -> Iterator[Row]:
    with scratch() as folder:
        kinds = _written(folder / "with", files_with_secrets(_SEED, rounds))
        harmless = _written(folder / "without", files_without(_SEED, rounds * 5))
        installed = _installed()[::every]
        found, fooled, clean = (
            _scanned(_built_in, files) for files in (kinds, harmless, installed)
        )
        yield _recall(found, kinds)
        detail = (
            f"{len(fooled.hits)} of {fooled.files}: hashes, placeholders, templates, public keys"
        )
        yield _most("files made up to look like one, taken for one", 0, fooled.share, "", detail)
        told = f"{len(clean.hits)} of {clean.files} files of installed packages"
        detail = f"{told}, {clean.seconds_per_megabyte:.2f} s of CPU time for a megabyte"
        name = "files of installed packages with a hit, of 1,000"
        yield _most(name, 3, clean.share * 1000, "", detail, _compared(kinds, harmless, installed))


def _recall(found: Scanned, kinds: dict[Path, str]) -> Row:
    total, got = Counter(kinds.values()), Counter(kinds[path] for path in found.hits)
    named = sum(got[kind] for kind in WHOLE) / sum(total[kind] for kind in WHOLE)
    poor = [f"{kind} {got[kind]}/{total[kind]}" for kind in total if got[kind] < 0.8 * total[kind]]
    detail = f"{len(total)} kinds; of those that only a name gives away {named:.2f}; least: {', '.join(poor)}"
    return Row(
        "secrets found, of all made up",
        "at least 0.95",
        found.share,
        found.share >= 0.95,
        detail,
        "",
    )


def _most(what: str, limit: float, value: float, unit: str, detail: str, below: str = "") -> Row:
    return Row(what, f"at most {limit:g}", round(value, 4), value <= limit, detail, unit, below)


def _written(folder: Path, files: Iterator[File]) -> dict[Path, str]:
    kinds = {}
    for number, file in enumerate(files):
        path = folder / f"{number}" / Path(file.name).name
        path.parent.mkdir(parents=True)
        path.write_bytes(file.data)
        kinds[path] = file.kind
    return kinds


def _installed() -> list[Path]:
    """What is at hand everywhere and holds no secret, but for keys that the tests of libraries need."""
    places = {sysconfig.get_path(name) for name in ("stdlib", "purelib")}
    found = set()
    for place in places:
        for folder, folders, names in os.walk(place):
            folders[:] = [name for name in folders if name != "__pycache__"]
            found |= {Path(folder, name) for name in names}
    plain = (path for path in found if path.is_file() and not path.is_symlink())
    return sorted(path for path in plain if path.stat().st_size <= _LARGEST)


def _scanned(scanner: Scanner, files: Sequence[Path] | dict[Path, str]) -> Scanned:
    begun = process_time()
    hits = frozenset(path for path in files if scanner(path))
    spent = process_time() - begun
    size = sum(path.stat().st_size for path in files) / 1e6
    return Scanned(hits, len(files), spent / size)


def _built_in(path: Path) -> bool:
    return next(find_secrets(path.read_bytes()), None) is not None


def _compared(kinds: dict[Path, str], harmless: dict[Path, str], installed: Sequence[Path]) -> str:
    scanner = _library()
    if scanner is None:
        return ""
    some = installed[::_THEIRS_OF]
    lines = [
        "| scanner | secrets found | made up to look like one | installed, of 1,000 | CPU s/MB |",
        "|---|---|---|---|---|",
    ]
    for name, one in (("built in", _built_in), ("detect-secrets", scanner)):
        found, fooled, clean = (_scanned(one, files) for files in (kinds, harmless, some))
        lines.append(
            f"| {name} | {found.share:.2f} | {fooled.share:.2f} | {clean.share * 1000:.1f}"
            f" | {clean.seconds_per_megabyte:.2f} |"
        )
    return "\n".join(lines)


def _library() -> Scanner | None:
    try:
        from detect_secrets.core import scan  # type: ignore[import-not-found, unused-ignore]
        from detect_secrets.settings import (  # type: ignore[import-not-found, unused-ignore]
            default_settings,
        )
    except ImportError:
        return None

    def scanner(path: Path) -> bool:
        with default_settings():
            return next(iter(scan.scan_file(str(path))), None) is not None

    return scanner
