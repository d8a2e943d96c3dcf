"""The report in markdown, for the body of a pull request or the summary of a job."""

from collections.abc import Iterator

from guard.core.base.markdown_escape import fit_lines, piece
from guard.core.report.document import NightReport
from guard.core.report.sections import Style, list_sections, title_of

MOST_BYTES = 60_000
"""GitHub takes no longer body of a pull request than 65,536 characters."""
_MOST_LINES = 25
_MORE = "\n_The rest is left out here; the report in JSON has all of it._"
_STYLE = Style(lambda text: piece(" ".join(text.split())), lambda command: f"<br>{piece(command)}")


def report_markdown(report: NightReport, *, level: int = 2, most_bytes: int = MOST_BYTES) -> str:
    """Return the report with headings from this level on, what needs a person first."""
    return fit_lines(list(_lines(report, "#" * level)), most_bytes, _MORE)


def _lines(report: NightReport, heading: str) -> Iterator[str]:
    yield f"{heading} guard: {piece(report.repository)}, {title_of(report)}"
    yield ""
    if not report.needs_you:
        yield "Nothing needs you now."
        yield ""
    is_told = False
    for section in list_sections(report, _STYLE, _MOST_LINES):
        if section.title != "Needs you" and not is_told:
            yield f"**{_plain(report.headline.text)}**"
            yield ""
            is_told = True
        yield f"{heading}# {section.title}"
        yield ""
        yield from (f"- {line}" for line in section.lines)
        if section.more:
            yield f"- and {section.more} more"
        yield ""
    if not is_told:
        yield f"**{_plain(report.headline.text)}**"


def _plain(text: str) -> str:
    # The headline has figures and guard's own words only.
    return text.replace("<", "&lt;").replace("*", "&#42;").replace("_", "&#95;")
