"""The files that ship with guard for the agents' programs."""

import json

from guard import __version__
from guard.install import plugin
from tests.support import ROOT


def test_the_plugin_folder_is_what_guard_would_write() -> None:
    shipped = ROOT / "hooks" / "claude-plugin"
    made = plugin.texts("guard")
    assert {
        str(path.relative_to(shipped)): path.read_text()
        for path in shipped.rglob("*")
        if path.is_file()
    } == made
    assert json.loads(made[plugin.MANIFEST])["version"] == __version__
