"""How reliable vectors are: learnt on words whose true vectors are known."""

from collections.abc import Mapping, Sequence

import torch

from ..induction.draws import ContextDraws
from ..induction.reliability import NUM_SIGNS, read_signs
from ..induction.word_vectors import WordVectors
from ..modeling_bertram import BertramModel
from ..processing_bertram import BertramProcessor
from ..utils.models import in_eval_mode, unit_rows
from .recovery import hide_words

PENALTY = 1e-3


@torch.inference_mode()
def fit_reliability(
    model: BertramModel,
    processor: BertramProcessor,
    contexts: Mapping[str, Sequence[str]],
    targets: WordVectors,
    *,
    num_contexts: Sequence[int] = (0, 1, 2, 4, 8, 16),
    seed: int = 0,
    show_progress: bool = True,
) -> list[float]:
    """Returns coefficients by which the reliability of other words' vectors is estimated, for `config.reliability`.

    They are a linear regression from the signs of `read_signs` to the cosine with the true vector.

    Args:
        model: The model, which has not been trained on these words.
        processor: Its processor.
        contexts: For each word its contexts.
        targets: The true vectors of the words.
        num_contexts: Numbers of contexts that the vectors are induced from.
        seed: Seed of the choice of contexts.
        show_progress: Whether a run of more than a few seconds shows a progress bar.

    Example:
        >>> from bertram_hf.induction import mean_piece_vectors
        >>> targets = mean_piece_vectors(encoder, tokenizer, list(contexts))
        >>> len(fit_reliability(model, processor, contexts, targets, num_contexts=[0, 1, 2]))
        5
    """
    if model.config.reads_pieces:
        processor = hide_words(processor, list(contexts))
    with in_eval_mode(model):
        draws = ContextDraws(
            model, processor, contexts, max_contexts=2 * max(num_contexts), seed=seed, show_progress=show_progress
        )
        mean = model.get_input_embeddings().weight.detach().float().mean(dim=0).cpu()
        true = unit_rows(torch.stack([targets[word] for word in draws.words]).float().cpu() - mean)
        signs, cosines = [], []
        for number in num_contexts:
            form_embeddings, chosen, counts = draws.draw(number)
            vectors, _ = model.combine(form_embeddings, chosen, counts)
            signs.append(read_signs(model, form_embeddings, chosen, counts, vectors).double().cpu())
            cosines.append((unit_rows(vectors.float().cpu() - mean) * true).sum(dim=1).double())
    rows, found = torch.cat(signs), torch.cat(cosines)
    penalties = PENALTY * len(rows) * torch.eye(NUM_SIGNS, dtype=torch.double)
    coefficients = torch.linalg.solve(rows.T @ rows + penalties, rows.T @ found)
    return [round(value, 4) for value in coefficients.tolist()]
