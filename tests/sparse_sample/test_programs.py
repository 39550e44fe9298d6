"""The three programs of gSampler's Figure 3, with PyTorch's ``dim``."""

import torch
import torch.nn.functional as F
from torch.testing import assert_close

from torch_gsample import SparseSample
from torch_gsample.testing import random_graph


def graphsage(A, seeds, fanouts):
    frontiers, layers = seeds, []
    for k in fanouts:
        sub_A = A[:, frontiers]
        sample_A = sub_A.individual_sample(k)
        frontiers = sample_A.row()
        layers.append(sample_A)
    return frontiers, layers


def ladies(A, seeds, sizes):
    frontiers, layers = seeds, []
    for k in sizes:
        sub_A = A[:, frontiers]
        row_probs = (sub_A**2).sum(dim=1)
        sample_A = sub_A.collective_sample(k, row_probs)
        select_probs = row_probs[sample_A.row()]
        sample_A = sample_A.div(select_probs, dim=1)
        sample_A = sample_A.div(sample_A.sum(dim=0), dim=0)
        frontiers = sample_A.row()
        layers.append(sample_A)
    return frontiers, layers


def pass_sampler(A, seeds, fanouts, features, W1, W2, W3):
    frontiers, layers = seeds, []
    for k in fanouts:
        sub_A = A[:, frontiers]
        U1, V1 = features @ W1, features[frontiers] @ W1
        U2, V2 = features @ W2, features[frontiers] @ W2
        att1 = sub_A * (U1 @ V1.T)
        att2 = sub_A * (U2 @ V2.T)
        att3 = sub_A.div(sub_A.sum(dim=0), dim=0)
        att = torch.stack([att1, att2, att3], dim=-1)
        mixed = att.values() @ F.softmax(W3, dim=0)
        bias = att.with_value(F.relu(mixed) + 1e-7)
        sample_A = bias.individual_sample(k, bias)
        frontiers = sample_A.row()
        layers.append(sample_A)
    return frontiers, layers


def graph():
    g = random_graph(60, 900, seed=4)
    value = torch.rand(900, dtype=torch.float64) + 0.1
    return SparseSample.from_csc(g.indptr, g.indices, value)


SEEDS = torch.tensor([9, 4, 30])


def assert_chained(layers, frontiers, seeds=SEEDS):
    """Asserts that the rows of a layer are the columns of the next."""
    for layer in layers:
        assert torch.equal(layer.col_ids, seeds)
        seeds = layer.row()
    assert torch.equal(seeds, frontiers)
    out = SparseSample.to_sampler_output(layers)
    assert sum(out.num_sampled_nodes) == out.node.numel()
    assert out.num_sampled_edges == [x.num_edges for x in layers]
    assert torch.equal(out.node[: len(SEEDS)], SEEDS)


def test_graphsage():
    A = graph()
    frontiers, layers = graphsage(A, SEEDS, [4, 3])
    assert_chained(layers, frontiers)
    for layer, k in zip(layers, (4, 3), strict=True):
        want = A.degree(0)[layer.col_ids].clamp(max=k)
        assert torch.equal(layer.degree(0), want)


def test_ladies():
    A = graph()
    frontiers, layers = ladies(A, SEEDS, [8, 5])
    assert_chained(layers, frontiers)
    for layer, k in zip(layers, (8, 5), strict=True):
        assert layer.num_rows == k
        total = layer.sum(dim=0)
        assert_close(total, (layer.degree(0) > 0).double())
        # Weights are a / p, but for the factor of their column.
        edge = layer.edge_id
        probs = (A[:, layer.col_ids] ** 2).sum(dim=1)
        plain = layer.with_value(A.value[edge] / probs[layer.edges()[0]])
        assert_close(plain.div(plain.sum(0), 0).value, layer.value)


def test_pass():
    A, generator = graph(), torch.Generator().manual_seed(1)
    features, W1, W2, W3 = (
        torch.randn(s, generator=generator, dtype=torch.float64)
        for s in ((60, 5), (5, 3), (5, 3), (3,))
    )
    parameters = [w.requires_grad_() for w in (W1, W2, W3)]
    frontiers, layers = pass_sampler(A, SEEDS, [4, 3], features, *parameters)
    assert_chained(layers, frontiers)
    first = layers[0]
    u, v, a = *first.edges(), A.value
    dots = [(features[u] @ w * (features[v] @ w)).sum(1) for w in (W1, W2)]
    a = a[first.edge_id]
    terms = [dots[0] * a, dots[1] * a, a / A.sum(dim=0)[v]]
    want = F.relu(torch.stack(terms, 1) @ F.softmax(W3, 0)) + 1e-7
    assert_close(first.value, want)
    sum(layer.value.log().sum() for layer in layers).backward()
    assert all(bool(w.grad.abs().sum() > 0) for w in parameters)
