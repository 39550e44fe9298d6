"""Division of a traced program into units (kernels), and their gradients."""
