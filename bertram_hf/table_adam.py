"""Adam for a large table of embeddings of which a batch reads few rows."""

from typing import Any

import torch


class TableAdamW(torch.optim.AdamW):
    """AdamW for tables with sparse gradients, with the result of dense ones: every row moves in every step.

    Making a dense gradient takes longer than the step itself: as much memory as the table has, new in each step. Here a
    sparse gradient is written into a dense one that is kept, and wiped out of it afterwards.

    Args:
        params: The tables; each gets sparse gradients.
        options: Further arguments of `torch.optim.AdamW`.

    Example:
        >>> table = torch.nn.EmbeddingBag(1000, 8, sparse=True)
        >>> optimizer = TableAdamW(table.parameters(), lr=0.01)
        >>> table(torch.tensor([[1, 2]])).sum().backward()
        >>> optimizer.step()
    """

    def __init__(self, params: Any, **options: Any) -> None:
        super().__init__(params, fused=True, **options)
        self._gradients: dict[torch.Tensor, torch.Tensor] = {}

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Makes one step; the gradients are gone afterwards."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        rows: dict[torch.Tensor, torch.Tensor] = {}
        for table in (parameter for group in self.param_groups for parameter in group["params"]):
            if table.grad is None:
                continue
            sparse = table.grad.coalesce()
            if table not in self._gradients:
                self._gradients[table] = torch.zeros_like(table)
            gradient = self._gradients[table]
            rows[table] = sparse.indices()[0]
            gradient[rows[table]] = sparse.values()
            table.grad = gradient
        super().step()
        for table, touched in rows.items():
            self._gradients[table][touched] = 0.0
            table.grad = None
        return loss
