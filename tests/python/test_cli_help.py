"""The help of each command: its options in groups, none of them twice, within 80 columns."""

import click
import pytest
from cli_process import here

from seglake.cli.application import program
from seglake.cli.help_groups import Command


def commands() -> dict[tuple[str, ...], click.Command]:
    """All commands by the words that call them."""
    context = click.Context(program)
    found: dict[tuple[str, ...], click.Command] = {}
    for name in program.list_commands(context):
        command = program.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            found.update({(name, own): command.commands[own] for own in command.commands})
        else:
            found[(name,)] = command
    return found


COMMANDS = commands()
COMMON = ["--format", "--dialect", "--key-file", "--index", "--sidecar", "--limits", "--spool-limit", "--debug"]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_each_option_is_in_one_group(words: tuple[str, ...]) -> None:
    command = COMMANDS[words]
    assert isinstance(command, Command)
    text = here(*words, "--help", env={"COLUMNS": "80"}).out
    options, examples = text.split("\n  Examples:\n")
    assert max(map(len, options.splitlines())) <= 80
    assert len(options.splitlines()) <= 90
    assert examples
    common = options.split("\nCommon options:\n")[1]
    assert "--help" in common
    for option in (parameter.opts[0] for parameter in command.params if isinstance(parameter, click.Option)):
        [line] = [line for line in options.splitlines() if line.startswith("  -") and option in line[:33].split()]
        assert (line in common) == (option in COMMON)


def test_what_chooses_records_is_together() -> None:
    text = here("cat", "--help").out
    choosing = text.split("\nChoosing records:\n")[1].split("\nCommon options:\n")[0]
    for option in ("--since", "--until", "--where", "--type", "--tenant", "--partition", "--get", "--limit", "--last"):
        assert f"\n  {option} " in f"\n{choosing}"
    assert "Choosing records" not in here("verify", "--help").out
    assert "Choosing records" not in here("log", "write", "--help").out
