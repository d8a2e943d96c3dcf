"""Make the pictures of the docs from the story, and tell which of them are out of date.

What a picture was made from is kept beside it, because two browsers never draw the same pixels: the text of a terminal in the
picture itself, of a page its hash in `pages.json`.
"""

import html
import json
import os
import pty
import re
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from io import StringIO
from pathlib import Path
from unittest import mock

from tests.pictures.story import EVENING, MORNING
from tests.support import ROOT, TIME_LIMIT, write
from tests.support.browsers import open_browser
from tests.support.dashboards import serve

FOLDER = ROOT / "docs" / "pictures"
PAGES = FOLDER / "pages.json"
TERMINALS = {"loop.svg": "guard loop", "report.svg": "guard report"}
SCREENS = {"report": "review", "dashboard": "runs"}
"""Each page, and the part of it that ends its picture."""
_COLUMNS, _WIDTH = 118, 1180
_REDRAWN = re.compile(r"\r\x1b\[K[^\r\n]*(?=\r\x1b\[K)|\r\x1b\[K|\r(?=\n)")
_OTHER = re.compile(r'(?<=name="token" value=")[^"]+|(?<="/w/)[^/"]+|\b[0-9a-f]{10,40}\b')
"""What is another in each run: tokens, the workspace, and the ids of commits that a rescue made."""
_SECTION = re.compile(r'<section[^>]* id="{}".*?</section>', re.DOTALL)
_TERMINAL_ART = """\
<svg xmlns="http://www.w3.org/2000/svg" class="rich-terminal" viewBox="0 0 {terminal_width} {terminal_height}" role="img">
<title>$title</title>
<desc>$desc</desc>
<style>
.{unique_id}-matrix {{
  font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: {char_height}px; line-height: {line_height}px;
}}
.{unique_id}-title {{ font: bold 18px system-ui, sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">{matrix}</g>
</g>
</svg>
"""


@dataclass(frozen=True)
class Played:
    """The story when it was played: the environment of its user, and what its terminal showed."""

    folder: Path
    environ: dict[str, str]
    terminals: dict[str, str]

    @property
    def project(self) -> Path:
        return self.folder / "shop"


def play(folder: Path) -> Played:
    """Play the night, and look at it with `guard report`."""
    environ = environment(folder)
    story = [sys.executable, "-m", "tests.pictures.story", str(folder)]
    command = f"$ guard loop --prove 'python3 -m unittest' --prompt-file {folder}/prompt.md -- claude -p\n"
    shown = command + record(story, ROOT, environ)
    night = {**environ, "GUARD_NOW": MORNING.isoformat()}
    told = record([sys.executable, "-m", "guard", "report"], folder / "shop", night)
    until = told.rindex("\n", 0, told.index("Iterations:"))
    terminals = {"loop.svg": shown, "report.svg": f"$ guard report\n{told[:until]}"}
    return Played(folder, night, {name: _neutral(text, folder) for name, text in terminals.items()})


def environment(folder: Path) -> dict[str, str]:
    """Return the environment of a user with nothing but a name."""
    write(folder / ".gitconfig", "[user]\nname = Alex Doe\nemail = alex@example.com\n")
    return {
        "PATH": f"{folder}/bin:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "HOME": str(folder),
        "XDG_STATE_HOME": str(folder / "state"),
        "XDG_CONFIG_HOME": str(folder / "config"),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "TERM": "xterm-256color",
        "COLUMNS": str(_COLUMNS),
        "GIT_AUTHOR_DATE": EVENING.isoformat(),
        "GIT_COMMITTER_DATE": EVENING.isoformat(),
    }


