"""What changed, for people: two graphs compared, as text and as one HTML page.

    view.py         one graph as the comparison sees it: names, readers, what its inputs stand for
    matching.py     which node of one graph is which of the other
    difference.py   what was kept, changed, removed and added, grouped into regions
    summary.py      a difference as a record, for `superopt diff`
    text.py         that record as text
    order.py        both graphs as one sequence: changed regions, and unchanged stretches between them
    layout.py       places of boxes and lines: layers by longest path
    drawing.py      boxes and lines as SVG
    graphs.py       the two graphs side by side, on the page
    charts.py       microseconds per rule, microseconds per operator
    page.py         the whole page

Pure functions over graphs and reports. What a model calls its values is hostile: every name is escaped by
`superopt.explain.markup` alone, and the page forbids itself every script but its own.
"""
