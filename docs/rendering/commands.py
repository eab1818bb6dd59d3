"""The command line, from the commands themselves."""

import inspect

import click

from gatherum.cli import commands

from .tables import table


def render() -> str:
    """Return a section for each command."""
    top = click.Context(commands, info_name="gatherum")
    return "\n".join(
        _section(click.Context(command, info_name=name, parent=top))
        for name, command in sorted(commands.commands.items())
    )


def _section(context: click.Context) -> str:
    command = context.command
    usage = " ".join(command.collect_usage_pieces(context))
    parts = [f"### gatherum {context.info_name}", f"```text\n{context.command_path} {usage}\n```"]
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        words = " ".join(paragraph.replace("\b", "").split())
        example = words.removeprefix("Example: ")
        parts.append(words if example == words else f"```sh\n{example}\n```")
    options = [
        record for p in command.get_params(context) if (record := p.get_help_record(context))
    ]
    parts.append(
        table(("option", "what it does"), [(f"`{o}`", _words(text)) for o, text in options])
    )
    return "\n\n".join(parts) + "\n"


def _words(text: str) -> str:
    """Keep the brackets that click puts around defaults from being links."""
    return text.replace("[", "\\[").replace("]", "\\]")
