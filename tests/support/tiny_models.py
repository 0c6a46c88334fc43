"""Files, tiny configurations and a tokenizer that several tests use."""

from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

ORIGINAL = Path(__file__).parents[1] / "data" / "original"

# One tiny configuration for each encoder family; embedding_size differs from hidden_size where the family allows it.
SMALL = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 48}
FAMILIES = {
    "bert": SMALL | {"max_position_embeddings": 64},
    "roberta": SMALL | {"max_position_embeddings": 66, "pad_token_id": 1},
    "xlm-roberta": SMALL | {"max_position_embeddings": 66, "pad_token_id": 1},
    "camembert": SMALL | {"max_position_embeddings": 66, "pad_token_id": 1},
    "electra": SMALL | {"embedding_size": 16, "max_position_embeddings": 64},
    "albert": SMALL | {"embedding_size": 16, "max_position_embeddings": 64},
    "distilbert": {"dim": 32, "n_layers": 3, "n_heads": 4, "hidden_dim": 48, "max_position_embeddings": 64},
    "mpnet": SMALL | {"max_position_embeddings": 66, "pad_token_id": 1},
    "deberta": SMALL | {"max_position_embeddings": 64},
    "deberta-v2": SMALL | {"max_position_embeddings": 64, "relative_attention": True, "pos_att_type": ["p2c", "c2p"]},
    "modernbert": SMALL | {"max_position_embeddings": 64, "reference_compile": False, "pad_token_id": 0},
}


def make_sentencepiece_tokenizer(pieces: list[str]) -> PreTrainedTokenizerFast:
    """Returns a tokenizer of these pieces, "▁" for spaces and "<unk>"; earlier pieces are likelier."""
    scores = [(piece, -1.0 - i / 100) for i, piece in enumerate(["<unk>", "▁", *pieces])]
    backend = Tokenizer(models.Unigram(scores, 0))
    backend.pre_tokenizer, backend.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    return PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="<unk>")
