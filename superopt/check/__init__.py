"""Are two models equal, as far as onnxruntime can tell?

checker.py     runs both, one after the other, and compares
reference.py   what the original answers, and on which inputs
feeds.py       one representative input set, for the clock

uses.py        what the graph does with an input    domains.py     which values that allows
sizes.py       sizes for open dims                  ladder.py      in which order they are tried
cases.py       input sets                           own.py         the user's own
tolerance.py   how far apart is equal               noise.py       what the original's own rounding does
compare.py     how far apart two outputs are        blocks.py      large ones piece by piece, on all cores
randomness.py  outputs drawn at random              verdict.py     the report
"""

from superopt.check.checker import Checker, check
from superopt.check.feeds import make_feeds
from superopt.check.reference import Request
from superopt.check.search import Limits

__all__ = ["Checker", "Limits", "Request", "check", "make_feeds"]
