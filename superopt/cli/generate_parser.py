"""Arguments of `superopt generate-rules`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from superopt.cli.rule_parser import add_specs

GENERATE = "find rules by machine: enumerate graphs, fingerprint them, prune, prove, write"
EXAMPLES = """\
examples:
  superopt generate-rules --recipe linear --out found
  superopt generate-rules --recipe my-recipe.toml --max-ops 3 --time-limit 600 --out found
  superopt generate-rules --from bert.onnx gpt2.onnx --out mined
  superopt rules check found
A run that was stopped goes on where it was: what is proved is in OUT/ledger.jsonl.
"""


def add_generate_command(commands: Any) -> None:
    parser = commands.add_parser(
        "generate-rules", help=GENERATE, description=f"{GENERATE[0].upper()}{GENERATE[1:]}.", epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument(
        "--recipe", action="append", default=[], metavar="NAME",
        help="a shipped recipe or a path to a .toml file; may be repeated (default: every shipped one)",
    )  # fmt: skip
    parser.add_argument(
        "--from", dest="models", type=Path, nargs="+", default=[], metavar="MODEL",
        help="instead: recognize the parts of these models (files, or folders of them) by what they compute",
    )  # fmt: skip
    parser.add_argument(
        "--list", action="store_true", help="name the shipped recipes and what they enumerate, and stop"
    )
    parser.add_argument("--max-ops", type=_positive, metavar="N", help="operators in a graph (default: the recipe's)")
    parser.add_argument(
        "--ops",
        default="",
        metavar="A,B",
        help="only these operators of the recipe; with --from, only parts that have one of them",
    )
    parser.add_argument("--scene", action="append", default=[], metavar="NAME", help="only these scenes of the recipe")
    parser.add_argument(
        "--time-limit", type=float, metavar="S", help="stop looking after S seconds, and write what is proved"
    )
    parser.add_argument(
        "--seconds", type=float, default=20.0, metavar="S", help="CPU seconds for each proof (default 20)"
    )
    parser.add_argument(
        "--candidates", type=_count, default=250, metavar="N",
        help="most that the prover is asked about for one scene, the smallest first; 0: only enumerate and count "
        "(default 250)",
    )  # fmt: skip
    parser.add_argument(
        "--known", type=Path, action="append", default=[], metavar="PATH",
        help="file or folder of proved rules: what they say is not found again; may be repeated "
        "(with --from, the shipped ones unless others are named)",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the random numbers (default 0)")
    parser.add_argument("--workers", type=_positive, default=2, metavar="N", help="processes (default 2)")
    parser.add_argument(
        "--memory", type=float, default=2.0, metavar="GB", help="for fingerprints; the rest goes to disk (default 2)"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("generated"),
        metavar="DIR",
        help="folder for RECIPE.rules, or mined.rules (default: generated)",
    )
    parser.add_argument("--quiet", action="store_true", help="no progress; errors only")
    parser.add_argument(
        "--engine", choices=("local", "ray"), default="local", help="where the work is done (default local)"
    )
    parser.add_argument("--address", metavar="HOST:PORT", help="of the Ray cluster (default: the one that runs here)")
    add_specs(parser)


def _count(text: str) -> int:
    return 0 if text == "0" else _positive(text)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number
