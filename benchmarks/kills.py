"""The series of kills, races and faults of the test suite in full length: there, they are played shortened."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

from benchmarks.measure import Row, none_of, scratch
from tests.support import ROOT
from tests.support.series import FULL_SERIES


def rows(tests: Sequence[str] = ("tests",)) -> Iterator[Row]:
    """Play every test of these places that has the marker `series`; one figure for each file."""
    with scratch() as folder:
        report = folder / "report.xml"
        words = ["-n", "0", "-m", "series", f"--junitxml={report}", *tests]
        played = subprocess.run(
            [sys.executable, "-m", "pytest", *words],
            cwd=ROOT,
            env={**os.environ, FULL_SERIES: "1"},
            stdout=sys.stderr,
            check=False,
        )
        cases = list(ET.parse(report).iter("testcase"))
        if not cases:
            raise RuntimeError(f"pytest played no series and ended with {played.returncode}")
    for name in dict.fromkeys(_file_of(case) for case in cases):
        yield _row(name, [case for case in cases if _file_of(case) == name])


def _file_of(case: "ET.Element[str]") -> str:
    return Path(*case.attrib["classname"].split(".")).with_suffix(".py").as_posix()


def _row(name: str, cases: "Sequence[ET.Element[str]]") -> Row:
    failed = [
        case for case in cases if case.find("failure") is not None or case.find("error") is not None
    ]
    skipped = sum(case.find("skipped") is not None for case in cases)
    seconds = sum(float(case.attrib["time"]) for case in cases)
    parts = [f"{len(cases)} tests in {seconds:.0f} s"]
    parts += [f"{skipped} skipped"] if skipped else []
    parts += [f"failed: {', '.join(case.attrib['name'] for case in failed)}"] if failed else []
    return none_of(f"series of {name} that failed, in full length", len(failed), "; ".join(parts))
