"""Operations on the first rows of a tensor that keep these rows."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from torch_gsample.fusion.rows import (
    FirstRows,
    Origin,
    UnseenRowsError,
    first_rows,
)

ROWS, COUNT, WIDTH = 20, 7, 8

#: Operations on two matrices of rows, and on a matrix of each row.
ROWWISE = {
    'bmm': lambda x, y, z: torch.bmm(z, z.transpose(1, 2)),
    'column_stack': lambda x, y, z: torch.column_stack([x, y]),
    'cosine_similarity': lambda x, y, z: F.cosine_similarity(x, y),
    'expand': lambda x, y, z: x.unsqueeze(1).expand(-1, 3, -1),
    'expand_as': lambda x, y, z: x.unsqueeze(1).expand_as(z),
    'gather': lambda x, y, z: x.gather(1, y.argmax(1, True)),
    'hstack': lambda x, y, z: torch.hstack([x, y]),
    'index_select': lambda x, y, z: x.index_select(1, torch.tensor([2, 0])),
    'linalg.norm': lambda x, y, z: torch.linalg.norm(x, dim=-1),
    'mv': lambda x, y, z: torch.mv(x, torch.arange(8.0)),
    'repeat': lambda x, y, z: x.repeat(1, 2),
    'repeat_interleave': lambda x, y, z: x.repeat_interleave(2, dim=1),
    'roll': lambda x, y, z: x.roll(1, dims=-1),
    'swapdims': lambda x, y, z: z.swapdims(1, 2),
    'tile': lambda x, y, z: x.tile(1, 2),
    'vector_norm': lambda x, y, z: torch.linalg.vector_norm(
        x, dim=-1, keepdim=True
    ),
    'bilinear': lambda x, y, z: nn.Bilinear(WIDTH, WIDTH, 3)(x, y),
    'GRUCell': lambda x, y, z: nn.GRUCell(WIDTH, WIDTH)(x, y),
    'LSTMCell': lambda x, y, z: nn.LSTMCell(WIDTH, WIDTH)(x, (y, x))[0],
}
MIXING = {
    'cosine_similarity': lambda x, y, z: F.cosine_similarity(x, y, dim=0),
    'expand': lambda x, y, z: x.expand(3, *x.shape),
    'gather': lambda x, y, z: x.gather(0, y.argmax(1, True)),
    'linalg.norm': lambda x, y, z: torch.linalg.norm(x),
    'repeat': lambda x, y, z: x.repeat(2, 1),
    'repeat_interleave': lambda x, y, z: x.repeat_interleave(2, dim=0),
    'roll': lambda x, y, z: x.roll(1, 0),
    'roll of all': lambda x, y, z: x.roll(1),
}


def given():
    make = torch.Generator().manual_seed(0)
    shapes = (ROWS, WIDTH), (ROWS, WIDTH), (ROWS, 4, WIDTH)
    return [torch.randn(shape, generator=make) for shape in shapes]


def part(x):
    return first_rows(x[:COUNT].clone(), Origin('a layer', ROWS))


@pytest.mark.parametrize('name', ROWWISE)
def test_rows_keep_their_positions(name):
    x, y, z = given()

    def run(*args):
        torch.manual_seed(1)
        return ROWWISE[name](*args)

    want = run(x, y, z)[:COUNT]
    for other in (part(y), y):
        out = run(part(x), other, part(z))
        assert isinstance(out, FirstRows)
        torch.testing.assert_close(out.as_subclass(torch.Tensor), want)


@pytest.mark.parametrize('name', MIXING)
def test_operations_that_mix_rows_are_refused(name):
    x, y, z = given()
    with pytest.raises(UnseenRowsError):
        MIXING[name](part(x), part(y), part(z))
