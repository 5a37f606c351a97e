"""The command line: parse, call, print. Answers go to stdout, everything for people to stderr."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

from superopt.cli.parser import build_parser
from superopt.errors import SuperoptError

INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit code: 0 done, 1 a check failed or models differ, 2 bad input or usage, 3 a limit, 130 Ctrl-C."""
    arguments = build_parser().parse_args(argv)
    try:
        from superopt.cli import commands  # after parsing: --help needs none of it

        return commands.run(arguments)
    except SuperoptError as error:
        print(f"superopt: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("superopt: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0


def entry() -> None:
    for name in (signal.SIGTERM, signal.SIGHUP):  # like Ctrl-C: the job is ended and its staging folder removed
        signal.signal(name, signal.default_int_handler)
    sys.exit(main())
