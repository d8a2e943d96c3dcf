"""Hold the global options of one call of guard, and work out what follows from them on first use."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from guard.context import workspace
from guard.context.config import ConfigSources
from guard.context.output import Output
from guard.context.workspace import Workspace
from guard.core.config.resolve import Resolved, nest_keys
from guard.core.config.settings import Settings
from guard.errors import RepositoryProblem
from guard.git.locate import Repository
from guard.store.file_store import FileStore
from guard.system.clock import Clock

if TYPE_CHECKING:
    from guard.context.known_log import LogKeeper

RUN_REPO = "GUARD_RUN_REPO"
"""The variable of an agent of `guard run` with the work tree that it was started in."""
RUN_WORKSPACE = "GUARD_RUN_WORKSPACE"
"""The variable of an agent of `guard run` with the workspace of that work tree."""


@dataclass
class Invocation:
    """What a command gets: the global options, the clock, the output, the settings and the state."""

    repo: Path | None = None
    workspace_option: str | None = None
    config_file: Path | None = None
    clock: Clock = field(default_factory=Clock)
    output: Output = field(default_factory=Output)
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    _is_prepared: bool = field(default=False, init=False, repr=False)
    _warned: set[str] = field(default_factory=set, init=False, repr=False)

    @cached_property
    def repository(self) -> Repository:
        try:
            return workspace.find_repository(self.repo or Path(), self.environ)
        except RepositoryProblem:
            if self.repo is not None or RUN_REPO not in self.environ:
                raise
            # An agent of `guard run` has left the repository.
            return workspace.find_repository(Path(self.environ[RUN_REPO]), self.environ)

    def enter_run(self, task: str, agent: str) -> None:
        """Take the repository of the run if the agent is the one that runs in it, whatever its current folder is."""
        own = (self.environ.get("GUARD_TASK_ID"), self.environ.get("GUARD_AGENT_ID"))
        if self.repo is None and RUN_REPO in self.environ and own == (task, agent):
            self.repo = Path(self.environ[RUN_REPO])

    @cached_property
    def repository_if_any(self) -> Repository | None:
        """Return the repository, or None if there is none and --repo was not given."""
        try:
            return self.repository
        except RepositoryProblem:
            if self.repo is not None:
                raise
            return None

    @cached_property
    def _sources(self) -> ConfigSources:
        return ConfigSources(self.environ, self.config_file)

    @cached_property
    def config(self) -> Resolved:
        """Return the settings in force; warn once of settings that are ignored."""
        known = self.repository_if_any
        resolved = self._sources.resolve(known.root if known else None)
        self._warn(resolved)
        return resolved

    def _warn(self, resolved: Resolved) -> None:
        for warning in resolved.warnings:
            if warning not in self._warned:
                self._warned.add(warning)
                self.output.warn(warning)

    def check_config(self) -> None:
        """Read the whole configuration now: warn of what is ignored, and raise for what is wrong in the user's own."""
        assert self.config

    def settings(
        self, frozen: Mapping[str, Any] | None, flags: Mapping[str, Any] | None = None
    ) -> Settings:
        """Return the settings of an iteration: the project's settings from its start (`frozen`), and these flags."""
        if frozen is None and not flags:
            return self.config.settings
        root = self.repository.root
        given = nest_keys({key: value for key, value in (flags or {}).items() if value is not None})
        resolved = self._sources.resolve(root, given, frozen)
        self._warn(resolved)
        return resolved.settings

    @cached_property
    def users_config(self) -> Resolved:
        """Return the settings without the project's files, for those that only the user may set."""
        return self._sources.resolve(None)

    @cached_property
    def workspace(self) -> Workspace:
        given = self.workspace_option or self.users_config.settings.workspace
        repository = self.repository_if_any if given else self.repository
        chosen = workspace.choose(
            repository, self.workspace_option, self.users_config, self.environ
        )
        of_run = self.environ.get(RUN_WORKSPACE)
        if given or repository is None or of_run in (None, "", str(chosen.path)):
            return chosen
        if self.environ.get(RUN_REPO) != str(repository.root):
            return chosen
        # The run that this agent belongs to was given a workspace by an option.
        return workspace.choose(repository, of_run, self.users_config, self.environ)

    def run_environment(self) -> dict[str, str]:
        """Return the variables that lead an agent of this run back to its repository and state, wherever it goes."""
        paths = ("GUARD_REPO", "GUARD_WORKSPACE", "GUARD_CONFIG")
        given = {name: self.environ[name] for name in paths if self.environ.get(name)}
        return {
            **{name: os.path.abspath(os.path.expanduser(path)) for name, path in given.items()},
            RUN_REPO: str(self.repository.root),
            RUN_WORKSPACE: str(self.workspace.path),
        }

    @property
    def worktree_key(self) -> str:
        return workspace.worktree_key(self.repository.root)

    @cached_property
    def store(self) -> FileStore:
        settings = self.users_config.settings.store
        return FileStore(
            self.workspace.path,
            lock_timeout_seconds=settings.lock_timeout_seconds,
            segment_max_bytes=settings.segment_max_bytes,
            notice=self.output.warn,
            witness=self.log_keeper,
        )

    @cached_property
    def log_keeper(self) -> "LogKeeper":
        """Return what this machine remembers of the log."""
        from guard.context.known_log import LogKeeper

        place = self.workspace
        return LogKeeper(
            place.path, place.repository, self.environ, self.clock.now, self.output.warn
        )

    @property
    def writable_store(self) -> FileStore:
        self.prepare_workspace()
        return self.store

    def prepare_workspace(self) -> None:
        if self._is_prepared:
            return
        place = self.workspace
        self.store.refuse_lost_log()
        if place.repository and place.path.is_relative_to(place.repository.root):
            self.output.warn(
                f"{place.path} lies in the work tree, where `git clean -fdx` deletes it"
            )
        workspace.ensure(place, self.environ)
        self._is_prepared = True

    def forget_store(self) -> None:
        """Open and prepare the state again on next use, because its folder was moved."""
        self.__dict__.pop("store", None)
        self.__dict__.pop("log_keeper", None)
        self._is_prepared = False
