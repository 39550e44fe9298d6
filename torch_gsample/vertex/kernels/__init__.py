"""Units as torch operators, their graph layouts, and calls."""
