"""`stepdown schema`."""

from __future__ import annotations

import json

import click


@click.command("schema")
@click.option("--reference", "as_page", is_flag=True, help="The same as a page for people, in Markdown.")
def command(as_page: bool) -> None:
    """Print the JSON schema of a config file, for editors.

    With `stepdown schema > stepdown.schema.json` and the first line `# yaml-language-server:
    $schema=stepdown.schema.json`, an editor completes and checks the keys of a config.
    """
    from stepdown.builder.config.reference import reference, schema

    click.echo(reference() if as_page else json.dumps(schema(), indent=2), nl=not as_page)
