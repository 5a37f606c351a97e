"""Arguments of `superopt serve`, `superopt token …` and `superopt remote …`."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from server.settings import CHOICES, Settings, flag

SERVE = "optimize models over HTTP; docs/service.md has the API"
TOKEN = "who may use the service: create, list, revoke"
REMOTE = "optimize a model on a service"
_WHERE = ("data", "database")
_KINDS: dict[str, Callable[[str], Any]] = {"int": int, "float": float}


def add_service_commands(commands: Any, add_options: Callable[[argparse.ArgumentParser], None]) -> None:
    """`add_options` adds those options of `optimize` that a service takes."""
    serve = _command(commands, "serve", SERVE)
    _add_settings(serve, [f.name for f in dataclasses.fields(Settings)])

    token = commands.add_parser("token", help=TOKEN, description=f"Tokens: {TOKEN}.")
    actions = token.add_subparsers(dest="action", metavar="ACTION", required=True)
    create = _command(actions, "create", "print a new token; it cannot be shown again")
    create.add_argument("--tenant", default="default", metavar="NAME", help="whose jobs it opens (default default)")
    create.add_argument("--label", default="", metavar="TEXT", help="for people, in the list")
    listing = _command(actions, "list", "ids, tenants, labels; never the tokens themselves")
    revoke = _command(actions, "revoke", "make a token worthless")
    revoke.add_argument("id", metavar="ID", help="as in the list")
    for one in (create, listing, revoke):
        _add_settings(one, _WHERE)

    remote = commands.add_parser("remote", help=REMOTE, description=f"{REMOTE[0].upper()}{REMOTE[1:]}.")
    actions = remote.add_subparsers(dest="action", metavar="ACTION", required=True)
    optimize = _command(actions, "optimize", "send a model, wait, and fetch the result")
    optimize.add_argument("model", type=Path, metavar="MODEL.onnx")
    optimize.add_argument("-o", "--output", type=Path, required=True, metavar="OUT.onnx", help="where the result goes")
    optimize.add_argument("--url", required=True, metavar="URL", help="of the service, as in http://localhost:8000")
    optimize.add_argument(
        "--token-file", type=Path, metavar="FILE", help="holds the bearer token; without it, SUPEROPT_TOKEN does"
    )
    add_options(optimize)


def _command(commands: Any, name: str, help: str) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=help, description=f"{help[0].upper()}{help[1:]}.")
    parser.set_defaults(quiet=False)
    return parser


def _add_settings(parser: argparse.ArgumentParser, names: Iterable[str]) -> None:
    """Flags without a default: what is not given is taken from the environment or the file."""
    parser.add_argument("--config", type=Path, metavar="FILE", help="file of settings (TOML)")
    for field in dataclasses.fields(Settings):
        if field.name not in names:
            continue
        kind = str(field.type)
        shown = "" if field.default == "" else f" (default {field.default})"
        help = f"{field.metadata['help']}{shown}".replace("%", "%%")
        if kind in CHOICES:
            parser.add_argument(flag(field.name), choices=CHOICES[kind], help=help)
        else:
            metavar = field.metadata["metavar"]
            parser.add_argument(flag(field.name), type=_KINDS.get(kind, str), metavar=metavar, help=help)
