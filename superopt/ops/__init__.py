"""What a formula is: index arithmetic, element expressions, tensors given pointwise, the registry of operators."""
