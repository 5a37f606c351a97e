"""Running models: the only package that starts onnxruntime.

    deployment.py   how a model is run: target, threads, optimization level, provider options
    target.py       cpu or cuda, honestly
    session.py      a model opened for running
    binding.py      one inference over device-resident tensors, for the clock
    profile.py      microseconds by operator, from onnxruntime's own profiler
    recipe.py       a deployment as Python to paste, and as a table
    evaluate.py     a tiny model run once, for folding
    facts.py        versions and devices, for reports and cache keys

onnxruntime is loaded when the first session opens, not when this package is imported.
"""
