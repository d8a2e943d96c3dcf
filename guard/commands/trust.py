"""`guard trust`."""

import json

import click

from guard.context.invocation import Invocation
from guard.context.output import colour, prints_report
from guard.core.base.text import escape, shorten
from guard.core.trust.report import TrustedKey, TrustReport
from guard.errors import WrongUsage

_LONGEST_VALUE = 400


@click.command("trust")
@click.argument("revision", metavar="[REV]", default="HEAD")
@click.option("--show", is_flag=True, help="Print what is trusted; change nothing.")
@click.option("--revoke", is_flag=True, help="Trust the project's settings no longer.")
@prints_report
def command(guard: Invocation, revision: str, show: bool, revoke: bool, form: str) -> None:
    """Trust the project's settings as they are in a commit, or show what is trusted.

    An agent can edit guard.toml and pyproject.toml, so guard takes keys that name commands, limits of the breaker and
    the like only from your own configuration. With this command you trust the content that these files have in HEAD, or
    in REV: guard then takes such keys from that content, as it is in the commit where an iteration began. An edit
    voids that until you trust again.

    Guard records a hash in your own state, for all work trees of the repository. It prints the keys that you
    trust: look at them. An agent of a run cannot call this command.
    """
    from guard import trust

    if show and revoke:
        raise WrongUsage("--show cannot be combined with --revoke", "leave one of them out")
    if revoke and revision != "HEAD":
        raise WrongUsage("--revoke takes no revision: it holds for all of them", "leave it out")
    act = trust.show if show else trust.revoke if revoke else trust.grant
    report = act(guard, revision)
    for warning in report.warnings:
        guard.output.warn(warning)
    guard.output.document(report, form, _text)


def _text(report: TrustReport) -> str:
    commit = (report.commit or "")[:12]
    names = [file.file for file in report.files if file.state != "absent"]
    said = " and ".join(names) or "no settings of guard"
    trusted = f", since {report.trusted_at:%Y-%m-%d %H:%M} UTC" if report.trusted_at else ""
    lines = {
        "trusted": [f"{colour('trusted', 'ok')}: {said} as in commit {commit}{trusted}"],
        "edited": [f"{colour('edited', 'warning')} since you trusted it: run `guard trust`"],
        "untrusted": [f"not trusted: {said} as in commit {commit}" if commit else "not trusted"],
        "revoked": ["revoked: no settings of the project are trusted"],
    }[report.state]
    lines += [f"  {file.file}: edited" for file in report.files if file.state == "edited"]
    if report.state != "revoked":
        lines += [f"  {key.key} = {_value(key)}  ({key.file})" for key in report.keys]
        if not report.keys and names:
            lines.append("  no key in it needs your trust")
    for name in report.uncommitted if report.state == "trusted" else ():
        lines.append(f"  {name} in the work tree is edited; the edit is not trusted")
    return "\n".join(lines)


def _value(key: TrustedKey) -> str:
    return shorten(escape(json.dumps(key.value, ensure_ascii=False)), _LONGEST_VALUE)
