"""`python -m benchmarks [NAME…] [--write]`: print the figures; with --write, also into RESULTS.md."""

import sys
from importlib import import_module
from pathlib import Path

from benchmarks.measure import Row, machine, progress, table

NAMES = ("startup", "appends", "contention", "growth", "replay")
RESULTS = Path(__file__).with_name("RESULTS.md")


def main(words: list[str]) -> int:
    chosen = [word for word in words if not word.startswith("-")] or list(NAMES)
    unknown = set(chosen) - set(NAMES)
    if unknown:
        progress(f"there is no benchmark {unknown.pop()}; use {', '.join(NAMES)}")
        return 2
    rows: list[Row] = []
    for name in chosen:
        progress(f"measuring {name} ...")
        rows += import_module(f"benchmarks.{name}").rows()
    report = f"{machine()}\n\n{table(rows)}\n"
    sys.stdout.write(report)
    if "--write" in words:
        RESULTS.write_text(f"# Results\n\nWritten by `python -m benchmarks --write`.\n\n{report}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
