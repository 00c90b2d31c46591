"""`lamina completion`: completes the names of commands and options in a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from lamina.commands.command import command, lamina
from lamina.terminal.render import Output


@command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(output: Output, shell: str) -> None:
    """Print a script that completes commands and options in SHELL.

    For bash: eval "$(lamina completion bash)". For zsh, the same with zsh. For fish: lamina completion fish | source.
    """
    of_shell = get_completion_class(shell)
    assert of_shell is not None
    output.text(of_shell(lamina, {}, "lamina", "_LAMINA_COMPLETE").source())
