"""Keys: what tells the draws of seeds, epochs and batches apart."""

import hashlib
import struct
import threading

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from torch_gsample import rng


def test_a_key_is_seed_epoch_and_batch():
    key = rng.make_key(5, epoch=2, batch=7)
    assert key.dtype == torch.int64
    assert key.tolist() == [[5, 2, 7]]
    assert rng.make_key(5).tolist() == [[5, 0, 0]]
    assert rng.make_key(5, 1, rng.EPOCH_SCOPE).tolist() == [[5, 1, -1]]
    assert rng.make_key(np.int64(5)).tolist() == [[5, 0, 0]]


@pytest.mark.parametrize(
    ('seed', 'stored'),
    [
        (2**63 - 1, 2**63 - 1),
        (2**63, -(2**63)),
        (2**64 - 1, -1),
        (-(2**63), -(2**63)),
    ],
)
def test_seeds_are_64_bits(seed, stored):
    assert rng.make_key(seed)[0, 0] == stored


@pytest.mark.parametrize(
    ('number', 'error', 'text'),
    [
        ({'seed': 2**64}, ValueError, r"'seed' must fit in 64 bits \(got 18"),
        ({'seed': -(2**63) - 1}, ValueError, "'seed' must fit"),
        ({'epoch': -1}, ValueError, r"'epoch' must be in .*\(got -1\)"),
        ({'epoch': 2**32}, ValueError, r"'epoch' must be in \[0, 2\^32\)"),
        ({'batch': -2}, ValueError, r"'batch' must be in .*\(got -2\)"),
        ({'batch': 2**63}, ValueError, "'batch' must be in"),
        ({'seed': 0.5}, TypeError, r"'seed' must be an integer \(got 0.5\)"),
        ({'epoch': '1'}, TypeError, r"'epoch' must be an integer \(got '1'\)"),
        ({'batch': None}, TypeError, "'batch' must be an integer"),
    ],
    ids=str,
)
def test_numbers_outside_their_range_are_named(number, error, text):
    with pytest.raises(error, match='make_key: ' + text):
        rng.make_key(**({'seed': 0} | number))


def test_scopes_nest_and_end():
    assert rng.current_batch() is None
    with rng.batch_scope(1, 2):
        assert rng.current_batch() == (1, 2)
        with rng.batch_scope(3, 4):
            assert rng.current_batch() == rng.BatchNumber(epoch=3, batch=4)
        assert rng.current_batch() == (1, 2)
    with pytest.raises(KeyError), rng.batch_scope(1, 2):
        raise KeyError
    assert rng.current_batch() is None


def test_a_scope_holds_for_its_thread_only():
    seen = []
    with rng.batch_scope(1, 2):
        thread = threading.Thread(
            target=lambda: seen.append(rng.current_batch())
        )
        thread.start()
        thread.join()
    assert seen == [None]


def test_torchs_generator_gives_seeds():
    torch.manual_seed(3)
    seeds = [rng.draw_seed() for _ in range(3)]
    torch.manual_seed(3)
    assert [rng.draw_seed() for _ in range(3)] == seeds
    assert len(set(seeds)) == 3
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_hashes_do_not_vary_over_runs():
    """A change would change the samples of PyG's own loaders."""
    text = struct.pack('<qq', 1, 2) + b'|None|3|'
    digest = hashlib.blake2b(text, digest_size=8).digest()
    expected = int.from_bytes(digest, 'little') % 2**63
    assert rng.hash_ids(torch.tensor([1, 2]), None, 3) == expected


def test_hashes_tell_their_inputs_apart():
    ids = torch.tensor([1, 2, 3])
    hashes = [
        rng.hash_ids(ids),
        rng.hash_ids(ids.flip(0)),
        rng.hash_ids(ids[:2], ids[2:]),
        rng.hash_ids(ids[:1], ids[1:]),
        rng.hash_ids(ids, None),
        rng.hash_ids(None, ids),
        rng.hash_ids(ids, 0),
        rng.hash_ids(0, ids),
        rng.hash_ids(torch.empty(0)),
    ]
    assert len(set(hashes)) == len(hashes)
    assert all(0 <= value < 2**63 for value in hashes)


def test_hashes_go_by_value_not_by_layout():
    ids = torch.arange(6)
    assert rng.hash_ids(ids.int()) == rng.hash_ids(ids)
    assert rng.hash_ids(torch.arange(12)[::2]) == rng.hash_ids(ids * 2)


def base_seeds(_):
    return rng.worker_base_seed()


def test_all_workers_know_the_base_seed_of_their_epoch():
    assert rng.worker_base_seed() == 0
    loader = DataLoader(range(4), num_workers=2, collate_fn=base_seeds)
    torch.manual_seed(1)
    first, second = set(loader), set(loader)
    assert len(first) == len(second) == 1
    assert first != second
    torch.manual_seed(1)
    assert set(loader) == first
