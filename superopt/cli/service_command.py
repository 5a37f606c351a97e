"""What `superopt serve`, `superopt token …` and `superopt remote …` call and print."""

from __future__ import annotations

import argparse
import dataclasses
import os
import time
from pathlib import Path

from rich.console import Console

from server.settings import Settings, read_settings
from superopt.cli.live import Live
from superopt.cli.tables import show_report
from superopt.client import Client
from superopt.engine.job import Stage
from superopt.errors import BadInput, BadModel, BadOption
from superopt.ir.files import refuse_unwritable
from superopt.options import Options
from superopt.report import Report

TOKEN = "SUPEROPT_TOKEN"


def run_serve(arguments: argparse.Namespace) -> int:
    from server.supervise import Supervisor  # the service's libraries are loaded for this alone

    Supervisor(_settings(arguments)).run()
    return 0


def run_token(arguments: argparse.Namespace) -> int:
    from server.database import open_database  # the service's libraries are loaded for this alone
    from server.tokens import Tokens

    database = open_database(_settings(arguments).database_url)
    try:
        tokens = Tokens(database)
        if arguments.action == "create":
            print(tokens.create(arguments.tenant, arguments.label))
        elif arguments.action == "revoke":
            if not tokens.revoke(arguments.id):
                raise BadInput(f"no valid token has the id {arguments.id!r}; `superopt token list` shows them")
        else:
            for token in tokens.all():
                created = time.strftime("%Y-%m-%d", time.gmtime(token.created))
                state = "valid" if token.revoked is None else "revoked"
                print(f"{token.id}  {created}  {state:8s} {token.tenant:20s} {token.label}")
    finally:
        database.close()
    return 0


def run_remote(arguments: argparse.Namespace, options: Options, console: Console) -> tuple[Report, int]:
    """Options that were left as they are stay the service's business."""
    model, out = arguments.model, arguments.output
    if not model.is_file():
        raise BadModel(f"{model}: no such file")
    if out.exists() and out.samefile(model):
        raise BadOption(f"{out}: the result would replace the original; choose another name")
    refuse_unwritable(out, "the result")
    plain, usual = options.as_json(), Options().as_json()
    given = {name: value for name, value in plain.items() if value != usual[name]}
    with Client(arguments.url, _token(arguments.token_file)) as client, Live(console, arguments.quiet) as tell:
        report = client.optimize_file(
            model, out, progress=lambda stage, detail: tell(Stage(stage=stage, detail=detail)), **given
        )
    show_report(console, report)
    return report, 1 if report.check.status == "different" else 0


def _token(file: Path | None) -> str | None:
    """Not a flag: whoever lists processes would read it."""
    if file is None:
        return os.environ.get(TOKEN) or None
    try:
        return file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadOption(f"--token-file {file}: cannot be read: {error}") from None


def _settings(arguments: argparse.Namespace) -> Settings:
    flags = {f.name: getattr(arguments, f.name, None) for f in dataclasses.fields(Settings)}
    return read_settings(flags, arguments.config)
