"""What a model costs, from the clock.

measure.py      times models against each other, interleaved, and says which are faster
stage.py        who is open while the clock runs, and how one sample is taken
statistics.py   from noisy seconds to intervals
result.py       what a comparison found
cache.py        comparisons kept in a file, so that they can be frozen
memory.py       how large a process became
"""
