"""Publish the result of a step: outputs, summary and annotations, then the exit code."""

import os
from dataclasses import replace
from pathlib import Path

from guard.context.invocation import Invocation
from guard.core.base.fields import parse_document
from guard.core.github.annotations import annotations, lines
from guard.core.github.outcome import exit_code, outputs
from guard.core.github.report import Mode, Push, StepReport
from guard.core.github.summary import summary
from guard.core.report.document import NightReport
from guard.errors import GuardError, StateProblem
from guard.git.locate import Repository
from guard.github.environment import JobEnvironment, replace_file, write_outputs, write_summary
from guard.report.gather import make_report

_REPORT = "report.json"
_MOST_BYTES = 64 * 1024 * 1024


def save_report(report: StepReport, job: JobEnvironment) -> Path:
    job.folder.mkdir(parents=True, exist_ok=True)
    path = job.folder / _REPORT
    replace_file(path, report.model_dump_json(indent=2).encode() + b"\n")
    return path


def read_report(job: JobEnvironment, mode: Mode) -> StepReport:
    """Return the report that the step left; if there is no readable one, the step was cut short, which is a fault."""
    path = job.folder / _REPORT
    try:
        with path.open("rb") as file:
            return parse_document(StepReport, file.read(_MOST_BYTES))
    except (OSError, ValueError) as error:
        why = f"the step left no result that can be read: {error}"
        return StepReport.without_check(mode, "fault", "no_result", why, StateProblem.exit_code)


def delete_report(job: JobEnvironment) -> None:
    (job.folder / _REPORT).unlink(missing_ok=True)


def publish(
    report: StepReport,
    push: Push,
    job: JobEnvironment,
    fail_on: frozenset[str],
    folder: str,
    night: NightReport | None = None,
) -> tuple[int, list[str]]:
    """Write the outputs and the summary; return the exit code and the lines for the runner.

    `folder` is the path of the work tree in the checkout, and `night` the report of the run.
    """
    code = exit_code(report, fail_on)
    path = job.folder / _REPORT
    save = report.mode != "baseline" and report.settled and report.status != "fault"
    values = outputs(report, push, str(path) if path.is_file() else "")
    write_outputs(job, {"save": str(save).lower(), **values})
    write_summary(job, summary(report, push, night=night))
    return code, lines(annotations(report, fails=code != 0, folder=folder))


def place_in_checkout(repository: Repository | None, job: JobEnvironment) -> str:
    checkout = job.environ.get("GITHUB_WORKSPACE")
    if repository is None or not checkout:
        return ""
    place = os.path.relpath(repository.root, os.path.realpath(checkout))
    return "" if place == "." or place.startswith("..") else f"{place}/"


def find_night(guard: Invocation, job: JobEnvironment, report: StepReport) -> NightReport | None:
    """Return the report of the run that the step belongs to; None if nothing can be told of it."""
    if report.check is None:
        return None
    try:
        place = replace(guard, workspace_option=str(job.state))
        return make_report(place, run=report.check.run)
    except (GuardError, OSError) as error:
        # The verdict is published anyway.
        guard.output.warn(f"the summary is without the report of the run: {error}")
        return None
