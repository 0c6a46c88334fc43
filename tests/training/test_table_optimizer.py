import copy

import pytest
import torch
from torch import nn

from bertram_hf.training.stage import TableAdamW

OPTIONS = {"lr": 0.03, "betas": (0.8, 0.95), "eps": 1e-6}


def train(table, optimizer, batches):
    for ids, targets in batches:
        optimizer.zero_grad()
        nn.functional.mse_loss(table(ids), targets).backward()
        optimizer.step()
    return table.weight.detach().clone()


@pytest.fixture
def batches():
    generator = torch.Generator().manual_seed(0)
    return [
        (torch.randint(0, 50, (4, 6), generator=generator), torch.randn(4, 8, generator=generator)) for _ in range(12)
    ]


def tables():
    torch.manual_seed(0)
    dense = nn.EmbeddingBag(50, 8)
    sparse = copy.deepcopy(dense)
    sparse.sparse = True
    return dense, sparse


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_steps_equal_those_of_dense_gradients(batches, weight_decay):
    dense, sparse = tables()
    expected = train(dense, torch.optim.AdamW(dense.parameters(), weight_decay=weight_decay, **OPTIONS), batches)
    found = train(sparse, TableAdamW(sparse.parameters(), weight_decay=weight_decay, **OPTIONS), batches)
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-5)


def test_saved_state_goes_on_as_if_nothing_had_happened(batches):
    _, whole = tables()
    expected = train(whole, TableAdamW(whole.parameters(), **OPTIONS), batches)
    _, first = tables()
    optimizer = TableAdamW(first.parameters(), **OPTIONS)
    train(first, optimizer, batches[:5])
    again = copy.deepcopy(first)
    resumed = TableAdamW(again.parameters(), **OPTIONS)
    resumed.load_state_dict(optimizer.state_dict())
    assert torch.equal(train(again, resumed, batches[5:]), expected)


def test_table_without_a_gradient_stays(batches):
    _, table = tables()
    before = table.weight.detach().clone()
    TableAdamW(table.parameters(), **OPTIONS).step()
    assert torch.equal(table.weight, before)
