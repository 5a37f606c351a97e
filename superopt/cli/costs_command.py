"""`superopt costs …`: call and print."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from superopt.cli.tables import say
from superopt.cost.contents import Merged, merged
from superopt.cost.costs import read_costs
from superopt.cost.inventory import inventory
from superopt.cost.portable import write_portable
from superopt.cost.shipping import of_devices, write_costs
from superopt.errors import BadOption
from superopt.ir.files import clear_write_errors, refuse_unwritable
from superopt.report import CostsReport, RecordedMachine


def run_costs(arguments: argparse.Namespace, console: Console) -> int:
    files: Sequence[Path] = arguments.files
    if arguments.action == "list":
        report = _report(files[0], Merged(read_costs(files[0])))
    else:
        report = _written(arguments, files)
    _emit(report, arguments, console)
    return 0


def _written(arguments: argparse.Namespace, files: Sequence[Path]) -> CostsReport:
    out: Path = arguments.output
    for file in files:
        if out.exists() and file.exists() and out.samefile(file):
            raise BadOption(f"-o {out}: would replace {file}; choose another name")
    refuse_unwritable(out, "the costs")
    found = merged([of_devices(read_costs(file), arguments.device, str(file)) for file in files])
    if not found.contents.machines:
        raise BadOption(f"{', '.join(map(str, files))}: no costs there; superopt calibrate measures some")
    if arguments.action == "export":
        write_portable(found.contents, out)
    else:
        write_costs(found.contents, out)
    return _report(out, found)


def _report(file: Path, found: Merged) -> CostsReport:
    machines = inventory(found.contents)
    return CostsReport(file=str(file), machines=machines, conflicts=found.conflicts, farthest=found.farthest)


def _emit(report: CostsReport, arguments: argparse.Namespace, console: Console) -> None:
    text = report.model_dump_json(indent=2)
    if arguments.report is not None:
        with clear_write_errors(arguments.report):
            arguments.report.write_text(f"{text}\n")
    if arguments.json:
        print(text)
        return
    for machine in report.machines:
        for line in _lines(machine):
            print(line)
    if not report.machines:
        print("nothing")
    if report.conflicts:
        say(
            console,
            f"{report.conflicts} questions were answered otherwise by a later file, by a factor of up to "
            f"{report.farthest:.2f}; the first file's answers were kept",
        )


def _lines(machine: RecordedMachine) -> list[str]:
    driver = f", driver {machine.driver}" if machine.driver else ""
    lines = [f"{machine.device}{driver}, onnxruntime {machine.onnxruntime} (until {machine.measured})"]
    lines += [f"  {d.times:6d} times of regions with {d.deployment}" for d in machine.deployments]
    lines.append(f"  {machine.comparisons:6d} comparisons of whole models")
    if machine.failures:
        lines.append(f"  {machine.failures:6d} regions that could not be run")
    if machine.outdated:
        lines.append(f"  {machine.outdated:6d} entries of another method of measuring, which are not used")
    return lines
