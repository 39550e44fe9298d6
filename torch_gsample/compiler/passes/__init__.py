"""The passes: each takes a graph and rewrites it in place."""
