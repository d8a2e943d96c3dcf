"""A plugin for pytest 6 to 9 that writes down what each test did, one JSON line at a time.

JUnit XML would not do here: it names neither the type of the exception nor the file of a test, a teardown that fails appears
as a second test, and one file per run would be overwritten by the next.

What a test did is taken from the exception that ended it, before any hook of the project can change the report. Canaries, tests
of which one must pass and one must fail, stand at the end of the session's items: they go through the same hooks, and their
reports go nowhere but here, so that counts, exit code and other reporters do not know of them.
"""

from __future__ import annotations

import os
import unittest

import pytest

from .record import (
    HERE,
    Record,
    fault,
    foreign_modules,
    last_lines,
    load_functions,
    patched_by_code,
    read_settings,
    set_variables,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_MOST_FOLDERS = 50
_MOST_DESELECTED = 1000
_ALL = {
    "maxfail": 0,
    "lf": False,
    "stepwise": False,
    "stepwise_skip": False,
    "exitfirst": False,
}
"""Options under which pytest runs all the tests that it was asked for: a run that stops says nothing of the rest."""


class _Reporter:
    """The plugin of one process: the session itself, or a controller or worker of pytest-xdist."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings
        self._folder = settings["folder"]
        self._mark = settings["mark"]
        select = settings["select"]
        self._select = (
            None if select is None else {os.path.join(self._folder, name) for name in select}
        )
        self._names = set(settings["canaries"].values())
        self._canaries: dict[str, str] = {}
        self._strangers = 0
        self._last: Any = None
        self._record: Any = None
        self._tests: set[str] = set()
        self._is_selecting = False
        self._is_worker = self._is_controller = False

    def write(self, kind: str, **fields: object) -> None:
        self._record.write(kind, **fields)

    def _path(self, nodeid: str) -> str:
        return os.path.normpath(os.path.join(self._root, nodeid.split("::", 1)[0]))

    def _name(self, nodeid: str) -> tuple[str, str | None]:
        """Return the id of a test with its file as seen from the checkout, and that file."""
        path = os.path.relpath(self._path(nodeid), self._folder)
        if path.startswith(os.pardir):
            return nodeid, None
        file, found, rest = nodeid.partition("::")
        return (path + found + rest if file else nodeid), path

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config: Any) -> None:
        self._root = str(getattr(config, "rootpath", None) or config.rootdir)
        self._is_worker = hasattr(config, "workerinput")
        for name, value in _ALL.items():
            if hasattr(config.option, name):
                setattr(config.option, name, value)
        self._record = Record(self._settings["reports"])
        self.write("begin", worker=self._is_worker, runner="pytest " + pytest.__version__)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_setupnodes(self) -> None:
        # Workers take the plugin from the environment, as their controller did.
        set_variables(self._settings["given"])

    # What is collected.

    @pytest.hookimpl(tryfirst=True)
    def pytest_make_collect_report(self, collector: Any) -> Any:
        # Another file is not even imported. Not by pytest_ignore_collect: pytest does not ask it about files that it was given.
        if self._select is None or not self._is_test_file(collector):
            return None
        path = os.path.normpath(str(getattr(collector, "path", None) or collector.fspath))
        if path in self._select or path in self._named:
            return None
        from _pytest.reports import CollectReport  # pytest 6 does not export it.

        return CollectReport(collector.nodeid, "passed", None, [])

    def _is_test_file(self, collector: Any) -> bool:
        return isinstance(collector, pytest.File) and not isinstance(collector, pytest.Package)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: Any) -> None:
        # Of a file whose tests are named one by one, pytest wants to find these: they are deselected instead.
        words = [str(word).split("::")[0] for word in session.config.args if "::" in str(word)]
        self._named = {os.path.normpath(os.path.join(os.getcwd(), word)) for word in words}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: Any, items: list[Any]) -> None:
        if self._select is None:
            return
        kept = [item for item in items if self._path(item.nodeid) in self._select]
        if len(kept) < len(items):
            self._is_selecting = True
            config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
            self._is_selecting = False
            items[:] = kept

    def pytest_deselected(self, items: list[Any]) -> None:
        if not self._is_selecting:
            names = [self._name(item.nodeid)[0] for item in items[:_MOST_DESELECTED]]
            self.write("deselected", ids=names, count=len(items))

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed and not self._is_worker:
            name, file = self._name(report.nodeid)
            self.write("uncollected", file=file or name, text=last_lines(report.longrepr))

    # What runs.

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_collection_finish(self, session: Any) -> Iterator[None]:
        # A worker tells the controller now what it has.
        if self._is_worker:
            self._add_canaries(session)
        yield

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtestloop(self, session: Any) -> Iterator[None]:
        self._is_controller = session.config.pluginmanager.hasplugin("dsession")
        # Hooks that look at all items at the end of the collection have run: they need not know the canaries.
        if not self._is_worker and not self._is_controller:
            self._add_canaries(session)
        yield
        session.testscollected -= self._strangers

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        self._strangers = sum(name.rpartition("::")[2] in self._names for name in ids)

    def _add_canaries(self, session: Any) -> None:
        if session.config.option.collectonly:
            return
        self._tests = {self._path(item.nodeid) for item in session.items}
        # The newest plugin is asked first how a test is run: others run each in a process of its own, or again if it fails.
        session.config.pluginmanager.register(_CanaryRun(self), __name__ + "_canaries")
        # A conftest.py is asked only about the tests of its folder: each folder gets two canaries, in a module that has tests.
        modules: dict[str, Any] = {}
        for item in session.items:
            module = item.getparent(pytest.Module)
            if module is not None and len(modules) < _MOST_FOLDERS:
                modules.setdefault(os.path.dirname(self._path(item.nodeid)), module)
        functions = load_functions(os.path.join(HERE, self._settings["module"] + ".py"))
        for module in modules.values():
            for role, name in self._settings["canaries"].items():
                item = pytest.Function.from_parent(module, name=name, callobj=functions[name])
                # Fixtures that the project uses everywhere are none of a canary's business.
                item.fixturenames[:] = []
                self._canaries[item.nodeid] = role
                session.items.append(item)
        if modules:
            self.write("canaries", count=len(modules))

    def run_canary(self, item: Any, nextitem: Any) -> bool:
        """Run a test if it is a canary; return whether it was one."""
        role = self._canaries.get(item.nodeid)
        if role is None:
            self._last = item
            return False
        from _pytest.runner import runtestprotocol

        for report in runtestprotocol(item, log=False, nextitem=nextitem):
            self._write_canary(role, item.nodeid, report)
            if report.when == "teardown" and report.failed and self._last is not None:
                # The canary is the last item, so what the whole session set up was torn down after it.
                report.nodeid, report.location = self._last.nodeid, self._last.location
                item.ihook.pytest_runtest_logreport(report=report)
        return True

    def _write_canary(self, role: str, place: str, report: Any) -> None:
        raised = getattr(report, self._mark, "").partition(" ")[0]
        outcome = "xfailed" if hasattr(report, "wasxfail") else report.outcome
        self.write(
            "canary", role=role, place=place, when=report.when, outcome=outcome, raised=raised
        )

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, call: Any) -> Iterator[None]:
        before = self._judge(call.excinfo)
        outcome: Any = yield
        # unittest's exceptions are put into the call by a hook of pytest's own.
        raised = before if before[0] == "raised" else self._judge(call.excinfo)
        report = outcome.get_result()
        # The mark travels with the report from a worker to its controller.
        setattr(report, self._mark, " ".join(raised))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: Any) -> None:
        if self._is_worker:
            return
        if report.nodeid.rpartition("::")[2] in self._names:
            self.write("canary", role="reported", outcome=str(report.outcome))
            return
        name, file = self._name(report.nodeid)
        raised, _, kind = getattr(report, self._mark, "").partition(" ")
        self.write(
            "phase",
            id=name,
            file=file,
            when=str(report.when),
            outcome=str(report.outcome),
            xfail=hasattr(report, "wasxfail"),
            raised=raised,
            fault=kind,
            text=_text(report, raised),
        )

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: Any, exitstatus: Any) -> Iterator[None]:
        # Before the hooks of the project: some end the process there, for the sake of threads that hang.
        stopped = bool(session.shouldstop or getattr(session, "shouldfail", False))
        foreign = (
            [] if self._is_controller else foreign_modules(self._settings["project"], self._folder)
        )
        patched = patched_by_code(self._folder, self._tests)
        self.write(
            "end",
            exit=int(exitstatus),
            stopped=stopped,
            foreign=foreign,
            patched=patched,
            outside=self._outside(session.config),
        )
        yield

    def _outside(self, config: Any) -> str | None:
        """Return a file that steers pytest, but lies in no checkout: in the user's home, or beside the checkouts."""
        given = getattr(config.option, "inifilename", None)
        found = (
            None if given else getattr(config, "inipath", None) or getattr(config, "inifile", None)
        )
        files = [
            found,
            *(getattr(one, "__file__", None) for one in config.pluginmanager.get_plugins()),
        ]
        for file in filter(None, files):
            path = os.path.realpath(str(file))
            is_steering = file is found or os.path.basename(path) == "conftest.py"
            is_installed = not {"site-packages", "dist-packages"}.isdisjoint(path.split(os.sep))
            if is_steering and not is_installed and not path.startswith(self._folder + os.sep):
                return path
        return None

    def _judge(self, excinfo: Any) -> tuple[str, str]:
        """Say how a phase of a test ended, and what kind of fault that is."""
        if excinfo is None:
            return "no", ""
        error = excinfo.value
        if isinstance(error, (pytest.skip.Exception, unittest.SkipTest)):
            return "skip", ""
        if isinstance(error, pytest.xfail.Exception):
            return "xfail", ""
        if isinstance(error, pytest.fail.Exception):
            return "raised", "assertion"
        return "raised", fault(error, self._folder, self._tests)


class _CanaryRun:
    def __init__(self, reporter: _Reporter) -> None:
        self._reporter = reporter

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: Any, nextitem: Any) -> Any:
        return self._reporter.run_canary(item, nextitem) or None


def _text(report: Any, raised: str) -> str:
    """Return why a test failed or was skipped."""
    if hasattr(report, "wasxfail") and not report.failed:
        return last_lines(f"xfail: {report.wasxfail}")
    if report.failed or raised == "raised":
        return last_lines(report.longrepr)
    if report.skipped:
        place = report.longrepr
        return last_lines(place[2] if isinstance(place, tuple) and len(place) == 3 else place)
    return ""


def pytest_addoption(pluginmanager: Any) -> None:
    pluginmanager.register(_Reporter(read_settings()), __name__ + "_reporter")
