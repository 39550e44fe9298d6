"""What users write on values of edges and of nodes, as papers put it."""

import operator

import torch
from torch.nn import functional as F


def _set(t, index, value):
    out = t.clone()
    out[index] = value
    return out


def _changed(t, change):
    out = t * 1
    change(out)
    return out * 2


#: By what is written: functions of values ``t`` of edges (float, ``[n]``, an
#: unknown number), of their nodes ``i`` (int64, ``[n]``) and of values ``x``
#: of the nodes (float, ``[9, 4]``).
IDIOMS = {
    # Arithmetic
    '1 / t': lambda t, i, x: 1 / t,
    '2.0 / (t + 1)': lambda t, i, x: 2.0 / (t + 1),
    '2 ** t': lambda t, i, x: 2**t,
    't ** 0.5': lambda t, i, x: t**0.5,
    't ** -1': lambda t, i, x: t**-1,
    't ** t': lambda t, i, x: t**t,
    '1 - t': lambda t, i, x: 1 - t,
    '-t': lambda t, i, x: -t,
    '+t': lambda t, i, x: +t,
    'abs(t)': lambda t, i, x: abs(t - 0.5),
    't // 0.3': lambda t, i, x: t.detach() // 0.3,
    't % 0.3': lambda t, i, x: t % 0.3,
    '3 % i': lambda t, i, x: 3 % (i + 1),
    '7 // i': lambda t, i, x: 7 // (i + 1),
    '1 << i': lambda t, i, x: 1 << i,
    't * 2 - 1': lambda t, i, x: t * 2 - 1,
    't - mean': lambda t, i, x: (t - t.mean()) / (t.std() + 1e-6),
    't / t.sum()': lambda t, i, x: t / t.sum(),
    'reciprocal': lambda t, i, x: torch.reciprocal(t),
    'rsqrt': lambda t, i, x: torch.rsqrt(t),
    'exp': lambda t, i, x: (-t).exp(),
    'log1p': lambda t, i, x: torch.log1p(t),
    'log': lambda t, i, x: (t + 1e-9).log(),
    'sqrt': lambda t, i, x: t.sqrt(),
    # Types
    '.float()': lambda t, i, x: i.float() / 3,
    '.float() of floats': lambda t, i, x: t.float() * 2,
    '.double()': lambda t, i, x: t.double() / 3,
    '.half()': lambda t, i, x: t.half(),
    '.long()': lambda t, i, x: (t * 10).long(),
    '.int()': lambda t, i, x: (t * 10).int(),
    '.bool()': lambda t, i, x: i.bool(),
    '.type(dtype)': lambda t, i, x: i.type(torch.float32),
    '.type_as': lambda t, i, x: i.type_as(t) + t,
    '.to(other)': lambda t, i, x: i.to(t) + t,
    # Shapes
    't[:, None]': lambda t, i, x: t[:, None] * x[i],
    't[None]': lambda t, i, x: t[None] * 2,
    't[..., None]': lambda t, i, x: t[..., None] + 1,
    'unsqueeze': lambda t, i, x: t.unsqueeze(-1).squeeze(-1),
    'view(-1, 1)': lambda t, i, x: t.view(-1, 1) * x[i],
    'reshape': lambda t, i, x: x.reshape(-1)[i],
    'flatten': lambda t, i, x: x.flatten(),
    'x.T': lambda t, i, x: x.T @ x,
    'x.mT': lambda t, i, x: x.mT.contiguous(),
    'permute': lambda t, i, x: x.permute(1, 0) * 2,
    'x[:, 0]': lambda t, i, x: x[:, 0][i] * t,
    'x[i, 1]': lambda t, i, x: x[i, 1],
    'x[i][:, 1:3]': lambda t, i, x: x[i][:, 1:3],
    'x[-1]': lambda t, i, x: x[-1],
    'x[::2]': lambda t, i, x: x[::2],
    't[1:] - t[:-1]': lambda t, i, x: t[1:] - t[:-1],
    't[t > 0.5]': lambda t, i, x: t[t > 0.5],
    'x[i > 3]': lambda t, i, x: x[i][i > 3],
    'flip': lambda t, i, x: t.flip(0),
    'roll': lambda t, i, x: x.roll(1, 0),
    'cat': lambda t, i, x: torch.cat([t, 1 - t]),
    'stack': lambda t, i, x: torch.stack([t, t * 2], dim=1),
    'hstack': lambda t, i, x: torch.hstack([t, t]),
    'unbind': lambda t, i, x: sum(x.unbind(1)),
    'chunk': lambda t, i, x: x.chunk(2, dim=1)[1] * 2,
    'split': lambda t, i, x: x.split([1, 3], dim=1)[1] * 2,
    'expand': lambda t, i, x: t.unsqueeze(1).expand(-1, 3) * 2,
    'repeat': lambda t, i, x: t.repeat(2),
    'tile': lambda t, i, x: x.tile(1, 2),
    'gather': lambda t, i, x: x.gather(1, i.clamp(max=3)[:4].view(-1, 1)),
    'take_along_dim': lambda t, i, x: x.take_along_dim(x.argsort(1), 1),
    # Reductions
    'sum': lambda t, i, x: x.sum(-1)[i] * t,
    'sum, keepdim': lambda t, i, x: x / x.sum(dim=1, keepdim=True),
    'mean': lambda t, i, x: x.mean(0),
    'prod': lambda t, i, x: x.prod(1),
    'amax': lambda t, i, x: x - x.amax(dim=1, keepdim=True),
    'max(dim)': lambda t, i, x: x.max(dim=1).values,
    'max of two': lambda t, i, x: torch.max(t, 1 - t),
    'any': lambda t, i, x: (x > 0.5).any(1),
    'norm': lambda t, i, x: t / t.norm(),
    'norm(dim)': lambda t, i, x: x.norm(dim=1),
    'torch.norm': lambda t, i, x: torch.norm(x, p=1, dim=1),
    'linalg.norm': lambda t, i, x: torch.linalg.norm(x, dim=1),
    'logsumexp': lambda t, i, x: x.logsumexp(1),
    'cumsum': lambda t, i, x: t.cumsum(0),
    'sort': lambda t, i, x: t.sort(descending=True)[0],
    'argsort': lambda t, i, x: t.argsort(),
    'topk': lambda t, i, x: x.topk(2, dim=1).values,
    'einsum': lambda t, i, x: torch.einsum('ij,ij->i', x[i], x[i]) * t,
    'einsum of a product': lambda t, i, x: torch.einsum('ij,kj->ik', x, x),
    'inner product': lambda t, i, x: (x[i] * x[i]).sum(-1),
    'matmul': lambda t, i, x: x[i] @ x.t(),
    'bincount': lambda t, i, x: torch.bincount(i, minlength=9)[i],
    'scatter_add': lambda t, i, x: t.new_zeros(9).scatter_add(0, i, t)[i],
    'index_add': lambda t, i, x: torch.zeros(9).index_add(0, i, t),
    'histogram': lambda t, i, x: F.one_hot(i, 9).sum(0),
    'cdist': lambda t, i, x: torch.cdist(x, x + 1),
    # Choices
    'clamp': lambda t, i, x: t.clamp(0.2, 0.7),
    'clamp(min)': lambda t, i, x: t.clamp(min=0.3),
    'torch.clip': lambda t, i, x: torch.clip(t, max=0.5),
    'where': lambda t, i, x: torch.where(t > 0.5, t, 0.0),
    'where of two': lambda t, i, x: torch.where(i > 3, t, t * 2),
    'where(tensor)': lambda t, i, x: torch.where(
        t > 0.5, t, torch.tensor(0.25)
    ),
    'masked_fill': lambda t, i, x: t.masked_fill(t < 0.5, 0),
    '(t > 0.5) & ~m': lambda t, i, x: (t > 0.5) & ~(i > 3),
    'm.float() * t': lambda t, i, x: (i > 3).float() * t,
    'isin': lambda t, i, x: torch.isin(i, torch.arange(3)),
    'nan_to_num': lambda t, i, x: (t / 0).nan_to_num(posinf=1.0),
    'sign': lambda t, i, x: torch.sign(t - 0.5),
    'round': lambda t, i, x: (t * 10).round() / 10,
    # Networks
    'F.normalize': lambda t, i, x: F.normalize(x, dim=1),
    'F.normalize, p=1': lambda t, i, x: F.normalize(t, p=1, dim=0),
    'softmax': lambda t, i, x: t.softmax(0),
    'F.softmax': lambda t, i, x: F.softmax(x, dim=1),
    'log_softmax': lambda t, i, x: F.log_softmax(x, -1),
    'sigmoid': lambda t, i, x: torch.sigmoid(t),
    'F.relu': lambda t, i, x: F.relu(t - 0.5),
    'leaky_relu': lambda t, i, x: F.leaky_relu(t - 0.5, 0.2),
    'F.elu': lambda t, i, x: F.elu(t - 0.5),
    'gelu': lambda t, i, x: F.gelu(t),
    'softplus': lambda t, i, x: F.softplus(t),
    'tanh': lambda t, i, x: torch.tanh(x),
    'F.linear': lambda t, i, x: F.linear(x, x),
    'layer_norm': lambda t, i, x: F.layer_norm(x, (4,)),
    'cosine': lambda t, i, x: F.cosine_similarity(x[i], x[i] + 1),
    'embedding': lambda t, i, x: F.embedding(i, x),
    'pairwise': lambda t, i, x: F.pairwise_distance(x[i], x[i] + 1),
    # New tensors
    'ones_like': lambda t, i, x: torch.ones_like(t) / t,
    'zeros_like': lambda t, i, x: torch.zeros_like(t) + t,
    'full_like': lambda t, i, x: torch.full_like(t, 2) * t,
    'arange': lambda t, i, x: torch.arange(t.numel()) * t,
    'eye': lambda t, i, x: torch.eye(9) @ x,
    'linspace': lambda t, i, x: torch.linspace(0, 1, 9)[i] * t,
    'tensor': lambda t, i, x: t * torch.tensor(0.5),
    'len': lambda t, i, x: t / len(t),
    'size': lambda t, i, x: t * t.size(0),
    # Changes in place of what is new
    't += 1': lambda t, i, x: operator.iadd(t * 1, 1) * 2,
    't.add_': lambda t, i, x: _changed(t, lambda y: y.add_(1)),
    't.mul_(t)': lambda t, i, x: _changed(t, lambda y: y.mul_(t)),
    't.div_': lambda t, i, x: (t * 1).div_(t.sum()),
    't.clamp_': lambda t, i, x: (t * 2).clamp_(max=1),
    't[m] = 0': lambda t, i, x: _set(t, t < 0.5, 0.0),
    't[m] = other': lambda t, i, x: _set(t, t < 2, 1 - t),
    't[i] = v': lambda t, i, x: _set(torch.zeros(9), torch.arange(3), 2.0),
    'masked_fill_': lambda t, i, x: (t * 1).masked_fill_(t < 0.5, 0.1),
    'scatter_add_': lambda t, i, x: torch.zeros(9).scatter_add_(0, i, t),
    'index_add_': lambda t, i, x: t.new_zeros(9).index_add_(0, i, t),
    'relu(inplace)': lambda t, i, x: F.relu(t - 0.5, inplace=True),
    'fill_': lambda t, i, x: torch.empty_like(t).fill_(2) * t,
    'under no_grad': lambda t, i, x: _without_gradient(t),
}


def _without_gradient(t):
    with torch.no_grad():
        weight = 1 / t[:, None].sum(1)
    return weight * t
