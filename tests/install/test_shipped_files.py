"""The files that ship with guard for the agents' programs."""

import json

from guard import __version__
from guard.install import plugins
from tests.support import ROOT


def test_the_plugin_folder_is_what_guard_would_write() -> None:
    shipped = ROOT / "hooks" / "claude-plugin"
    made = plugins.claude_plugin("guard")
    assert {
        str(path.relative_to(shipped)): path.read_text()
        for path in shipped.rglob("*")
        if path.is_file()
    } == made
    assert json.loads(made[plugins.CLAUDE_MANIFEST])["version"] == __version__
