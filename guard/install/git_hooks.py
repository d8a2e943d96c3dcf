"""Put guard's scripts where git looks for its hooks, and remove them again.

A hook that was there is kept beside guard's, and called first. Each change is planned before anything is written.
"""

import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from guard.core.install.report import GitHookLine, GitHookStep, HookName
from guard.errors import ConfigProblem, Refused, RepositoryProblem
from guard.git.locate import Repository
from guard.git.run import read_config
from guard.install import git_scripts, settings_file
from guard.install.command_line import Environ

KEPT = ".before-guard"
_MODE = 0o755
_MOST_BYTES = 1024 * 1024


def folder_in_use(repository: Repository, environ: Environ) -> Path:
    """Return the folder where git looks for the hooks."""
    hooks_path = read_config("core.hooksPath", repository.git_dir, environ, "path")
    return repository.root / hooks_path if hooks_path else repository.common_dir / "hooks"


def writable_folder(repository: Repository, environ: Environ, *, shared: bool) -> Path:
    """Return the folder for the hooks of this work tree; raise an error if guard should not write there."""
    if not repository.git_dir_exists:
        raise RepositoryProblem(f"{repository.git_dir} is gone", "restore it first")
    folder = Path(os.path.realpath(folder_in_use(repository, environ)))
    owned = (repository.root, repository.common_dir)
    if not shared and not any(folder.is_relative_to(os.path.realpath(path)) for path in owned):
        raise Refused(
            f"core.hooksPath leads to {folder}, which other repositories may share",
            "pass `--shared` to install there all the same, or unset core.hooksPath for this repository",
        )
    if folder.exists() and not folder.is_dir():
        raise ConfigProblem(f"{folder} is not a folder", "move it away, or unset core.hooksPath")
    if (folder / "h").is_file() and folder.name == "_":
        raise Refused(
            f"{folder} is written by husky, and its hooks go by their names",
            f'put `guard hook git NAME "$@"` into {folder.parent}/NAME instead',
        )
    return folder


def plan_install(folder: Path, events: Sequence[HookName], program: str) -> list[GitHookLine]:
    """Plan an installation; raise an error, before anything is changed, if a file is in its way."""
    return [_plan_step(folder, event, program) for event in events]


def _plan_step(folder: Path, event: HookName, program: str) -> GitHookLine:
    path, kept = folder / event, folder / (event + KEPT)
    chained = os.path.lexists(kept)
    if not os.path.lexists(path):
        return _line(event, "install", chained)
    script = _read_script(path, event)
    if script.kind == "other":
        if chained:
            raise Refused(
                f"{path} is not guard's, and {kept.name} is there too",
                f"move {kept} away if it is not needed, then install again",
            )
        return _line(event, "install", True)
    if script.kind == "newer":
        raise Refused(f"{path} was written by a newer guard", "upgrade guard")
    if script.kind == "changed":
        raise Refused(
            f"{path} is guard's, but was changed by hand since",
            f"move your lines to {kept.name}, delete {path}, and install again",
        )
    is_same = script.kind == "current" and script.program == program
    return _line(event, "unchanged" if is_same else "upgrade", chained)


def install(folder: Path, events: Sequence[HookName], program: str) -> list[GitHookLine]:
    settings_file.make_folders(settings_file.folders_to_make(folder / "any"))
    with settings_file.lock_folder(folder):
        plan = plan_install(folder, events, program)
        for step in plan:
            if step.step in ("install", "upgrade"):
                _write(folder, step, program)
    return plan


def _write(folder: Path, step: GitHookLine, program: str) -> None:
    path, kept = folder / step.hook, folder / (step.hook + KEPT)
    temporary = folder / f".{step.hook}.guard.tmp"
    try:
        temporary.unlink(missing_ok=True)
        with temporary.open("xb") as file:
            file.write(git_scripts.render_script(step.hook, program))
        temporary.chmod(_MODE)
        if step.step == "install" and os.path.lexists(path):
            # Renamed, so that bytes, mode and links stay as they are.
            os.rename(path, kept)
        os.replace(temporary, path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise ConfigProblem(
            f"cannot write {path}: {error.strerror}", "check its permissions"
        ) from None


def plan_removal(folder: Path, events: Sequence[HookName]) -> list[GitHookLine]:
    return [_plan_removal_step(folder, event) for event in events]


def _plan_removal_step(folder: Path, event: HookName) -> GitHookLine:
    path, kept = folder / event, folder / (event + KEPT)
    chained = os.path.lexists(kept)
    if not os.path.lexists(path):
        # An installation that was cut off had put the hook aside already.
        return _line(event, "restore" if chained else "absent", chained)
    kind = _read_script(path, event).kind
    if kind == "other" and chained:
        # Another program was installed over guard's, and may have kept guard's under a name of its own.
        return _line(event, "left", chained, f"it is not guard's, and {kept.name} is there too")
    if kind == "other":
        return _line(event, "absent", False)
    if kind in ("changed", "newer"):
        why = "it was changed by hand" if kind == "changed" else "a newer guard wrote it"
        return _line(event, "left", chained, why)
    return _line(event, "restore" if chained else "remove", chained)


def uninstall(folder: Path, events: Sequence[HookName]) -> list[GitHookLine]:
    if not folder.is_dir():
        return [_line(event, "absent", False) for event in events]
    with settings_file.lock_folder(folder):
        plan = plan_removal(folder, events)
        for step in plan:
            path = folder / step.hook
            try:
                if step.step == "remove":
                    path.unlink()
                elif step.step == "restore":
                    os.replace(folder / (step.hook + KEPT), path)
            except OSError as error:
                raise ConfigProblem(f"cannot change {path}: {error.strerror}") from None
    return plan


def _line(event: HookName, step: GitHookStep, chained: bool, detail: str = "") -> GitHookLine:
    return GitHookLine(hook=event, step=step, chained=chained, detail=detail)


def _read_script(path: Path, event: HookName) -> git_scripts.Script:
    # A link is foreign, wherever it leads.
    status = os.lstat(path)
    if stat.S_ISLNK(status.st_mode):
        return git_scripts.Script("other")
    if not stat.S_ISREG(status.st_mode):
        raise Refused(f"{path} is not a file", "move it away")
    try:
        with path.open("rb") as file:
            return git_scripts.read_script(event, file.read(_MOST_BYTES))
    except OSError as error:
        raise ConfigProblem(
            f"cannot read {path}: {error.strerror}", "check its permissions"
        ) from None
