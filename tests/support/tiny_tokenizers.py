"""Small tokenizers of the families that encode differently, which all have "old" and "king" as one token."""

from support.tiny_models import ORIGINAL
from transformers import (
    BertTokenizer,
    MPNetTokenizer,
    PreTrainedTokenizerBase,
    RobertaTokenizer,
    XLMRobertaTokenizer,
)

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def make_tokenizers() -> dict[str, PreTrainedTokenizerBase]:
    """Returns one tokenizer for each family; "roberta-split" is the RoBERTa that takes pre-split words."""
    marks = ",.()/"
    pieces = ["▁", "▁old", "▁king", "▁the", "g,", *marks, *LETTERS]  # "g," reaches beyond a word
    scores = [(special, 0.0) for special in ("<s>", "<pad>", "</s>", "<unk>")]
    scores += [(piece, -3.0 - i / 50) for i, piece in enumerate(pieces)]
    wordpieces = ["<s>", "<pad>", "</s>", "[UNK]", "<mask>", "old", "king", "the", *marks, *LETTERS]
    wordpieces += [f"##{letter}" for letter in LETTERS]
    return {
        "bert": BertTokenizer.from_pretrained(ORIGINAL / "tiny-bert"),
        "roberta": RobertaTokenizer.from_pretrained(ORIGINAL / "tiny-roberta"),
        "roberta-split": RobertaTokenizer.from_pretrained(ORIGINAL / "tiny-roberta", add_prefix_space=True),
        "xlm-roberta": XLMRobertaTokenizer(vocab=scores),
        "mpnet": MPNetTokenizer(vocab={piece: i for i, piece in enumerate(wordpieces)}),
    }
