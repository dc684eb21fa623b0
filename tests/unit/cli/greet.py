"""A verb of another package."""

from hub_ext.cli.report import Report

HELP = "greet"


def configure(parser):
    parser.add_argument("--name")


def run(args):
    return Report(text=f"hello {args.name}")
