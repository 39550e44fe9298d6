"""One edge of each column, by weights that a generated kernel computes.

The compiler alone calls ``gsample::sample_by_kernel``. It selects what
``sample_columns`` selects of an extract with ``k = 1`` and these weights.
"""

import torch

from torch_gsample.ops._fake import dynamic_size

#: What an operand of the kernel is, by number: a tensor that all edges read,
#: or one with a row for each of ``cols``, or for each edge of the matrix;
#: whether the row of an edge is in column ``before``; where columns start.
ROLES = ('whole', 'column', 'edge', 'found', 'pointers')


@torch.library.register_fake('gsample::sample_by_kernel')
def _fake(indptr, indices, cols, kernel, operands, roles, key, *_, **__):
    ptr = indptr.new_empty(cols.shape[0] + 1)
    return ptr, cols.new_empty(dynamic_size())
