"""Hold the global options of one call of guard, and work out what follows from them on first use."""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from guard.context import workspace
from guard.context.config import NO_APPROVAL, Approval, ConfigSources, has_records
from guard.context.output import Output
from guard.context.workspace import Workspace
from guard.core.base.first_use import dataclass
from guard.core.base.text import plural
from guard.core.config.resolve import Resolved, nest_keys
from guard.core.config.settings import Settings
from guard.errors import GuardError, RepositoryProblem, WrongUsage
from guard.git.locate import Repository
from guard.store.dsn import is_dsn
from guard.system.clock import Clock

if TYPE_CHECKING:
    from guard.context.known_log import LogKeeper
    from guard.context.project_trust import ProjectTrust
    from guard.store import WorkspaceStore
    from guard.store.dsn import Dsn

RUN_REPO = "GUARD_RUN_REPO"
"""The variable of an agent of `guard run` with the work tree that it was started in."""
RUN_WORKSPACE = "GUARD_RUN_WORKSPACE"
"""The variable of an agent of `guard run` with the workspace of that work tree."""
EXCLUDES = "GUARD_SLOT_EXCLUDES"
"""The variable with the file of patterns that an agent's git is to ignore besides those of the repository."""


def _absolute(given: str) -> str:
    return given if is_dsn(given) else os.path.abspath(os.path.expanduser(given))


