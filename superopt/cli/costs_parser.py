"""Arguments of `superopt calibrate` and of `superopt costs …`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

COSTS = "measured costs as files: list, export, merge"
AlsoPath = Callable[[str], Path]


def add_calibrate_arguments(parser: argparse.ArgumentParser, path: AlsoPath) -> None:
    parser.add_argument("models", type=path, nargs="+", metavar="MODEL.onnx")
    parser.add_argument(
        "--costs", type=path, metavar="FILE",
        help="where times are kept, and taken from where they are there already (default: your own cost file)",
    )  # fmt: skip
    parser.add_argument(
        "--time-limit", type=float, default=600.0, metavar="SECONDS",
        help="seconds to measure; what comes first is worth most, what was measured is kept (default 600.0)",
    )  # fmt: skip


def add_costs_command(commands: Any, path: AlsoPath) -> None:
    costs = commands.add_parser("costs", help=COSTS, description=f"Costs: {COSTS}.")
    actions = costs.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = _action(actions, "list", "devices, drivers and runtimes that a file tells of, and how much of each")
    listing.add_argument("files", type=path, nargs=1, metavar="FILE")
    export = _action(actions, "export", "a file as text: the same for the same contents, to be shipped and reviewed")
    export.add_argument("files", type=path, nargs=1, metavar="FILE")
    merge = _action(actions, "merge", "several files as one; where two answer the same question, the first does")
    merge.add_argument("files", type=path, nargs="+", metavar="FILE")
    for action, help in (
        (export, "where the text goes"),
        (merge, "where the result goes: as text if its name ends in .json, else as a file that can be added to"),
    ):
        action.add_argument("-o", "--output", type=path, required=True, metavar="OUT", help=help)
        action.add_argument(
            "--device", default="", metavar="NAME", help="only devices, drivers and runtimes with this in their name"
        )
    for action in (listing, export, merge):
        action.add_argument("--report", type=path, metavar="R.json", help="write what the file holds as JSON")
        action.add_argument("--json", action="store_true", help="print it to stdout as JSON")


def _action(actions: Any, name: str, help: str) -> argparse.ArgumentParser:
    parser = actions.add_parser(name, help=help, description=f"{help[0].upper()}{help[1:]}.")
    parser.set_defaults(quiet=False)
    return parser
