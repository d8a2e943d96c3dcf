"""The command group, the error boundary, and the only place that makes a clock."""

import os
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from guard import __version__
from guard.context.output import Output, discard_unprintable, say
from guard.core.base.text import escape
from guard.errors import GuardError, Interrupted, ReaderGone
from guard.system.signals import interrupt_on_termination
from guard.system.startup import prepare

_OLDEST_BASH = (4, 4)
COMMANDS = {
    "activity": "Show whether an agent is at work, with the signs, the score and the verdict.",
    "agent": "Keep the registries of agents: register, update, list, await and kill agents.",
    "baseline": "Record the state of the repository; an iteration begins here.",
    "breaker": "Show and control the breaker, which stops a run that makes no progress.",
    "check": "Check how the iteration ended: complete, waiting, working, stalled or otherwise.",
    "classify": "Classify an agent's output and exit status.",
    "completion": "Print the completion script for a shell.",
    "config": "List every setting with its value and where the value comes from.",
    "dashboard": "Show runs in a browser while they go on: iterations, agents, plan, and the log.",
    "demo": "Play agent sessions that end in every way, in a scratch repository.",
    "doctor": "Check the machine and the workspace, and print a hint for each problem.",
    "event": "Record an event of the coordinator by its type.",
    "failures": "Show why audits failed, by kind and cause, and warn the tasks concerned.",
    "gate": "Hold back the end of a turn while helpers work, in an agent's event stream.",
    "github": "Run the steps of guard's GitHub action, and report a verdict to GitHub.",
    "help": "Show the help of a command or of a topic; `guard help exit-codes` explains the exit codes.",
    "hook": "Handle a hook call from an agent CLI or from git.",
    "init": "Write a short configuration file, with what guard found in the project and why.",
    "install": "Install guard's hooks in an agent's settings or a git repository.",
    "judge": "Judge an evidence document or a past check, and explain the verdict.",
    "log": "Print the events of the log.",
    "loop": "Run the agent again and again, until the work is done or a person is needed.",
    "metrics": "Print the figures of the completion check with their targets.",
    "notify": "Try the notices that runs, loops and plans send to a person.",
    "plan": "Coordinate agents on the tasks of a plan.",
    "probe": "Ask an agent's session about its state, once.",
    "prove": "Prove that committed work passes the project's own checks, and those that were there before.",
    "rebuild": "Rebuild every view from the log.",
    "report": "Report what runs did: what needs you now, what to review, and where hours and money went.",
    "rescue": "Commit the work that the iteration left uncommitted.",
    "restore": "Restore files from a snapshot, or list the snapshots.",
    "resume": "Write a prompt that brings a stalled agent back to work, and send it if asked.",
    "rollback": "Revert the commits of a completed task, and make the task available again.",
    "run": "Run the agent for one iteration, and check how it ended.",
    "schema": "Print a JSON Schema, or list all schemas.",
    "show": "Show one iteration: verdict, evidence, commits, what was rescued, cost, prompt and output.",
    "snapshot": "Save the work tree byte for byte, without changing it.",
    "snapshots": "List the snapshots of the work tree, the newest last.",
    "status": "Show every task with its agents, and which of them are alive, at work or stale.",
    "team": "Count an agent's helpers; guard holds back a completion while any of them counts.",
    "trust": "Trust the project's settings as they are in a commit, or show what is trusted.",
    "uninstall": "Remove guard's hooks from an agent's settings or a git repository.",
    "validate": "Validate state and configuration files against their schemas.",
    "verify": "Verify the whole log, and compare each view with it.",
    "where": "Print where guard keeps the state of this repository.",
}
GROUPS = {
    "Run": ("demo", "init", "run", "loop", "check", "baseline", "prove", "breaker", "trust"),
    "Look": ("status", "report", "show", "dashboard", "activity", "metrics", "notify"),
    "Save": ("snapshot", "snapshots", "restore", "rescue"),
    "Agents": ("agent", "team", "gate", "resume"),
    "Plans": ("plan", "event", "failures", "rollback"),
    "Hooks": ("install", "uninstall", "hook", "github"),
    "Inspect": (
        *("doctor", "config", "where", "log", "verify", "rebuild", "validate", "schema", "judge"),
        *("classify", "probe", "completion", "help"),
    ),
}
"""The commands as `guard --help` shows them, each in one group."""
_LONGEST_LINE = 66
_EXIT_CODES = """\
  0 complete, 1 no, 2 wrong usage, 3 a bug, 4 repository or configuration,
  5 state, 6 store busy; 10 stalled, 11 waiting, 12 working, 13 limited,
  14 a person is needed, 15 probe or proof failed, 16 interrupted, 17 refuted,
  20 breaker open; 130 Ctrl-C
"""


