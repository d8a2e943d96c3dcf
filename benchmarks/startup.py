"""Whole processes, in CPU time."""

import sys
from collections.abc import Iterator

from benchmarks.history import working
from benchmarks.measure import Row, at_most, cpu_seconds, scratch

_MODEL = """\
import click
from pydantic import BaseModel
class Model(BaseModel):
    name: str
Model(name="x")
"""


def rows() -> Iterator[Row]:
    python = sys.executable
    bare = cpu_seconds([python, "-c", "import click"])
    helped = cpu_seconds([python, "-m", "guard", "--help"])
    detail = f"{helped * 1e3:.0f} ms beside {bare * 1e3:.0f} ms"
    yield at_most("guard --help beside importing click", 1.5, helped / bare, detail)
    with scratch() as folder:
        working(folder / "workspace", 1000)
        words = ["--workspace", str(folder / "workspace"), "agent", "list"]
        model = cpu_seconds([python, "-c", _MODEL])
        listed = cpu_seconds([python, "-m", "guard", *words], cwd=folder)
    detail = f"{listed * 1e3:.0f} ms beside {model * 1e3:.0f} ms"
    yield at_most("guard agent list beside click and one pydantic model", 2, listed / model, detail)
