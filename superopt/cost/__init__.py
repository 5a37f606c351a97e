"""What a model costs, from the clock; and what a part of it would cost, from a model of the clock.

Whole models
    measure.py      times models against each other, interleaved, and says which are faster
    contest.py      tells faster from slower, so that equal models are practically never told apart
    challenger.py   what was seen of one of them               patience.py   whether it pays to go on measuring
    sitting.py      models are opened, warmed up, sampled in turns and closed again
    statistics.py   from noisy seconds to intervals
    result.py       what a comparison found
    memory.py       how large a process became

Regions
    regions.py      a region as a model of its own, timed      race.py       many of them, in one interleaved run
    timer.py        times remembered and frozen                structure.py  what names a region, without its weights
    inputs.py       what it is run with                        workloads.py  small models made for the clock alone

Prediction
    predict.py      seconds of a region from its nodes         fit.py           prices from measured times
    features.py     what a node asks of a device               coefficients.py  seconds per unit of work
    traffic.py, products.py, measures.py, columns.py, kinds.py: how that is counted
    fusions.py, spellings.py  what the runtime makes one kernel of
    weights.py      what is computed before the model runs
    calibration.py, samples.py  prices of a device from a handful of operators
    trained.py      prices that were learned of known devices, where a calibration starts

Files
    cache.py        comparisons and times in a database, so that they can be frozen
    portable.py     the same as text, to be shipped            costs.py      what `--costs` names, in either form
    contents.py     what a file holds, and several as one      machine.py    whose times they are
    inventory.py    what there is, machine by machine          shipping.py   some of it into a new file
    recorded.py     times of a machine that is not here
"""
