"""Write the pages that are made from the code (`python docs/generate.py`); with --check, only compare.

A page that repeats what the code says is wrong sooner or later. The report's page is therefore printed from the
report's own classes, the options in the page of the command line from its parser, and the counts in the page of rules
from the headers of the rule files; the rest of those pages is written by hand. A test runs the comparison.
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
import types
import typing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from superopt import report
from superopt.cli.parser import build_parser
from superopt.rewrite.ruleset import SHIPPED

FOLDER = Path(__file__).parent
SCALARS = {str: "string", int: "integer", float: "number", bool: "boolean", object: "any", type(None): "null"}

INTRODUCTION = """\
# The report

<!-- Printed by docs/generate.py from superopt/report. Change it there. -->

`superopt optimize … --report FILE` writes it, `--json` prints it to stdout: one JSON object, described here field by
field. Field names are an interface: there will be new ones, none is renamed or given another meaning without a new
`schema_version` (now {version}). Every field is always there; what is not known is `null` or empty, never left out.

Times are in seconds, sizes in bytes.
"""


def type_text(annotation: object) -> str:
    """A type as JSON has it, in words, with links to the records of this page."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Literal:
        return " or ".join(f"`{value!r}`".replace("'", '"') for value in arguments)
    if origin in (types.UnionType, typing.Union):
        return " or ".join(type_text(a) for a in arguments)
    if origin is list:
        return f"list of {type_text(arguments[0])}"
    if origin is dict:
        return f"object, {type_text(arguments[1])} by name"
    if isinstance(annotation, type) and issubclass(annotation, report.Record):
        return f"[{annotation.__name__}](#{annotation.__name__.lower()})"
    if isinstance(annotation, type) and annotation in SCALARS:
        return SCALARS[annotation]
    if origin is tuple:
        return f"[{', '.join(map(type_text, arguments))}]"
    raise TypeError(f"no words for {annotation!r}: teach docs/generate.py")


def record_section(record: type[report.Record]) -> str:
    lines = [f"## {record.__name__}", ""]
    # A class without a docstring of its own would show pydantic's.
    if "__doc__" in vars(record) and record.__doc__:
        lines += [inspect.cleandoc(record.__doc__), ""]
    lines += ["| field | type | meaning |", "|---|---|---|"]
    for name, field in record.model_fields.items():
        meaning = (field.description or "").replace("|", "\\|")
        lines.append(f"| `{name}` | {type_text(field.annotation)} | {meaning} |".replace("|  |", "| |"))
    return "\n".join(lines)


def records() -> list[type[report.Record]]:
    """The report first, then the others; each is followed by the records it is made of."""
    found: dict[type[report.Record], None] = {}

    def add(annotation: object) -> None:
        for argument in typing.get_args(annotation):
            add(argument)
        if isinstance(annotation, type) and issubclass(annotation, report.Record) and annotation not in found:
            found[annotation] = None
            for field in annotation.model_fields.values():
                add(field.annotation)

    for value in (report.Report, *(getattr(report, name) for name in report.__all__)):
        add(value)
    return [record for record in found if record is not report.Record]


def report_page() -> str:
    parts = [INTRODUCTION.format(version=report.SCHEMA_VERSION), *map(record_section, records())]
    return "\n".join(f"{part.rstrip()}\n" for part in parts)


def commands() -> dict[str, argparse.ArgumentParser]:
    """The parsers of the command line by command, which argparse gives away only through an attribute of its own."""
    parser = build_parser()
    (found,) = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]  # pyright: ignore[reportPrivateUsage]
    return dict(found.choices)


def options(command: str) -> list[argparse.Action]:
    actions = commands()[command]._actions  # pyright: ignore[reportPrivateUsage]
    return [a for a in actions if a.option_strings and a.dest != "help"]


