"""Safe passes: every rewrite is named, and true by the definition of the operators it touches.

driver.py       rounds over a model until nothing changes
rewriter.py     one forward rebuild of one graph: folded, simplified, merged
folding.py      what can be computed now         evaluation.py  computed by onnxruntime, many nodes at once
sharing.py      equal initializers               duplicates.py  equal nodes
dead.py         what nobody reads                batchnorm.py   BatchNormalization into its convolution
arithmetic.py, casting.py, layout.py, selection.py   identities, one rule each
purity.py       what must never be touched       journal.py     what was done, what it may cost
builder.py, scope.py, captures.py   the graph under construction, what is known of it, what its bodies read
"""

from superopt.normalize.driver import Normalized, normalize

__all__ = ["Normalized", "normalize"]
