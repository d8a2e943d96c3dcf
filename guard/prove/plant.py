"""Lay guard's reporters where test runners load them."""

import json
import os
import random
import re
import secrets
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from guard.core.prove.runners import NamedRunner
from guard.prove.order import Order
from guard.system.processes import run

_REPORTERS = Path(__file__).with_name("reporters")
_CANARIES = "def {ok}():\n    value = 1\n    assert value == 1\n\n\ndef {fail}():\n    value = 1\n    assert value == 2\n"
_NODE_SECONDS = 20.0
_OLDEST_NODE = 20
"""Older ones refuse the options of a reporter in NODE_OPTIONS, or do not say in which file a test is."""


@dataclass(frozen=True)
class Planted:
    """The variables under which runners load the reporters."""

    environ: dict[str, str]
    folder: Path
    """Where Python finds the reporters."""
    package: str
    """The random name that they have there."""
    unittest: str
    """The module to run in place of unittest."""
    hears_node: bool


def plant(
    order: Order, named: Sequence[NamedRunner], reports: Path, scripts: Mapping[str, str]
) -> Planted:
    """Copy the reporters under a random name into the order's scratch folder."""
    folder = order.scratch / "plugin"
    shutil.rmtree(folder, ignore_errors=True)
    package, module = (f"{word}_{secrets.token_hex(6)}" for word in ("reporter", "test"))
    place = folder / package
    shutil.copytree(_REPORTERS, place, ignore=shutil.ignore_patterns("__pycache__"))
    folder.chmod(0o700)
    canaries = {"ok": f"test_{secrets.token_hex(4)}", "fail": f"test_{secrets.token_hex(4)}"}
    (place / f"{module}.py").write_text(_CANARIES.format(**canaries))
    environ = {}
    # A Python that ignores PYTHONPATH would not find the plugin, and pytest would not start.
    if not any(runner.is_isolated for runner in named):
        environ = _python_environment(order, folder, f"{package}.pytest_plugin")
    hears_node = any(runner.runner == "node" for runner in named) and _is_new_node(order)
    if hears_node:
        environ["NODE_OPTIONS"] = _node_options(order, place, scripts)
    settings = {
        "reports": str(reports),
        "folder": str(order.folder),
        "project": str(order.project),
        "select": None if order.select is None else sorted(order.select),
        "canaries": dict(random.sample(sorted(canaries.items()), 2)),
        "module": module,
        "mark": f"_{secrets.token_hex(6)}",
        "environ": {name: order.environ.get(name) for name in environ},
    }
    (place / "settings.json").write_text(json.dumps(settings))
    return Planted(environ, folder, package, f"{package}.unittest_main", hears_node)


def _python_environment(order: Order, folder: Path, plugin: str) -> dict[str, str]:
    return {
        # Two ways, because the command itself may set one of them.
        "PYTEST_ADDOPTS": _join(" ", order.environ.get("PYTEST_ADDOPTS"), f"-p {plugin}"),
        "PYTEST_PLUGINS": _join(",", order.environ.get("PYTEST_PLUGINS"), plugin),
        "PYTHONPATH": _join(os.pathsep, str(folder), order.environ.get("PYTHONPATH")),
        # tox drops every variable that it is not told to pass on.
        "TOX_OVERRIDE": _join(
            ";",
            order.environ.get("TOX_OVERRIDE"),
            "testenv.pass_env+=PYTEST_ADDOPTS,PYTEST_PLUGINS,PYTHONPATH,TMPDIR,GUARD_*",
        ),
    }


def _join(separator: str, *parts: str | None) -> str:
    return separator.join(part for part in parts if part)


def _is_new_node(order: Order) -> bool:
    try:
        found = run(
            ["node", "--version"],
            environ=order.environ,
            time_limit=_NODE_SECONDS,
            cwd=order.scratch,
            most_stdout=4096,
            leaves_nothing=True,
        )
    except OSError:
        return False
    version = re.match(rb"v(\d+)\.", found.stdout)
    return version is not None and int(version[1]) >= _OLDEST_NODE


def _node_options(order: Order, place: Path, scripts: Mapping[str, str]) -> str:
    said = " ".join((order.command, *(text for text in scripts.values() if "--test" in text)))
    reporter = (place / "node_reporter.mjs").as_uri()
    words = [
        f"--require={json.dumps(str(place / 'node_preload.cjs'))}",
        f"--test-reporter={json.dumps(reporter)}",
        "--test-reporter-destination=/dev/null",
    ]
    # As many reporters as destinations: the command's own come after these.
    if "--test-reporter" not in said:
        words += ["--test-reporter=spec", "--test-reporter-destination=stdout"]
    elif "--test-reporter-destination" not in said:
        words.append("--test-reporter-destination=stdout")
    return _join(" ", order.environ.get("NODE_OPTIONS"), *words)
