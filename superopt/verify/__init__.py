"""Is it true? Proofs for all sizes, counterexamples, and where two programs agree. The only package that imports z3."""
