"""Rewrites that are right in part and mended: mutants of convolutions and products, the boxes where they differ, and
what mends these; each corrected program is a proved rule."""
