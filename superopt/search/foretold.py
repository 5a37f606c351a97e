"""What a result should gain on a device that is not here.

The time of a run is added up from recorded regions, and from predicted ones where none are recorded; what the rewritten
regions gain is taken off. Where the original was timed as a whole there, and took longer than its regions, the gain is
held against that. Nobody has timed the result: so it is returned only if it should be faster by 5 % when of every gain
only half is counted that was timed there once, and a third that was never timed. Regions timed alone do not tell to the
percent what a model gains.
"""

from __future__ import annotations

from collections.abc import Sequence

from superopt.cost.machine import Machine
from superopt.cost.manner import in_a_region
from superopt.cost.predict import Predictor
from superopt.cost.regions import region_key
from superopt.cost.samples import samples
from superopt.cost.workloads import host
from superopt.ir.onnx import Model
from superopt.options import Options
from superopt.report import PredictionReport
from superopt.runtime.facts import runtime_facts
from superopt.search.hunted import Gain
from superopt.search.hunting import Ground
from superopt.search.learning import Learner
from superopt.search.recorded_trial import PREDICTED, RecordedTrial
from superopt.search.scales import Scales
from superopt.search.signatures import signed
from superopt.search.workshop import Workshop

FEW = 0.5
"""Part of the sample operators under which prices are hardly more than priors."""
LEAST = {"faster": 1.05, "not-slower": 1.0}
"""Predicted speed-up, cautiously, from which on a result is returned, by what `--accept` asks for."""
MOST_SAVED = 0.95
"""Part of a run that rewrites can save, at most: sums of regions may say more."""


def foretell(
    trial: RecordedTrial,
    ground: Ground,
    workshop: Workshop,
    gains: Sequence[Gain],
    tidied: Model | None,
    options: Options,
) -> PredictionReport:
    """`tidied`: the model as passes leave it, where they changed it."""
    known, total = _whole(trial, ground, workshop)
    recorded, passes = trial.latency(tidied), trial.passes(tidied)
    factor = 1.0 if passes is None else passes
    rest = max(total, (recorded or 0.0) / factor)
    before = total * factor if recorded is None else recorded
    speedup, cautious = (
        factor * _ratio(rest, saved) for saved in (sum(g.seconds for g in gains), sum(g.cautious for g in gains))
    )
    there, number = _samples(ground)
    return PredictionReport(
        device=trial.machine.device, driver=trial.machine.driver, onnxruntime=trial.machine.runtime,
        deployment=trial.timed.text, costs=str(options.costs), samples=there, samples_of=number,
        before=before, before_is="added up" if recorded is None else "recorded", after=before / speedup,
        speedup=speedup, cautious=cautious, least=LEAST[options.accept],
        recorded_share=known / total if total else 0.0, passes=passes,
        recorded_gains=sum(g.timed for g in gains), predicted_gains=sum(not g.timed for g in gains),
    )  # fmt: skip


def verdict_of(told: PredictionReport, accepted: bool) -> str:
    """One line that nobody takes for a measurement."""
    where = f"{PREDICTED}: {told.speedup:.2f}× on {told.device}"
    if accepted:
        return f"{where}; outputs checked equal on the CPU, times to be measured there with superopt bench"
    asked = f"cautiously {told.cautious:.2f}×, {told.least:.2f}× is asked for"
    return f"0 %: {where} ({asked}); the original's own bytes are returned"


def nothing_foretold(told: PredictionReport) -> str:
    nothing = f"{PREDICTED}: nothing was found that should be faster on {told.device}"
    return f"0 %: {nothing}; the original's own bytes are returned"


def notes_of(told: PredictionReport, accepted: bool) -> list[str]:
    """What a reader must know of a prediction before acting on it."""
    machine = Machine("cpu", told.device, told.driver, told.onnxruntime).text
    share, samples = f"{told.recorded_share:.0%}", f"{told.samples} of {told.samples_of}"
    basis = f"{share} of a run is in regions that were timed there, {samples} sample operators price the rest"
    notes = [f"{PREDICTED}: from times recorded on {machine}; {basis}"]
    if accepted:
        notes.append("that the result is not slower there is not shown: measure it there before it is deployed")
    if told.onnxruntime != runtime_facts().version:
        notes.append(f"the times are of onnxruntime {told.onnxruntime}, the check ran on {runtime_facts().version}")
    if told.samples < FEW * told.samples_of:
        notes.append("few sample operators were recorded, prices are orders of magnitude: superopt calibrate")
    return notes


def _ratio(total: float, saved: float) -> float:
    return total / (total - min(saved, MOST_SAVED * total)) if total > 0.0 else 1.0


def _whole(trial: RecordedTrial, ground: Ground, workshop: Workshop) -> tuple[float, float]:
    """Seconds of a run that are recorded, and all of them."""
    sizes = trial.symbol_sizes()
    predictor = Predictor(sizes, ground.coefficients, in_a_region(ground.timer.deployment))
    scales = Scales(workshop.model, sizes, Learner(predictor), ground.timer)
    found = signed(workshop, scales)
    known, guessed = 0.0, found.besides
    for signature in found.signatures:
        told = ground.timer.recall(signature.key)
        if told is None or told.seconds is None:
            guessed += signature.value
        else:
            known += signature.count * (told.seconds + ground.coefficients.spared)
    return known, known + guessed


def _samples(ground: Ground) -> tuple[int, int]:
    keys = [region_key(host(), graph, {}) for graph in samples(ground.trial.deployment.target)]
    return sum(ground.timer.recall(key) is not None for key in keys), len(keys)
