"""The help of a command: its own options, those that choose records, and those that many commands have."""

from __future__ import annotations

from typing import Final

import click

_OWN: Final = "Options"
# By the names that commands have for them.
_GROUPS: Final = {
    "Choosing records": (
        *("since", "until", "where", "types", "partitions", "tenants", "start_offset", "end_offset"),
        *("at", "ids", "limit", "last"),
    ),
    "Common options": ("format", "dialect", "key", "index", "sidecar", "limits", "spool_limit", "debug", "help"),
}
_GROUP_OF: Final = {name: group for group, names in _GROUPS.items() for name in names}


class Command(click.Command):
    """A command whose help has its options in groups."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options that there are of each group."""
        groups: dict[str, list[tuple[str, str]]] = {group: [] for group in (_OWN, *_GROUPS)}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if record is not None:
                name = "help" if "--help" in parameter.opts else parameter.name or ""
                groups[_GROUP_OF.get(name, _OWN)].append(record)
        for title, records in groups.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)
