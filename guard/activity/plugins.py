"""Find, load and call the activity collectors of other packages.

They are found in the user's environment, never in the project's folder, and loaded on first use. A plugin fails alone: by an
error, a wrong sign, or a time-out.
"""

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import EntryPoint, distributions
from itertools import islice
from pathlib import Path
from threading import Lock, Thread
from typing import Any, cast

from guard.activity.subject import AgentSubject, Collector, PartialTrouble
from guard.activity.subject import Sign as OurSign
from guard.collectors import GROUP, Sign
from guard.collectors import Subject as TheirSubject
from guard.core.activity.sources import SOURCES, Tier

_NAME = re.compile(r"[A-Z0-9][A-Z0-9_]{0,59}")
_MOST_SIGNS = 200
LOAD_SECONDS = 10.0
_LOADING = Lock()


def plugin_collectors(root: Path | None) -> tuple[Collector, ...]:
    """The collectors of other packages for an agent in this work tree; an unusable one yields the reason."""
    return tuple(
        Collector(plugin.source, plugin.collect, plugin.tier)
        for plugin in find_plugins(root, tuple(sys.path))
    )


@lru_cache(maxsize=16)
def find_plugins(root: Path | None, search: tuple[str, ...]) -> tuple["CollectorPlugin", ...]:
    """The plugins of installed packages, by source name; looked up once for all agents of a work tree."""
    paths = _outside_paths(root, search)
    found: dict[str, CollectorPlugin] = {}
    for package, entry in _entries(paths):
        plugin = CollectorPlugin(entry, package, paths)
        known = found.setdefault(plugin.source, plugin)
        if known is not plugin and known.package != package:
            known.trouble = f"{known.package} and {package} both offer it"
    return tuple(found[name] for name in sorted(found))


def _entries(paths: list[str]) -> Iterator[tuple[str, EntryPoint]]:
    for package in distributions(path=paths):
        try:
            entries = list(package.entry_points.select(group=GROUP))
            name = f"{package.name} {package.version}" if entries else ""
        except Exception:  # noqa: S112  A package with broken metadata offers nothing.
            continue
        yield from ((name, entry) for entry in entries)


def _outside_paths(root: Path | None, search: tuple[str, ...]) -> list[str]:
    """The search paths without those that an agent could put files into while it works."""
    # With `python -m guard` the first path is the current folder.
    own = os.path.realpath(sys.prefix)
    closed = {os.path.realpath(os.curdir), *([os.path.realpath(root)] if root else [])}
    places = [(path, os.path.realpath(path)) for path in search if path]
    return [
        path
        for path, real in places
        if _is_below(real, own) or not any(_is_below(real, folder) for folder in closed)
    ]


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


@dataclass
class CollectorPlugin:
    """One collector that an installed package offers."""

    entry: EntryPoint
    package: str
    paths: list[str]
    trouble: str | None = None
    """Why it is not called."""
    _loaded: Any = None

    def __post_init__(self) -> None:
        name = self.entry.name.upper()
        if not _NAME.fullmatch(name):
            self.trouble = (
                "its name may have only letters, digits and `_`, and 60 characters at most"
            )
        elif name in SOURCES:
            self.trouble = f"{name} is a source of guard's own"

    @property
    def source(self) -> str:
        name = re.sub(r"[^A-Z0-9_]", "_", self.entry.name.upper()).strip("_")
        return f"X_{name[:60] or 'UNNAMED'}"

    @property
    def tier(self) -> Tier:
        """The tier that the plugin declares; 3 if it declares none."""
        self.load()
        declared = getattr(self._loaded, "guard_tier", 3)
        return cast(Tier, declared) if declared in (1, 2, 3) else 3

    def load(self) -> None:
        # The search path is put back from here, because the import may never end.
        with _LOADING:
            if self._loaded is None and self.trouble is None:
                with _search_only(self.paths):
                    self._call_within(LOAD_SECONDS, self._import, "could not be loaded")

    def collect(self, subject: AgentSubject) -> Iterator[OurSign]:
        """The plugin's signs of one agent; the last item is the reason if it failed."""
        signs: list[object] = []
        limit = subject.settings.collector_seconds
        self.load()
        if self.trouble is None:
            theirs = _public_subject(subject)
            self._call_within(limit, lambda: self._ask(theirs, signs), "failed")
        for sign in tuple(signs):
            yield self._convert(sign, subject)
        if self.trouble is not None:
            yield PartialTrouble(f"{self.package}: {self.trouble}")

    def _ask(self, theirs: TheirSubject, signs: list[object]) -> None:
        try:
            for sign in islice(self._loaded(theirs), _MOST_SIGNS):
                signs.append(sign)  # noqa: PERF402  Signs that it yields before it hangs count.
        except Exception as error:
            signs.append(PartialTrouble(f"{self.package}: {_reason(error)}"))

    def _import(self) -> None:
        loaded = self.entry.load()
        if not callable(loaded):
            raise TypeError(f"{self.entry.value} cannot be called")
        self._loaded = loaded

    def _call_within(self, seconds: float, act: Any, failed: str) -> None:
        """Call `act` in a thread; one that takes too long is left behind, and the plugin is not called again."""

        def run() -> None:
            try:
                act()
            except BaseException as error:  # A plugin may even raise SystemExit.
                self.trouble = f"{failed}: {_reason(error)}"

        thread = Thread(target=run, daemon=True, name=self.source)
        thread.start()
        thread.join(seconds)
        if thread.is_alive():
            self.trouble = f"took more than {seconds:g} s, and is not called again"

    def _convert(self, sign: object, subject: AgentSubject) -> OurSign:
        if isinstance(sign, PartialTrouble):
            return sign
        if not isinstance(sign, Sign) or getattr(sign.at, "tzinfo", None) is None:
            return PartialTrouble(
                f"{self.package}: it yielded something that is not a `Sign` with a time zone"
            )
        values = (sign.at.timestamp(), str(sign.detail), str(sign.message))
        return subject.signal(self.source, *values, tier=self.tier)


def _public_subject(subject: AgentSubject) -> TheirSubject:
    names = ("agent_id", "task_id", "pid", "tmux_session")
    return TheirSubject(
        **{name: getattr(subject.agent, name) for name in names},
        root=subject.root,
        alone=subject.is_alone,
        since=subject.since,
        now=subject.now,
        session=subject.session[1] if subject.session else None,
    )


@contextmanager
def _search_only(paths: list[str]) -> Iterator[None]:
    # A module in the project's folder must not stand in for one of the package.
    before = sys.path[:]
    sys.path[:] = paths
    try:
        yield
    finally:
        sys.path[:] = before


def _reason(error: BaseException) -> str:
    lines = str(error).splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def plugin_troubles(found: tuple[CollectorPlugin, ...]) -> Mapping[str, str | None]:
    """Load all plugins, and return what is wrong with each, by its source and package."""
    for plugin in found:
        plugin.load()
    return {f"{plugin.source} ({plugin.package})": plugin.trouble for plugin in found}
