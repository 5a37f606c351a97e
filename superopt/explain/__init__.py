"""What changed, for people: two graphs compared, as text and as one HTML page.

Comparing:

    view.py         one graph as the comparison sees it: names, readers, what its inputs stand for
    matching.py     which node of one graph is which of the other
    difference.py   what was kept, changed, removed and added
    regions.py      changed nodes that hang together
    summary.py      a difference as a record, for `superopt diff`
    text.py         that record as text

Drawing:

    order.py        both graphs as one sequence: changed regions, and unchanged stretches between them
    sketches.py     what to draw: boxes, and lines between them
    layout.py       places of boxes and lines: layers by longest path
    drawing.py      sketches as SVG
    graphs.py       the two graphs side by side
    scene.py        the same as data, for whoever draws it himself; staging.py: made from a difference

The page:

    gains.py        microseconds that each rule gained
    trace.py        which rewrites made which region
    charts.py       microseconds per rule and per operator, as bars
    rewrites.py     rewrites with their places and proofs
    facts.py        the check, the session options, the environment; command.py: the command that does it again
    page.py         the whole page, with page.css and page.js; figures.py: numbers as people read them

Pure functions over graphs and reports. What a model calls its values is hostile: every name is escaped by
`superopt.explain.markup` alone, and the page forbids itself every script but its own.
"""
