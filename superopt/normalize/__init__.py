"""Safe passes: every rewrite is named, and true by the definition of the operators it touches.

    driver.py       rounds over a model until nothing changes
    rewriter.py     one forward rebuild of one graph: folded, simplified, merged
    folding.py      what can be computed now         evaluation.py  computed by onnxruntime, many nodes at once
    statics.py      what types alone decide          retyping.py    types that become known on the way
    sharing.py      equal initializers               duplicates.py  equal nodes
    dead.py         what nobody reads                batchnorm.py   BatchNormalization into its convolution
    rule.py         what an identity is              arithmetic.py, broadcasting.py, casting.py, counting.py,
                                                     infinite.py, layout.py, picking.py, selection.py, telling.py:
                                                     which there are
    purity.py       what must never be touched       journal.py     what was done, what it may cost
    builder.py      the graph under construction     scope.py       what is known of it
    captures.py     what bodies read outside         inlining.py    a branch in the place of its If
    choices.py      which Ifs are decided            ranks.py       decided by what follows them

Nothing here looks at a clock: whether a tidied model is faster is for `superopt.search` to say.
"""

from superopt.normalize.driver import Normalized, normalize

__all__ = ["Normalized", "normalize"]
