"""Render the page on the command line from the help of the commands."""

import inspect

import click

from gatherum._command.cli import commands

from .tables import table


def render() -> str:
    """Return a section for each command."""
    top = click.Context(commands, info_name="gatherum", **commands.context_settings)
    return "\n".join(
        _section(click.Context(command, info_name=name, parent=top))
        for name, command in sorted(commands.commands.items())
    )


def _section(context: click.Context) -> str:
    command = context.command
    usage = " ".join(command.collect_usage_pieces(context))
    parts = [f"### gatherum {context.info_name}", f"```text\n{context.command_path} {usage}\n```"]
    parts += map(_paragraph, inspect.cleandoc(command.help or "").split("\n\n"))
    records = [option.get_help_record(context) for option in command.get_params(context)]
    options = [(f"`{record[0]}`", _words(record[1])) for record in records if record and record[1]]
    parts.append(table(("option", "what it does"), options))
    return "\n\n".join(parts) + "\n"


def _paragraph(text: str) -> str:
    words = " ".join(text.split())
    example = words.removeprefix("Example: ")
    return words if example == words else f"```sh\n{example}\n```"


def _words(text: str) -> str:
    """Escape the brackets around defaults, so that they are not read as links."""
    return text.replace("[", "\\[").replace("]", "\\]")
