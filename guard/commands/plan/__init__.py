"""`guard plan`: one module per group of verbs."""

from importlib import import_module

import click

from guard.commands.plan import land, prompt, restart, run, show, support, tasks, upkeep

_FIRST = ("load", "show", "run", "land", "answer", "retry", "rollback", "prompt", "adopt", "reset")


class PlanGroup(click.Group):
    """Lists the verbs that people use before those by which programs keep the plan; `rollback` is `guard rollback`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*super().list_commands(ctx), "rollback"]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name != "rollback":
            return super().get_command(ctx, name)
        command = import_module("guard.commands.rollback").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        names = self.list_commands(ctx)
        first = [name for name in _FIRST if name in names]
        later = [name for name in names if name not in first]
        for title, verbs in (("Commands", first), ("For orchestrators", later)):
            limit = formatter.width - 6 - max(map(len, verbs))
            rows = [
                (name, verb.get_short_help_str(limit))
                for name in verbs
                if (verb := self.get_command(ctx, name)) is not None
            ]
            with formatter.section(title):
                formatter.write_dl(rows)


@click.group("plan", cls=PlanGroup)
def command() -> None:
    """Coordinate agents on the tasks of a plan."""


for verb in (
    show.load,
    show.show,
    show.next_task,
    show.graph,
    run.run,
    prompt.prompt,
    tasks.dispatch,
    tasks.ready,
    tasks.audit,
    tasks.checkpoint,
    tasks.lost,
    tasks.done,
    support.remediate,
    support.health,
    support.ask,
    support.answer,
    support.assess,
    support.analyst,
    support.expand,
    support.delegate,
    support.support,
    land.land,
    restart.adopt,
    restart.reset,
    restart.retry,
    upkeep.ingest,
    upkeep.outbox,
    upkeep.usage,
    upkeep.tick,
):
    command.add_command(verb)