def options_table(command: str) -> str:
    lines = ["| option | meaning |", "|---|---|"]
    for action in options(command):
        value = "{" + ",".join(action.choices) + "}" if action.choices else str(action.metavar or "")
        flags = ", ".join(
            f"`{f}`" for f in [*action.option_strings[:-1], f"{action.option_strings[-1]} {value}".strip()]
        )
        meaning = (action.help or "").replace("%%", "%").replace("|", "\\|")
        lines.append(f"| {flags} | {meaning} |")
    return "\n".join(lines)


def options_line(command: str) -> str:
    """For a command whose options are all explained above already."""
    explained = {a.dest: a.help for a in options("optimize")}
    if any(explained.get(a.dest) != a.help for a in options(command)):
        return options_table(command)
    return f"Options, as above: {', '.join(f'`{a.option_strings[-1]}`' for a in options(command))}."


def cli_page() -> str:
    """The page as it is, with the parts between the marks printed anew."""

    def printed(mark: re.Match[str]) -> str:
        command = mark["command"]
        text = options_table(command) if command == "optimize" else options_line(command)
        return f"{mark['begin']}\n{text}\n\n{mark['end']}"

    marks = (
        r"(?P<begin><!-- options of (?P<command>[\w-]+), printed by docs/generate.py -->\n).*?(?P<end><!-- end -->\n)"
    )
    page, count = re.subn(marks, printed, (FOLDER / "cli.md").read_text(), flags=re.DOTALL)
    having = [command for command in commands() if options(command)]
    if count != len(having):
        raise ValueError(f"cli.md must have marks for the options of {', '.join(having)}")
    return page


def generated_counts() -> dict[str, dict[str, str]]:
    """What the headers of the generated rule files say, by recipe; how many rules there are by count."""
    found: dict[str, dict[str, str]] = {}
    for path in sorted((SHIPPED / "generated").glob("*.rules")):
        head, *rules = re.split(r"^(?=rule )", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        told = re.findall(r"^#   ([a-z, ]+): ([\d,]+)$", head, flags=re.MULTILINE)
        macros = sum(re.search(r"^  origin .* macro$", rule, flags=re.MULTILINE) is not None for rule in rules)
        found[path.stem] = dict(told) | {"shipped": f"{len(rules):,}", "of them macros": f"{macros:,}"}
    return found


def counts_table() -> str:
    """Recipes as columns, what became of everything as rows, with the sums."""
    counts = generated_counts()
    rows = list(dict.fromkeys(name for told in counts.values() for name in told))
    rows.sort(key=lambda name: name in ("shipped", "of them macros"))
    lines = [f"| | {' | '.join(counts)} | all |", "|---|" + "---:|" * (len(counts) + 1)]
    for name in rows:
        numbers = [told.get(name, "0") for told in counts.values()]
        total = sum(int(n.replace(",", "")) for n in numbers)
        lines.append(f"| {name} | {' | '.join(numbers)} | {total:,} |")
    return "\n".join(lines)


def rules_page() -> str:
    """The page as it is, with the table between the marks printed anew."""
    marks = r"(<!-- counts, printed by docs/generate.py -->\n).*?(<!-- end -->\n)"
    text = (FOLDER / "rules.md").read_text()
    page, count = re.subn(marks, lambda m: f"{m[1]}\n{counts_table()}\n\n{m[2]}", text, flags=re.DOTALL)
    if count != 1:
        raise ValueError("rules.md must have marks for the counts")
    return page


def pages() -> dict[Path, str]:
    return {
        FOLDER / "report.md": report_page(),
        FOLDER / "cli.md": cli_page(),
        FOLDER / "rules.md": rules_page(),
    }


def main() -> int:
    stale = [p for p, text in pages().items() if not p.exists() or p.read_text() != text]
    if "--check" in sys.argv[1:]:
        for path in stale:
            print(f"{path.name} is not what the code says; run: python docs/generate.py", file=sys.stderr)
        return int(bool(stale))
    for path in stale:
        path.write_text(pages()[path])
        print(f"wrote {path.name}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
