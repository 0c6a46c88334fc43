"""Optimisers that minimise one function for each row of a matrix, all rows at once and none through another."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

# From some rows' values (R, H), their numbers (R,), and which function it is of a series (a new one in each iteration
# for Adam, in each stage for L-BFGS), to their losses (R,) and gradients (R, H).
Evaluate = Callable[[torch.Tensor, torch.Tensor, int], tuple[torch.Tensor, torch.Tensor]]
HISTORY_SIZE = 20
# L-BFGS has converged once the loss of a row has fallen by less than the tolerance so many times in a row.
PATIENCE = 3
# New templates make Adam's loss noisy, so that means over so many iterations are compared.
ADAM_WINDOW = 100


@dataclass
class Minimized:
    """Where the rows ended.

    Attributes:
        rows: (W, H).
        losses: (W,), of the last evaluation (L-BFGS) or the mean of the last window (Adam).
        num_iterations: (W,).
    """

    rows: torch.Tensor
    losses: torch.Tensor
    num_iterations: torch.Tensor

    @classmethod
    def at(cls, start: torch.Tensor) -> "Minimized":
        """Returns the rows before the first iteration."""
        losses = torch.full((len(start),), float("nan"), device=start.device)
        return cls(start.clone(), losses, torch.zeros(len(start), dtype=torch.long, device=start.device))

    def write(self, active: torch.Tensor, rows: torch.Tensor, losses: torch.Tensor, num_new: int = 1) -> None:
        """Notes where some rows are after `num_new` more iterations."""
        self.rows[active], self.losses[active] = rows, losses
        self.num_iterations[active] += num_new


def minimize_adam(
    evaluate: Evaluate, start: torch.Tensor, *, learning_rate: float, iterations: int, tolerance: float = 0.0
) -> Minimized:
    """Minimises with Adam as `torch.optim.Adam` does, but leaves out rows that have converged.

    Args:
        evaluate: The functions.
        start: (W, H).
        learning_rate: Step size.
        iterations: Evaluations of a row at most.
        tolerance: A row stops when the mean loss of a window falls by less than this share; 0 never stops.
    """
    result = Minimized.at(start)
    active = torch.arange(len(start), device=start.device)
    rows = start.clone()
    first_moments, second_moments = torch.zeros_like(rows), torch.zeros_like(rows)
    window_losses = torch.zeros(len(rows), device=rows.device)
    last_means = torch.full_like(window_losses, float("inf"))
    for iteration in range(iterations):
        losses, gradients = evaluate(rows, active, iteration)
        first_moments = first_moments.lerp(gradients, 0.1)
        second_moments = second_moments * 0.999 + 0.001 * gradients.square()
        scales = (second_moments / (1 - 0.999 ** (iteration + 1))).sqrt() + 1e-8
        rows = rows - learning_rate / (1 - 0.9 ** (iteration + 1)) * first_moments / scales
        window_losses = window_losses + losses
        window_size = iteration % ADAM_WINDOW + 1
        if window_size == ADAM_WINDOW or iteration + 1 == iterations:
            means = window_losses / window_size
            result.write(active, rows, means, window_size)
            going_on = torch.ones_like(active, dtype=torch.bool)
            if tolerance > 0:
                going_on = last_means - means > tolerance * last_means
                going_on |= last_means.isinf()
            if not going_on.any():
                break
            active, rows, last_means = active[going_on], rows[going_on], means[going_on]
            first_moments, second_moments = first_moments[going_on], second_moments[going_on]
            window_losses = torch.zeros_like(last_means)
    return result


def minimize_lbfgs(
    evaluate: Evaluate, start: torch.Tensor, *, max_step: float, stages: Sequence[int], tolerance: float = 0.0
) -> Minimized:
    """Minimises with L-BFGS: the two-loop recursion for all rows at once; steps that raise a row's loss are undone.

    Args:
        evaluate: The functions; they may change from stage to stage, as long as their curvature is similar.
        start: (W, H).
        max_step: Longest step, as a Euclidean norm; without a history the step is half as long.
        stages: How many steps of a row there are at most in each stage. A step is one evaluation; each stage has one
            more, before its first step.
        tolerance: A row waits for the next stage when its loss has fallen by less than this share three times in a
            row; 0 never waits.
    """
    result = Minimized.at(start)
    history = _History(start)
    for stage, iterations in enumerate(stages):
        active = torch.arange(len(start), device=start.device)
        rows = result.rows.clone()
        losses, gradients = evaluate(rows, active, stage)
        shrinkage = torch.ones_like(losses)
        num_idle = torch.zeros_like(active)
        for _ in range(iterations):
            step = history.propose(active, gradients, max_step) * shrinkage[:, None]
            new_losses, new_gradients = evaluate(rows + step, active, stage)
            history.append(active, step, new_gradients - gradients)
            falls = new_losses < losses
            is_idle = losses - new_losses <= tolerance * losses
            num_idle = torch.where(is_idle, num_idle + 1, torch.zeros_like(num_idle))
            shrinkage = torch.where(falls, torch.ones_like(shrinkage), shrinkage / 2)
            rows = torch.where(falls[:, None], rows + step, rows)
            gradients = torch.where(falls[:, None], new_gradients, gradients)
            losses = torch.where(falls, new_losses, losses)
            result.write(active, rows, losses)
            if tolerance > 0 and (num_idle >= PATIENCE).any():
                going_on = num_idle < PATIENCE
                active, rows, gradients, losses = (t[going_on] for t in (active, rows, gradients, losses))
                shrinkage, num_idle = shrinkage[going_on], num_idle[going_on]
                if len(active) == 0:
                    break
    return result


class _History:
    """The last steps of all rows and how the gradient changed over them, (history, W, H) each.

    A pair of zeros, where a row made no step or its function is not convex, takes no part in the recursion.
    """

    def __init__(self, start: torch.Tensor) -> None:
        self.steps = start.new_zeros(HISTORY_SIZE, *start.shape)
        self.changes = torch.zeros_like(self.steps)

    def append(self, active: torch.Tensor, step: torch.Tensor, change: torch.Tensor) -> None:
        """Adds what (R, H) some rows did; the oldest pair of these rows goes."""
        curvature = (step * change).sum(dim=1)
        is_convex = (curvature > 1e-8 * step.norm(dim=1) * change.norm(dim=1))[None, :, None]
        for pairs, newest in ((self.steps, step), (self.changes, change)):
            pairs[:, active] = torch.cat([pairs[1:, active], newest[None] * is_convex])

    def propose(self, active: torch.Tensor, gradients: torch.Tensor, max_step: float) -> torch.Tensor:
        """Returns the next steps (R, H) of some rows: minus the gradients times the inverse Hessian."""
        steps, changes = self.steps[:, active], self.changes[:, active]
        curvatures = (steps * changes).sum(dim=-1)  # (history, R)
        inverses = torch.where(curvatures > 0, 1 / curvatures, torch.zeros_like(curvatures))
        directions = -gradients
        weights: list[torch.Tensor] = []
        for step, change, inverse in zip(steps.flip(0), changes.flip(0), inverses.flip(0), strict=True):
            weights.append(inverse * (step * directions).sum(dim=1))
            directions = directions - weights[-1][:, None] * change
        scales = torch.ones_like(curvatures[0])
        for change, curvature in zip(changes, curvatures, strict=True):  # the newest pair that counts tells the scale
            scales = torch.where(curvature > 0, curvature / change.square().sum(dim=1).clamp(min=1e-30), scales)
        directions = directions * scales[:, None]
        for step, change, inverse, weight in zip(steps, changes, inverses, reversed(weights), strict=True):
            directions = directions + step * (weight - inverse * (change * directions).sum(dim=1))[:, None]
        is_usable = (curvatures > 0).any(dim=0) & ((directions * gradients).sum(dim=1) < 0)
        directions = torch.where(is_usable[:, None], directions, -gradients)
        lengths = directions.norm(dim=1).clamp(min=1e-30)
        # The length of a gradient says nothing about that of the step, so a first step has the length allowed.
        wanted = torch.where(is_usable, lengths.clamp(max=max_step), torch.full_like(lengths, max_step / 2))
        return directions * (wanted / lengths)[:, None]
