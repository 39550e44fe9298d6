"""Units as operators of torch, the graphs that they run over, and calls."""
