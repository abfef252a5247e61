"""`seglake completion`: what a shell reads to complete commands, options and their values."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from . import options
from .help_groups import Command

_EXAMPLES = """
\b
Examples:
  eval "$(seglake completion bash)"                      in ~/.bashrc
  eval "$(seglake completion zsh)"                       in ~/.zshrc
  seglake completion fish > ~/.config/fish/completions/seglake.fish
"""


@click.command(cls=Command, epilog=_EXAMPLES, short_help="Print the script that completes for a shell.")
@click.argument("shell", metavar="bash|zsh|fish", type=click.Choice(["bash", "zsh", "fish"]))
@options.debug
@click.pass_context
def command(context: click.Context, shell: str) -> int:
    """Print a script with which a shell completes commands, options, their values, columns and files.

    Let the shell read it when it starts, as below.

    Exit status: 0 printed, 2 there is no such shell.
    """
    script = get_completion_class(shell)
    assert script is not None
    click.echo(script(context.find_root().command, {}, "seglake", "_SEGLAKE_COMPLETE").source(), nl=False)
    return 0
