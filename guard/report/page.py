"""Write the report as one file of HTML that needs nothing else: no network, no script."""

import os
import re
from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from guard.context.invocation import Invocation
from guard.core.base.text import duration, escape
from guard.core.check.words import status_word
from guard.core.cost.text import count_of, dollars, usage_line
from guard.core.report import charts
from guard.core.report.details import CommitDetails
from guard.core.report.document import NightReport
from guard.core.report.sections import diff_words, tests_words, title_of
from guard.errors import GuardError, WrongUsage
from guard.report.details import read_details
from guard.report.gather import make_report
from guard.system.foreign_files import write_anew

if TYPE_CHECKING:
    from jinja2 import Environment

_BREAKS = re.compile(r"[\t\r\n]+")
_MARKS = {"+": "ins", "-": "del", "@": "b"}
_MOST = {"review": 200, "iterations": 1000, "list": 200}
"""Of very many things the page shows so many; the document has all."""


def render_page(report: NightReport, details: Mapping[str, CommitDetails] | None = None) -> str:
    """Return the page; `details` are what is known of single commits."""
    style = read_style()
    digest = b64encode(sha256(style.encode()).digest()).decode()
    return (
        templates()
        .get_template("report.html.j2")
        .render(**page_parts(report, details or {}), style=_marked(style), style_hash=digest)
    )


def page_parts(report: NightReport, details: Mapping[str, CommitDetails]) -> dict[str, Any]:
    """Return what the parts of a page are made of."""
    return {
        "report": report,
        "details": details,
        "most": _MOST,
        "about": title_of(report),
        "time_line": charts.time_line(report),
        "cost": charts.cost_curve(report),
        "graph": charts.plan_graph(report.plan) if report.plan is not None else None,
        "node": (charts.NODE_WIDTH, charts.NODE_HEIGHT),
    }


def write_page(guard: Invocation, path: Path, report: NightReport) -> None:
    """Write the page, with what the first commits to review change."""
    try:
        page = render_page(report, read_details(guard, report))
        write_anew(path, page.encode(errors="replace"))
    except OSError as error:
        raise WrongUsage(
            f"{path} cannot be written: {error.strerror}", "name another file"
        ) from None


def keep_page(guard: Invocation, path: Path, run: str) -> None:
    """Write the page of a run that goes on; a failure is only a warning."""
    if os.path.realpath(path.parent) != os.fspath(path.parent):
        guard.output.warn(f"cannot write {path}: a link was put in the place of its folder")
        return
    try:
        write_page(guard, path, make_report(guard, run=run))
    except Exception as error:  # Whatever is wrong with a page for people, the loop goes on.
        why = error.message if isinstance(error, GuardError) else f"{type(error).__name__}: {error}"
        guard.output.warn(f"cannot write the page {path}: {why}")


@cache
def read_style() -> str:
    return (files("guard.report") / "templates" / "style.css").read_text(encoding="utf-8")


@cache
def templates() -> "Environment":
    """Return the templates; whatever they print is escaped, for HTML and for the eye."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("guard.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_visible,
    )
    made.filters |= {
        "status_word": status_word,
        "duration": duration,
        "dollars": dollars,
        "count_of": count_of,
        "usage_line": usage_line,
        "patch": _patch,
        "lines": _lines,
        "diff_words": diff_words,
        "tests_words": tests_words,
        "iteration_title": charts.iteration_title,
        "moment": lambda at: f"{at:%Y-%m-%d %H:%M}",
        "iso": lambda at: f"{at:%Y-%m-%dT%H:%M:%SZ}",
    }
    return made


def _visible(value: Any) -> Any:
    # Marks that change the direction of text, and other characters that cannot be seen, are spelled out.
    if type(value) is str:
        return escape(_BREAKS.sub(" ", value))
    return value


def _patch(text: str) -> Any:
    """Return the lines of a diff, marked as what was put in and taken out."""
    from markupsafe import Markup

    lines = []
    for line in text.splitlines():
        mark = _MARKS.get(line[:1])
        shown = Markup.escape(escape(line.replace("\t", "    ")))
        lines.append(Markup("<{0}>{1}</{0}>").format(mark, shown) if mark else shown)
    return Markup("\n").join(lines)


def _lines(text: str) -> Any:
    """Return a text with its line breaks."""
    from markupsafe import Markup

    shown = (Markup.escape(escape(line.replace("\t", "    "))) for line in text.splitlines())
    return Markup("\n").join(shown)


def _marked(text: str) -> Any:
    from markupsafe import Markup

    return Markup(text)  # noqa: S704 - guard's own style sheet
