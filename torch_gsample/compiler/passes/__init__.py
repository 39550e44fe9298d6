"""The passes; each rewrites a graph in place."""
