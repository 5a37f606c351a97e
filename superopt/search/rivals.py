"""The last word: the rewritten model with its best session options against the original with its own.

Options may turn a comparison round: with a CUDA graph launches cost nothing, and a rewritten graph that saves launches,
or that cannot be captured, is no longer the faster one. Users deploy with options, so that is what must not be slower.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from superopt.cost.result import PairTiming
from superopt.errors import CannotRun
from superopt.runtime.deployment import Deployment
from superopt.search.deployments import Deployed
from superopt.search.trial import Trial

LEAST = 0.99
"""As fast as the original, with 95 % confidence, a result must be that is not known to be faster."""
WITH_OPTIONS = "with session options for both"
LOST = f"{WITH_OPTIONS} the original is faster"
UNCONFIRMED = "the session options that it was timed with were not confirmed for it"


@dataclass(frozen=True)
class Rivals:
    ours: Deployed
    theirs: Deployed
    pair: PairTiming | None = None

    @property
    def lost(self) -> bool:
        """Whether the original is faster, once both have their options, or may be by more than a hair. Where it did not
        get its own (on a CPU), what is not known to be slower stays."""
        if self.pair is None or self.pair.verdict == "faster":
            return False
        interval = self.pair.interval
        in_doubt = interval is not None and interval.low < LEAST and self.theirs.base.target == "cuda"
        return self.pair.verdict == "slower" or in_doubt

    @property
    def text(self) -> str:
        """What was found, in words; empty where nothing had to be compared again."""
        if self.pair is None or self.pair.speedup is None or self.pair.interval is None:
            return ""
        low, high = self.pair.interval.low, self.pair.interval.high
        return f"{WITH_OPTIONS} the rewritten model is {self.pair.speedup:.2f}× as fast ({low:.2f} to {high:.2f})"


def refusal(found: Rivals | None, own: Deployment | None) -> str:
    """Why a result does not stand once both have their options, if so: it lost; or the options of its `own` that it was
    timed with were not confirmed, and nothing is known of it without them."""
    confirmed = () if found is None else found.ours.best.provider_options
    if own is not None and not set(own.provider_options) <= set(confirmed):
        return UNCONFIRMED
    return (found.text or LOST) if found is not None and found.lost else ""


def rivals(
    trial: Trial,
    ours: Deployed,
    written: Path,
    original: Path,
    seconds: float,
    deploy: Callable[[], Deployed | None],
    known: Deployment | None = None,
) -> Rivals:
    """`ours` is what the written model runs best with; `deploy` finds that out about the original. On a CPU, where
    options matter less, the original gets those of the written model. Where both run best as they were timed before,
    the written model with options of its own if they are `known`, nothing is timed again."""
    theirs: Deployed | None = Deployed(ours.base, ours.base, searched=False)
    if ours.searched:
        theirs = deploy() if ours.base.target == "cuda" else Deployed(ours.best, ours.base)
    if theirs is None or not ours.searched:
        return Rivals(ours, theirs or ours)
    if (theirs.best, ours.best) == (trial.timed, known or trial.timed):
        return Rivals(ours, theirs)
    try:
        pair = trial.race_deployed((original, theirs.best), (written, ours.best), seconds)
    except CannotRun:
        pair = None
    return Rivals(ours, theirs, pair)
