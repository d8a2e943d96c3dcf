"""`python -m benchmarks [NAME…] [--write]`: print the figures; with --write, also into RESULTS.md, where each has its part.

`verdicts` takes `--sessions N` and `--seed S`; `activity`, `plan` and `postgres` take `--seed S`; `proof` takes
`--most N`, and plays only so many cases of each runner; `truth` takes all three, and
`--alone`: else it installs other tools to compare with. It runs only if it is named.
"""

import re
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

from benchmarks.measure import Row, machine, progress, table

NAMES = (
    *("startup", "hook", "appends", "contention", "growth", "replay", "coordinator"),
    *(
        "snapshots",
        "states",
        "secrets",
        "claims",
        "gate",
        "streams",
        "status",
        "verdicts",
        "activity",
        "proof",
        "proof_cost",
        "plan",
        "kills",
        "report",
        "postgres",
    ),
)
ONLY_BY_NAME = ("truth",)
"""It judges the sets of others again, and installs other tools."""
RESULTS = Path(__file__).with_name("RESULTS.md")


def main(words: list[str]) -> int:
    told = _told(words)
    unknown = set(told.names) - {*NAMES, *ONLY_BY_NAME}
    if unknown:
        progress(f"there is no benchmark {unknown.pop()}; use {', '.join((*NAMES, *ONLY_BY_NAME))}")
        return 2
    for name in told.names or NAMES:
        progress(f"measuring {name} ...")
        report = f"{machine()}\n\n{table(list(_measured(name, told)))}\n"
        sys.stdout.write(f"## {name}\n\n{report}\n")
        if told.write:
            RESULTS.write_text(with_part(RESULTS.read_text(), name, report))
    return 0


def with_part(results: str, name: str, report: str) -> str:
    """Return the results with this part new, and all others as they were; parts stand in the order of `NAMES`."""
    head, *parts = re.split(r"^## (?=[a-z_]+$)", results, flags=re.MULTILINE)
    kept = {part.partition("\n")[0]: part.partition("\n")[2].strip() for part in parts}
    kept[name] = report.strip()
    order = sorted(kept, key=lambda part: NAMES.index(part) if part in NAMES else len(NAMES))
    return head + "\n".join(f"## {part}\n\n{kept[part]}\n" for part in order)


def _told(words: list[str]) -> Namespace:
    parser = ArgumentParser(prog="python -m benchmarks")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"one of {', '.join((*NAMES, *ONLY_BY_NAME))}"
    )
    parser.add_argument("--write", action="store_true", help="also into RESULTS.md")
    parser.add_argument("--sessions", type=int, help="how many sessions `verdicts` makes up")
    parser.add_argument("--most", type=int, help="how many cases of each runner `proof` plays")
    parser.add_argument("--seed", type=int, help="and from which seed")
    parser.add_argument(
        "--alone",
        action="store_true",
        default=None,
        help="`truth` installs and asks no other tools",
    )
    return parser.parse_args(words)


def _measured(name: str, told: Namespace) -> Iterable[Row]:
    taken = {
        "verdicts": ("sessions", "seed"),
        "activity": ("seed",),
        "proof": ("most",),
        "plan": ("seed",),
        "truth": ("sessions", "seed", "most", "alone"),
        "postgres": ("seed",),
    }.get(name, ())
    options = {option: getattr(told, option) for option in taken}
    given = {option: value for option, value in options.items() if value is not None}
    measured: Iterable[Row] = import_module(f"benchmarks.{name}").rows(**given)
    return measured


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
