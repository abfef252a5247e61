"""Commands of which an unknown one is answered with what was probably meant."""

from __future__ import annotations

from difflib import get_close_matches

import click

__all__ = ["Group"]


class Group(click.Group):
    """Commands that tell what was probably meant by the name of none."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that is called."""
        name, known = args[0], self.list_commands(ctx)
        if name not in known and not ctx.resilient_parsing:
            raise click.UsageError(f"no such command: {name}; {self.instead_of(name, known)}", ctx)
        return super().resolve_command(ctx, args)

    def instead_of(self, name: str, known: list[str]) -> str:
        """What was probably meant by a name that is not known."""
        near = get_close_matches(name, known, n=1)
        return f"did you mean {near[0]}?" if near else self.like_none(name, known)

    def like_none(self, name: str, known: list[str]) -> str:
        """What is said of a name that is like none that is known."""
        return f"there are {', '.join(known)}"
