"""One edge of each column, with weights from a generated kernel.

Only the compiler calls ``gsample::sample_by_kernel``. It selects the edges of
``sample_columns`` with ``k = 1`` from an extract with these weights.
"""

import torch

from torch_gsample.ops._fake import dynamic_size

#: Roles of the kernel's operands, in the order of their codes: a tensor for
#: all edges, one with a row for each of ``cols``, one with a row for each edge
#: of the matrix; whether an edge's row is in column ``before``; the start of
#: each column.
ROLES = ('whole', 'column', 'edge', 'found', 'pointers')


@torch.library.register_fake('gsample::sample_by_kernel')
def _fake(indptr, indices, cols, kernel, operands, roles, key, *_, **__):
    ptr = indptr.new_empty(cols.shape[0] + 1)
    return ptr, cols.new_empty(dynamic_size())
