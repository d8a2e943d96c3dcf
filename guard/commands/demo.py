"""`guard demo`."""

import shutil
import tempfile
from pathlib import Path
from time import monotonic

import click

from guard.context.invocation import Invocation
from guard.context.output import colour
from guard.core.base.text import escape
from guard.errors import WrongUsage


@click.command("demo")
@click.option("--state", is_flag=True, help="Play the second part: damaged state.")
@click.option("--plan", is_flag=True, help="Play the third part: a plan that is worked off.")
@click.option("--keep", is_flag=True, help="Keep the scratch folder, and print its path.")
@click.pass_obj
def command(guard: Invocation, state: bool, plan: bool, keep: bool) -> None:
    """Play agent sessions that end in every way, in a scratch repository.

    The demo needs only git, and changes nothing outside its scratch folder. Exit code 1 if a scene does not go as
    expected.
    """
    from guard.demo.plays import IterationsPlay, PlanPlay, StatePlay

    if state and plan:
        raise WrongUsage("--state and --plan are two parts of the demo", "leave one of them out")

    begun = monotonic()
    folder = Path(tempfile.mkdtemp(prefix="guard-demo-"))
    play = PlanPlay if plan else StatePlay if state else IterationsPlay
    try:
        play(folder, lambda line: guard.output.result(_style(line))).play()
    finally:
        if keep:
            guard.output.result(f"\nkept: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    took = monotonic() - begun
    guard.output.result(f"\n{colour('All scenes went as expected', 'ok')} ({took:.1f} s).")


def _style(line: str) -> str:
    shown = "\n".join(escape(part) for part in line.split("\n"))
    return colour(shown, "bold") if line.startswith(("\n==", "$")) else shown
