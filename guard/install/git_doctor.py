"""Check for `guard doctor` which of git's hooks are guard's and current, and which commits bypassed them."""

from collections.abc import Iterator
from pathlib import Path

from guard.context.invocation import Invocation
from guard.core.hooks.event_kinds import GIT_HOOKS
from guard.core.log.reports import DoctorCheck
from guard.hooks.git.commits import find_missed_commits
from guard.install import git_scripts
from guard.install.git_hooks import folder_in_use
from guard.system.foreign_files import read_regular
from guard.system.programs import find_as_shell

_NAME = "git hooks"
_MOST_BYTES = 1024 * 1024
_PROBLEMS = {
    "older": "of another version of guard",
    "newer": "of a newer guard",
    "changed": "changed by hand",
}


def git_hooks_health(guard: Invocation) -> Iterator[DoctorCheck]:
    """Yield one line for all hooks, and one for each kind of commits that bypassed them."""
    repository = guard.repository_if_any
    if repository is None or not repository.git_dir_exists:
        return
    folder = folder_in_use(repository, guard.environ)
    present = [event for event in GIT_HOOKS if (folder / event).is_file()]
    scripts = {event: git_scripts.read_script(event, _read(folder / event)) for event in present}
    ours = [event for event, script in scripts.items() if script.kind != "other"]
    others = [event for event in present if event not in ours]
    found = (
        f"guard's: {', '.join(ours) or 'none'}; others: {', '.join(others) or 'none'} ({folder})"
    )
    odd = [
        f"{event} is {_PROBLEMS[script.kind]}"
        for event, script in scripts.items()
        if script.kind in _PROBLEMS
    ]
    odd += [
        f"{event} calls {script.program}, which is not there"
        for event, script in scripts.items()
        if script.program and find_as_shell(script.program, guard.environ) is None
    ]
    if odd:
        yield DoctorCheck.of(_NAME, "warning", "; ".join([found, *odd]), "guard install git")
    else:
        yield DoctorCheck.of(_NAME, "ok", found)
    for sentence in find_missed_commits(guard).sentences():
        yield DoctorCheck.of(_NAME, "ok", sentence)


def _read(path: Path) -> bytes:
    try:
        return read_regular(path, _MOST_BYTES)[:_MOST_BYTES]
    except OSError:
        return b""
