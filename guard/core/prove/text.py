"""Say for people what a proof showed: which tests, what each cell counted, and which command shows it again."""

from collections.abc import Iterator
from shlex import quote

from guard.core.base.text import escape
from guard.core.prove.outcome import CellName, describe_ending
from guard.core.prove.report import Names, Proof
from guard.core.prove.settings import MAIN_CHECK

_LISTS = (
    ("new_failures", "fails now"),
    ("weakened", "removed or skipped, and fails as it was"),
    ("rewritten", "rewritten, and fails as it was"),
    ("still_failing", "failed before, too"),
    ("fixed", "fixed"),
    ("vanished", "gone, and passes as it was"),
    ("newly_skipped", "skipped now, and passes as it was"),
    ("vacuous", "new, and passes without the change"),
    ("flaky", "passes and fails on the same code"),
)
FAILING = frozenset(said for _, said in _LISTS[:3])
"""What is said of the tests because of which work is refuted, or has to be looked at."""
_CELLS: dict[CellName, str] = {
    "before": "before",
    "after": "after",
    "old_tests": "old tests, new code",
    "old_code": "new tests, old code",
}


def named_tests(proof: Proof) -> Iterator[tuple[str, Names]]:
    """Return what is said of tests, and of which; without the lists that are empty."""
    for field, said in _LISTS:
        names = getattr(proof, field)
        if names:
            yield said, names


def cell_lines(proof: Proof) -> Iterator[str]:
    for name, cell in proof.cells.items():
        if cell.granularity == "tests":
            counts = f"{cell.passed:,} passed, {cell.failed:,} failed, {cell.skipped:,} skipped"
        else:
            counts = describe_ending(cell.exit_code)
        times = "from an earlier proof" if cell.cached else f"{cell.seconds:.1f} s"
        yield f"{_CELLS[name]}: {counts} ({times})"


def command_to_repeat(proof: Proof) -> str:
    """Return the command that shows the result again."""
    is_about_tests = proof.reason in ("tests_weakened", "tests_rewritten")
    base = proof.tests_baseline if is_about_tests else proof.baseline
    since = f" --baseline {base[:12]}" if base else ""
    is_named = proof.check not in (None, MAIN_CHECK)
    which = f"--check {proof.check}" if is_named else f"--command {escape(quote(proof.command))}"
    return f"guard prove{since} --head {proof.head[:12]} --no-cache {which}"


def place_of(name: str, proof: Proof) -> tuple[str, int] | None:
    """Return the file of a test, and the last line of it that the test's own output names, else line 1.

    None if the name does not begin with a file.
    """
    file, mark, _ = name.partition("::")
    if not mark or not file or file.startswith("/") or ".." in file.split("/"):
        return None
    found, of = 1, ""
    all_names = {one for said, names in named_tests(proof) if said in FAILING for one in names}
    for line in proof.tail.splitlines():
        if line in all_names:
            # The output of several tests begins with the name of each.
            of = line
        elif of == name and line.startswith(f"{file}:"):
            number = line[len(file) + 1 :].partition(":")[0]
            found = int(number) if number.isdecimal() and 0 < len(number) < 8 else found
    return file, found
