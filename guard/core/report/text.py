"""The report as text for a terminal."""

from collections.abc import Callable

from guard.core.base.text import escape, fit_line
from guard.core.report.document import NightReport
from guard.core.report.sections import Style, list_sections, title_of

_LONGEST = 400
_MOST_LINES = 40


def _words(text: str) -> str:
    return fit_line(escape(" ".join(text.split())), _LONGEST)


_STYLE = Style(_words, lambda command: f"\n      $ {escape(command)}")


def report_text(
    report: NightReport,
    bold: Callable[[str], str] = str,
    warning: Callable[[str], str] = str,
) -> str:
    """Return the report, what needs a person first; `bold` and `warning` dress headings for a terminal."""
    lines = [f"{bold(escape(report.repository))}, {title_of(report)}"]
    if not report.needs_you:
        lines.append("Nothing needs you now.")
    headline = escape(report.headline.text)
    for section in list_sections(report, _STYLE, _MOST_LINES):
        is_need = section.title == "Needs you"
        if not is_need and headline:
            lines += ["", bold(headline)]
            headline = ""
        heading = warning if is_need else bold
        lines += ["", heading(f"{section.title}:"), *(f"  {line}" for line in section.lines)]
        if section.more:
            lines.append(f"  and {section.more} more; --format json has all")
    return "\n".join([*lines, *(["", bold(headline)] if headline else [])])