def record(words: list[str], cwd: Path, environ: dict[str, str]) -> str:
    """Run a program on a terminal, and return what stays to be seen there."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        words, cwd=cwd, env=environ, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs
    ) as child:
        os.close(theirs)
        seen = b""
        # A terminal whose program has ended answers with an error, on Linux.
        with suppress(OSError):
            while piece := os.read(ours, 65536):
                seen += piece
        os.close(ours)
        child.wait(TIME_LIMIT)
    return _REDRAWN.sub("", seen.decode())


def _neutral(text: str, folder: Path) -> str:
    lines = text.replace(f"{folder}/bin/", "").replace(f"{folder}/", "").split("\n")
    return "\n".join(line.rstrip() for line in lines).strip("\n")


def page_texts(played: Played) -> dict[str, str]:
    """Return what the picture of each page shows, but for what is another in each run."""
    with mock.patch.dict(os.environ, played.environ, clear=True):
        page = played.folder / "night.html"
        words = [sys.executable, "-m", "guard", "report", "--html", str(page)]
        subprocess.run(words, cwd=played.project, check=True, capture_output=True)
        with serve(played.project) as served:
            start = served.ask("/").headers["location"]
            shown = served.ask(start).text
            styles = "".join(
                served.ask(f"/static/{name}").text for name in ("style.css", "dashboard.css")
            )
    texts = {"report": page.read_text(), "dashboard": styles + shown}
    return {
        name: _OTHER.sub("", _until(text, SCREENS[name])).replace(str(played.folder), "")
        for name, text in texts.items()
    }


def _until(text: str, part: str) -> str:
    found = re.search(_SECTION.pattern.format(part), text, re.DOTALL)
    assert found is not None, f"the page has no part {part}"
    return text[: found.end()]


def outdated(played: Played, folder: Path = FOLDER) -> list[str]:
    """Return the pictures that do not show what guard shows now."""
    hashes = json.loads((folder / PAGES.name).read_text())
    known = {name: _kept_text(folder / name) for name in TERMINALS}
    texts = page_texts(played)
    return [
        *(
            name
            for name, text in played.terminals.items()
            if _OTHER.sub("", _plain(text)) != _OTHER.sub("", known[name])
        ),
        *(f"{name}.png" for name in SCREENS if hashes.get(name) != _digest(texts[name])),
    ]


def _plain(text: str) -> str:
    from rich.text import Text

    return Text.from_ansi(text).plain


def _kept_text(file: Path) -> str:
    found = re.search(r"<desc>(.*?)</desc>", file.read_text(encoding="utf-8"), re.DOTALL)
    return html.unescape(found[1]) if found else ""


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def draw(played: Played, folder: Path = FOLDER) -> None:
    """Write all pictures."""
    folder.mkdir(exist_ok=True)
    for name, title in TERMINALS.items():
        write(folder / name, _terminal_picture(played.terminals[name], title))
    texts = page_texts(played)
    hashes = {name: _digest(text) for name, text in texts.items()}
    _draw_screens(played, folder)
    write(folder / PAGES.name, json.dumps(hashes, indent=2) + "\n")


def _terminal_picture(text: str, title: str) -> str:
    from rich.console import Console
    from rich.terminal_theme import DIMMED_MONOKAI
    from rich.text import Text

    console = Console(
        record=True, width=_COLUMNS, file=StringIO(), force_terminal=True, color_system="truecolor"
    )
    console.print(Text.from_ansi(text), soft_wrap=False)
    art = _TERMINAL_ART.replace("$title", html.escape(title))
    # Braces of the text are none of the form.
    art = art.replace("$desc", html.escape(_plain(text)).replace("{", "{{").replace("}", "}}"))
    return console.export_svg(
        title=title, theme=DIMMED_MONOKAI, code_format=art, unique_id=title.replace(" ", "-")
    )


def _draw_screens(played: Played, folder: Path) -> None:
    with (
        mock.patch.dict(os.environ, played.environ),
        serve(played.project) as served,
        open_browser() as browser,
    ):
        places = {"report": (played.folder / "night.html").as_uri(), "dashboard": served.address}
        for scheme in ("light", "dark"):
            for name, part in SCREENS.items():
                tab = browser.new_page(
                    color_scheme=scheme, viewport={"width": _WIDTH, "height": 800}
                )
                tab.goto(places[name])
                if name == "dashboard":
                    tab.wait_for_selector("#state.on")
                box = tab.locator(f"#{part}").bounding_box()
                assert box is not None
                height = box["y"] + box["height"] + 12
                tab.screenshot(
                    path=folder / (f"{name}.png" if scheme == "light" else f"{name}-{scheme}.png"),
                    full_page=True,
                    clip={"x": 0, "y": 0, "width": _WIDTH, "height": height},
                )
                tab.context.close()