# A command's module is loaded when the command is called. The names and first help lines are here, so that `guard --help`
# loads no command; a test compares them with the commands' own help.
class LazyGroup(click.Group):
    """Knows its commands by name, and loads a command when it is called."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command = import_module(f"guard.commands.{name}").command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and args[0][:1].isalnum():
            raise click.UsageError(no_such_command(args[0]), ctx)
        return super().resolve_command(ctx, args)

    def get_help(self, ctx: click.Context) -> str:
        # Click would load shutil, and with it four compression libraries, to learn the width.
        ctx.terminal_width = ctx.terminal_width or _help_width()
        return super().get_help(ctx)

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, COMMANDS))
        for title, names in GROUPS.items():
            rows = [f"  {name:{width}}  {_one_line(COMMANDS[name])}\n" for name in names]
            formatter.write(f"\n{title}:\n{''.join(rows)}")

    def format_epilog(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Exit codes (`guard help exit-codes` explains them)"):
            formatter.write(_EXIT_CODES)


def _help_width() -> int:
    """Return the width that click takes: the terminal's less two, between 50 and 78."""
    named = os.environ.get("COLUMNS", "")
    try:
        width = int(named) if named.isascii() and named.isdigit() else 0
        width = width or os.get_terminal_size(sys.__stdout__.fileno() if sys.__stdout__ else 1)[0]
    except (OSError, ValueError):
        width = 80
    return max(min(width or 80, 80) - 2, 50)


def _one_line(text: str) -> str:
    # What stands after the first comma or colon is for the command's own help.
    return text[:-1] if len(text) <= _LONGEST_LINE + 1 else re.split("[,:;]", text)[0].rstrip(".")


def no_such_command(name: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, COMMANDS, n=3, cutoff=0.6)
    meant = " or ".join(f"`guard {one}`" for one in near)
    return f"no such command {name!r}" + (f"; did you mean {meant}?" if near else "")


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--repo",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    envvar="GUARD_REPO",
    help="The repository; by default the one around the current folder.",
)
@click.option(
    "--workspace",
    metavar="DIR",
    help="Guard's state: a folder, or postgresql://HOST/DATABASE; by default what `guard where` prints. Also GUARD_WORKSPACE.",
)
@click.option(
    "--config",
    type=click.Path(dir_okay=False, path_type=Path),
    envvar="GUARD_CONFIG",
    help="Read this configuration file instead of the project's and the user's.",
)
@click.option(
    "-v", "--verbose", count=True, help="Print more on stderr, and the traceback of a bug."
)
@click.option("-q", "--quiet", is_flag=True, help="Print only errors on stderr.")
@click.version_option(__version__, prog_name="guard")
@click.pass_context
def guard(
    ctx: click.Context,
    repo: Path | None,
    workspace: str | None,
    config: Path | None,
    verbose: int,
    quiet: bool,
) -> None:
    """Find out what really happened when a coding agent's session ended, and keep its work safe."""
    from guard.context.invocation import Invocation
    from guard.system.clock import make_clock

    ctx.obj = Invocation(
        repo=repo,
        workspace_option=workspace,
        config_file=config,
        clock=make_clock(),
        output=Output(-1 if quiet else verbose),
    )


def _offer_completion() -> None:
    """Replace click's completion for bash, which starts the first `bash` on PATH to learn its version."""
    from click.shell_completion import BashComplete, ShellComplete, add_completion_class

    from guard.system.processes import run_tool

    class SafeBashComplete(BashComplete):
        def source(self) -> str:
            version = run_tool("bash", "--norc", "-c", 'echo "${BASH_VERSION}"').stdout
            numbers = tuple(int(number) for number in re.findall(rb"\d{1,9}", version)[:2])
            if numbers < _OLDEST_BASH:
                say("completion needs bash 4.4 or newer, which is not found on PATH")
            return ShellComplete.source(self)

    add_completion_class(SafeBashComplete)


def main() -> None:
    """Run guard and exit with its exit code."""
    prepare()
    if "completion" in sys.argv[1:] or "_GUARD_COMPLETE" in os.environ:
        _offer_completion()
    verbose = any(word.startswith("-v") or word == "--verbose" for word in sys.argv[1:])
    with interrupt_on_termination():
        code = _run_guarded(verbose)
    discard_unprintable()
    sys.exit(code)


def _run_guarded(verbose: bool) -> int:
    try:
        code = guard.main(prog_name="guard", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except GuardError as error:
        if isinstance(error, Interrupted):
            say("")  # The terminal shows ^C.
        return _report_failure(error.message, error.hint, error.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        say(error.format_message())
        return 2
    except click.UsageError as error:
        return _report_misuse(error)
    except click.ClickException as error:
        return _report_failure(error.format_message(), None, 2)
    except (KeyboardInterrupt, click.Abort):
        return _report_failure("interrupted", None, Interrupted.exit_code)
    except ReaderGone:
        return 0
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        return _report_failure(
            f"{place}{error.strerror or error}", "`guard doctor` checks the machine", 6
        )
    except (
        Exception
    ) as error:  # The boundary: any other exception is a bug, and is reported as one.
        return _report_bug(error, verbose)


def _report_failure(message: str, hint: str | None, code: int) -> int:
    Output().failure(message, hint)
    return code


def _report_misuse(error: click.UsageError) -> int:
    where = error.ctx.command_path if error.ctx else "guard"
    # Click puts choices on separate lines.
    message = " ".join(error.format_message().split())
    return _report_failure(message, f"`{where} --help` shows the usage", 2)


def _report_bug(error: Exception, verbose: bool) -> int:
    if verbose:
        import traceback

        for line in "".join(traceback.format_exception(error)).splitlines():
            say(escape(line))
    frame: Any = error.__traceback__
    while frame and frame.tb_next:
        frame = frame.tb_next
    place = (
        f"{os.path.basename(frame.tb_frame.f_code.co_filename)}:{frame.tb_lineno}" if frame else "?"
    )
    return _report_failure(
        f"a bug in guard: {type(error).__name__}: {error} ({place})",
        "run the command again with -v for the traceback, and report the bug",
        3,
    )
