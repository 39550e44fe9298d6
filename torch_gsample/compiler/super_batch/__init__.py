"""Several mini-batches sampled in one run of a program.

A canonical graph of one batch comes in, one of several batches goes out, whose
results are those of the batches alone (gSampler, section 4.4).
"""
