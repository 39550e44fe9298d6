"""How a traced program becomes units, and units their gradients."""
