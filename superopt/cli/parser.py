"""Arguments of every command. The options of `optimize` come from `superopt.options`, word for word."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from superopt.cli.costs_parser import add_calibrate_arguments, add_costs_command
from superopt.cli.generate_parser import add_generate_command
from superopt.cli.rule_parser import add_rule_commands, add_specs
from superopt.cli.service_parser import add_service_commands
from superopt.errors import BadOption
from superopt.options import Options, parse_dim, parse_shape
from superopt.version import __version__

EXIT_CODES = """exit codes:
  0    done, also when nothing could be improved
  1    done, but a check failed, models differ, or the working process died (the original was kept)
  2    bad input or usage; nothing was written
  3    a limit on time, memory or size was hit (the original was kept)
  130  interrupted"""

# Option type as written in `superopt.options`, and how its text is read.
_READERS: dict[str, Callable[[str], Any]] = {
    "int": int, "float": float, "str": str, "Path | None": lambda text: _path(text)
}  # fmt: skip
_CHOICES = {
    "Target": ("auto", "cpu", "cuda"),
    "Accept": ("faster", "not-slower"),
    "Allow": ("contrib", "standard"),
    "Deploy": ("search", "fixed"),
}
CHECKING = ("target", "seed", "shape", "dim", "inputs", "threads", "time_limit", "memory_limit")
TIMING = (*CHECKING, "budget", "costs")
CALIBRATING = (
    "target", "alpha", "allow", "options", "rules", "candidates", "seed", "shape", "dim", "threads", "memory_limit",
)  # fmt: skip
LOCAL = ("rules", "inputs", "costs", "device", "keep_rules")
"""Options that name files, or what is in one, which no service opens."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        print(f"superopt: {message}\nTry: {self.prog} --help", file=sys.stderr)
        raise SystemExit(2)


def build_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="superopt",
        description="Makes ONNX models faster without changing what they compute.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"superopt {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    optimize = _command(commands, "optimize", "rewrite a model, check and time it against the original")
    optimize.add_argument("model", type=_path, metavar="IN.onnx")
    optimize.add_argument(
        "-o", "--output", type=_path, metavar="OUT.onnx", help="where the result goes; never IN itself"
    )
    optimize.add_argument(
        "--html", type=_path, metavar="R.html", help="write one page: what changed, what it gained, why it is right"
    )
    optimize.add_argument(
        "--explain", action="append", default=[], metavar="NODE[:RULE]",
        help="say why a node, by its name or that of a value it computes, was not rewritten; without -o and --dry-run "
        "nothing is searched and nothing written",
    )  # fmt: skip
    optimize.add_argument("--dry-run", action="store_true", help="do and report everything, write no model")
    optimize.add_argument(
        "--turn", type=_path, metavar="FILE",
        help="for several runs on one device that name the same file: one at a time measures, others work beside it",
    )  # fmt: skip
    _add_options(optimize, [f.name for f in dataclasses.fields(Options)])
    _add_printing(optimize)

    check = _command(commands, "check", "do two models compute the same? 0 equal, 1 different, 2 could not run")
    check.add_argument("model", type=_path, metavar="A.onnx")
    check.add_argument("other", type=_path, metavar="B.onnx")
    _add_options(check, CHECKING)
    _add_printing(check)

    bench = _command(commands, "bench", "time models against each other, interleaved; the first is the yardstick")
    bench.add_argument("models", type=_path, nargs="+", metavar="A.onnx")
    _add_options(bench, TIMING)
    _add_printing(bench)

    diff = _command(commands, "diff", "compare the structure of two models: 0 the same, 1 different, 2 bad input")
    diff.add_argument("model", type=_path, metavar="A.onnx")
    diff.add_argument("other", type=_path, metavar="B.onnx")
    diff.add_argument("--all", action="store_true", help="list every changed region, also those of one shape")
    diff.add_argument("--html", type=_path, metavar="D.html", help="write one page with both graphs side by side")
    _add_options(diff, ("time_limit", "memory_limit"))
    _add_printing(diff)

    audit = _command(commands, "audit", "was a result made as its report says? 0 confirmed, 1 not, 2 bad input")
    audit.add_argument("model", type=_path, metavar="ORIGINAL.onnx")
    audit.add_argument("other", type=_path, metavar="OPTIMIZED.onnx")
    audit.add_argument("audited", type=_path, metavar="REPORT.json", help="as written by optimize --report")
    _add_options(audit, ("rules", "time_limit", "memory_limit"))
    add_specs(audit)
    _add_printing(audit)

    calibrate = _command(commands, "calibrate", "measure a device for models that are to be optimized for it elsewhere")
    add_calibrate_arguments(calibrate, _path)
    _add_options(calibrate, CALIBRATING)
    _add_printing(calibrate)

    add_costs_command(commands, _path)
    add_rule_commands(commands)
    add_generate_command(commands)
    add_service_commands(commands, _add_remote_options)
    schema = _command(commands, "schema", "print the JSON Schema of the report")
    schema.set_defaults(quiet=True)
    return parser


def _command(commands: Any, name: str, help: str) -> argparse.ArgumentParser:
    return commands.add_parser(
        name, help=help, description=f"{help[0].upper()}{help[1:]}.", epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip


def _add_printing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--report", type=_path, metavar="R.json", help="write the report (schema: superopt schema)")
    parser.add_argument("--json", action="store_true", help="print the report to stdout")
    parser.add_argument("--quiet", action="store_true", help="no table, no progress; errors only")


def _add_options(parser: argparse.ArgumentParser, names: Sequence[str]) -> None:
    for field in dataclasses.fields(Options):
        if field.name not in names:
            continue
        flag, help = f"--{field.name.replace('_', '-')}", str(field.metadata["help"]).replace("%", "%%")
        kind = str(field.type)
        if kind.startswith("Mapping"):
            read = parse_shape if field.name == "shape" else parse_dim
            parser.add_argument(
                flag, action="append", default=[], type=_reader(read), metavar=field.metadata["metavar"], help=help
            )
            continue
        if kind.startswith("tuple"):
            parser.add_argument(
                flag, action="append", default=[], type=_path, metavar=field.metadata["metavar"], help=help
            )
            continue
        if kind == "bool":
            parser.add_argument(flag, action=argparse.BooleanOptionalAction, default=field.default, help=help)
            continue
        shown = "" if field.default in (None, "") else f" (default {field.default})"
        if kind in _CHOICES:
            parser.add_argument(flag, choices=_CHOICES[kind], default=field.default, help=help + shown)
        else:
            parser.add_argument(
                flag, type=_READERS[kind], default=field.default, metavar=field.metadata["metavar"], help=help + shown
            )


def _add_remote_options(parser: argparse.ArgumentParser) -> None:
    _add_options(parser, [f.name for f in dataclasses.fields(Options) if f.name not in LOCAL])
    _add_printing(parser)


def _path(text: str) -> Path:
    """Jobs and reports are JSON, which holds no name that is not UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a file name in UTF-8") from None
    return Path(text)


def _reader(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """argparse shows a reader's own words only for its own error type."""

    def wrapped(text: str) -> Any:
        try:
            return read(text)
        except BadOption as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return wrapped


def options_of(arguments: argparse.Namespace) -> Options:
    given = {f.name: getattr(arguments, f.name) for f in dataclasses.fields(Options) if hasattr(arguments, f.name)}
    for name in ("shape", "dim"):
        given[name] = _as_mapping(name, given.get(name, []))
    given["rules"] = tuple(given.get("rules", ()))
    return Options(**given)


def _as_mapping(name: str, pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise BadOption(f"--{name} {key}: given twice")
        found[key] = value
    return found
