"""The ``agspec`` command: parses and prints, nothing else. Commands load when they are called."""

from __future__ import annotations

import sys
from importlib import import_module

import click

from agspec import __version__
from agspec.errors import AgspecError

SECTIONS: dict[str, dict[str, tuple[str, str]]] = {
    "Traces": {
        "import": ("agspec.commands.import_:import_command", "Turn recorded agent sessions into a trace file."),
        "calibrate": ("agspec.commands.calibrate:calibrate_command", "Learn odds and caps from traces."),
        "inspect": ("agspec.commands.inspect:inspect_command", "Show what was learned: caps, survival, reliability."),
        "simulate": ("agspec.commands.simulate:simulate_command", "Replay traces against drafting methods, no engine."),
    },
    "Serving": {
        "serve": ("agspec.commands.serve:serve_command", "Serve a model with vLLM and agspec in it."),
        "doctor": ("agspec.commands.doctor:doctor_command", "Check a server as an agent will see it."),
        "top": ("agspec.commands.top:top_command", "Watch a server draft."),
        "record": ("agspec.commands.record:record_command", "Record what agents and any server say to each other."),
        "scaffold": ("agspec.commands.scaffold:scaffold_command", "Known agents; what a request is taken for."),
    },
    "Engine": {
        "bench": ("agspec.commands.bench:bench_command", "Replay traces on a real vLLM engine and time them."),
        "verify": ("agspec.commands.verify:verify_command", "Show that output is the same with and without agspec."),
        "profile": ("agspec.commands.profile:profile_command", "Measure what a step costs on this machine."),
        "model": ("agspec.commands.model:model_command", "The embedded model: prepare, verify, path."),
    },
    "Edits": {
        "copy": ("agspec.commands.copy:copy_command", "Edits as programs of copies: compile, resolve, ceiling."),
        "playground": (
            "agspec.commands.playground:playground_command",
            "An editor in the browser that completes.",
        ),
        "fim": ("agspec.commands.fim:fim_command", "Fill-in-the-middle prompts as each model family wants them."),
    },
    "Stores": {
        "corpus": ("agspec.commands.corpus:corpus_command", "Frozen corpora: build, info, verify, merge."),
    },
}
_PLACES = {name: place for section in SECTIONS.values() for name, (place, _) in section.items()}


class _Group(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_PLACES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _PLACES:
            return None
        module, name = _PLACES[cmd_name].split(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, text) for name, (_, text) in commands.items()])


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="agspec")
def group() -> None:
    """Retrieval drafts for coding agents on vLLM: same output, sooner."""


def main() -> None:
    """Run the command; an error of the user's is one line on stderr and exit code 1."""
    try:
        group()
    except AgspecError as error:
        click.echo(f"agspec: {error}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
