"""What was found, cut down to what the model's weights may grow by."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from superopt.search.hunted import Hunted
from superopt.search.trace import Traced


def trimmed(found: Hunted, allowed: int, growth: Callable[[Sequence[Traced]], int]) -> list[Traced]:
    """The trace without the kinds of region that gained least, as far as its `growth` is more than is allowed: some
    were chosen in hope that nobody else would read the weights which they no longer read."""
    trace = list(found.trace)
    worth = {gain.kind: gain.seconds for gain in found.gains}
    while trace and growth(trace) > allowed:
        least = min({record.kind for record in trace}, key=lambda kind: (worth.get(kind, 0.0), kind))
        found.notes.append(f"region {least} was left as it was: its weights would add more than --growth allows")
        trace = [record for record in trace if record.kind != least]
    return trace
