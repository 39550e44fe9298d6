"""Several mini-batches sampled in one run of a program.

A canonical graph of one batch comes in; a graph of several batches with equal
results for each goes out (gSampler, section 4.4).
"""