@dataclass
class Invocation:
    """What a command gets: the global options, the clock, the output, the settings and the state."""

    repo: Path | None = None
    workspace_option: str | None = None
    config_file: Path | None = None
    clock: Clock = field(default_factory=Clock)
    output: Output = field(default_factory=Output)
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    _keys: dict[Path, str] = field(default_factory=dict, init=False, repr=False)
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
        resolved = self._sources.resolve(known.root if known else None, approval=self._approval)
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
        self,
        frozen: Mapping[str, Any] | None,
        flags: Mapping[str, Any] | None = None,
        trusted: tuple[str, ...] | None = None,
    ) -> Settings:
        """Return the settings of an iteration: the project's settings from its start (`frozen`), and these flags.

        `trusted` names the commits one of which may have the content that the user trusts.
        """
        if frozen is None and not flags and trusted is None:
            return self.config.settings
        root = self.repository.root
        given = nest_keys({key: value for key, value in (flags or {}).items() if value is not None})
        approval = self._approval if trusted is None else self._approve(trusted)
        resolved = self._sources.resolve(root, given, frozen, approval)
        self._warn(resolved)
        return resolved.settings

    @cached_property
    def users_config(self) -> Resolved:
        """Return the settings that only the user may set: without the project's files, but for what the user trusts of them."""
        return self._sources.resolve(None, approval=self._approval)

    @cached_property
    def _own_config(self) -> Resolved:
        """Return the settings by which guard finds its state."""
        return self._sources.resolve(None)

    @cached_property
    def trust(self) -> "ProjectTrust | None":
        """Return what the user trusts of the repository's settings; None without a repository."""
        from guard.context.project_trust import ProjectTrust

        known = self.repository_if_any
        limit = self._own_config.settings.completion_check.git_timeout_seconds
        return ProjectTrust(known, self.environ, limit) if known is not None else None

    @cached_property
    def _approval(self) -> Approval:
        return self._approve(None)

    def _approve(self, commits: tuple[str, ...] | None) -> Approval:
        # Most users trust no settings of projects: then nothing has to be loaded or looked at.
        if self.config_file is not None or not has_records(self.environ) or self.trust is None:
            return NO_APPROVAL
        if commits is None:
            commits = self._commits_in_force() if self.trust.record is not None else ()
        return self.trust.approve(commits)

    def _commits_in_force(self) -> tuple[str, ...]:
        """Return the commits that the settings may come from: the open iteration's, else the newest baseline's and HEAD."""
        from guard.core.iteration.baseline import BASELINE
        from guard.core.iteration.run import RUN
        from guard.git.reader import RepositoryReader
        from guard.git.refs import UNBORN, read_head

        found: list[str | None] = []
        with suppress(GuardError, OSError):
            run, baseline = (
                self.store.view(RUN, self.worktree_key),
                self.store.view(BASELINE, self.worktree_key),
            )
            opened = run.open_iteration if run is not None else None
            last = opened or (run.last_iteration if run is not None else None)
            found = [last.trusted if last else None, baseline.head if baseline else None]
            if opened is not None:
                return tuple(commit for commit in found if commit)
        with suppress(GuardError):
            limit = self._own_config.settings.completion_check.git_timeout_seconds
            head = read_head(RepositoryReader(self.repository, self.environ, limit))
            found.append(head if head != UNBORN else None)
        return tuple(commit for commit in found if commit)

    @cached_property
    def workspace(self) -> Workspace:
        given = self.workspace_option or self._own_config.settings.workspace
        repository = self.repository_if_any if given else self.repository
        chosen = workspace.choose(repository, self.workspace_option, self._own_config, self.environ)
        of_run = self.environ.get(RUN_WORKSPACE)
        if given or repository is None or of_run in (None, "", chosen.name):
            return chosen
        if self.environ.get(RUN_REPO) != str(repository.root):
            return chosen
        # The run that this agent belongs to was given a workspace by an option.
        return workspace.choose(repository, of_run, self._own_config, self.environ)

    def run_environment(self) -> dict[str, str]:
        """Return the variables that lead an agent of this run back to its repository and state, wherever it goes."""
        paths = ("GUARD_REPO", "GUARD_WORKSPACE", "GUARD_CONFIG")
        given = {name: self.environ[name] for name in paths if self.environ.get(name)}
        return {
            **{name: _absolute(path) for name, path in given.items()},
            RUN_REPO: str(self.repository.root),
            RUN_WORKSPACE: self.workspace.name,
            **self._git_excludes(),
        }

    def _git_excludes(self) -> dict[str, str]:
        path = self.environ.get(EXCLUDES)
        if not path:
            return {}
        setting = {"GIT_CONFIG_KEY_0": "core.excludesFile", "GIT_CONFIG_VALUE_0": path}
        return {"GIT_CONFIG_COUNT": "1", **setting}

    @property
    def worktree_key(self) -> str:
        return self.key_of(self.repository.root)

    @property
    def worktree_key_if_any(self) -> str | None:
        return self.worktree_key if self.repository_if_any is not None else None

    def key_of(self, root: Path) -> str:
        """Return the key of a work tree of this machine."""
        known = self._keys.get(root)
        if known is None:
            from guard.context.worktree_keys import find_key

            known = self._keys[root] = find_key(self, root)
        return known

    @cached_property
    def store(self) -> "WorkspaceStore":
        store = self.open_store(self._own_config.settings.store.lock_timeout_seconds)
        if self.workspace.server is not None:
            self._hand_in(store)
        return store

    def open_store(self, lock_timeout_seconds: float) -> "WorkspaceStore":
        """Open the store of the workspace for a caller that waits so long for its lock."""
        place = self.workspace
        if place.server is not None:
            return self._open_server(place.server, lock_timeout_seconds)
        from guard.store.file_store import FileStore

        settings = self._own_config.settings.store
        return FileStore(
            self.workspace.path,
            lock_timeout_seconds=lock_timeout_seconds,
            segment_max_bytes=settings.segment_max_bytes,
            notice=self.output.warn,
            witness=self.log_keeper,
        )

    def _open_server(self, server: "Dsn", lock_timeout_seconds: float) -> "WorkspaceStore":
        # The driver is dear to load, and needed for this alone.
        try:
            from guard.store.postgres.journaled_store import JournaledStore
        except ImportError:
            raise WrongUsage(
                "a store in PostgreSQL needs the package psycopg",
                "install guard with it: pip install 'completion-guard[fleet]'",
            ) from None
        return JournaledStore(
            server,
            self.workspace.shared_name,
            lock_timeout_seconds=lock_timeout_seconds,
            folder=self.workspace.path,
            notice=self.output.warn,
        )

    def _hand_in(self, store: "WorkspaceStore") -> None:
        """Record what runs of this machine could not, and say what stays unseen."""
        from guard.store.postgres.journal import find_journals
        from guard.store.postgres.journaled_store import JournaledStore

        assert isinstance(store, JournaledStore)
        if not find_journals(self.workspace.path):
            return
        try:
            if count := store.hand_in():
                self.output.note(
                    f"handed in {plural(count, 'record')} that a run kept here while the server was away"
                )
        except GuardError as error:
            self.output.warn(error.message)
        for path in find_journals(self.workspace.path):
            self.output.warn(f"not seen: the records in {path}, which are not in the log yet")

    def fleet_stores(self) -> "Iterator[tuple[str, int, WorkspaceStore]]":
        """Yield every workspace of the server: its name, how many records it has, and its store."""
        from guard.store.postgres.store import PostgresStore

        store = self.store
        assert isinstance(store, PostgresStore)
        yield from store.fleet()

    @cached_property
    def log_keeper(self) -> "LogKeeper":
        """Return what this machine remembers of the log."""
        from guard.context.known_log import LogKeeper

        place = self.workspace
        return LogKeeper(
            place.path, place.repository, self.environ, self.clock.now, self.output.warn
        )

    @property
    def writable_store(self) -> "WorkspaceStore":
        self.prepare_workspace()
        return self.store

    @property
    def importing_store(self) -> "WorkspaceStore":
        """Return the store of a workspace that is to get its history from elsewhere."""
        self.store.refuse_lost_log()
        workspace.ensure(self.workspace, self.environ)
        return self.store

    def prepare_workspace(self) -> None:
        if self._is_prepared:
            return
        place = self.workspace
        self.store.refuse_lost_log()
        if place.repository is not None:
            self.key_of(
                place.repository.root
            )  # While no change is under way, because it may need one.
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
