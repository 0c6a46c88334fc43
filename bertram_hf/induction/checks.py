"""What is checked before vectors are induced."""

import logging
from collections.abc import Mapping, Sequence

from transformers import PreTrainedModel

from ..configuration_bertram import BertramConfig
from ..modeling_bertram import BertramModel
from ..processing_bertram import PREFIX_OF_MODE, BertramProcessor
from ..processing_words import WordError

logger = logging.getLogger(__name__)


def refuse_failing_words(failed: Mapping[str, str], num_words: int) -> None:
    """Raises a WordError that says why words cannot have a vector, if there are any."""
    if failed:
        listed = "\n".join(f"- {reason}" for reason in list(failed.values())[:10])
        raise WordError(
            f"{len(failed)} of {num_words} words cannot have a vector:\n{listed}\n"
            'Mend them, or leave them out: errors="skip", on the command line --skip-errors.'
        )


def check_is_bertram(model: PreTrainedModel) -> None:
    """Raises a ValueError if the model is another one, such as the encoder that vectors are wanted for."""
    found = model.config.model_type
    if found != BertramConfig.model_type:
        raise ValueError(
            f"Expected a BERTRAM model; {model.name_or_path or type(model).__name__} is a {found} model. Give the "
            "folder of the BERTRAM model; the encoder that it was trained for is given as encoder= (--encoder)."
        )


def check_processor_fits(model: BertramModel, processor: BertramProcessor, *, warn: bool = True) -> None:
    """Raises a ValueError if the processor makes ids that the model has no weights for; warns if their modes differ."""
    check_is_bertram(model)
    config = model.config
    if config.reads_pieces != processor.pieces:
        reads, writes = ("reads", "does not write") if config.reads_pieces else ("does not read", "writes")
        raise ValueError(
            f"The model {reads} the pieces of words, but the processor {writes} them. Use the processor that was saved "
            "with the model."
        )
    if config.has_form_encoder:
        num_units = None if processor.form is None else len(processor.form)
        if num_units != config.form_vocab_size:
            raise ValueError(
                f"The model has embeddings for {config.form_vocab_size} n-grams or characters; the processor's form "
                f"vocabulary has {num_units}. Use the processor that was saved with the model."
            )
    if config.look_alikes != (processor.look_alikes is not None):
        has, other = ("has", "knows no") if config.look_alikes else ("has no", "knows")
        raise ValueError(
            f"The model {has} weights for look-alikes, but the processor {other} words that others may be misspellings "
            "of. Use the processor that was saved with the model."
        )
    if not config.has_context:
        return
    num_embeddings = model.get_input_embeddings().weight.shape[0]
    if len(processor.tokenizer) > num_embeddings:
        raise ValueError(
            f"The tokenizer has {len(processor.tokenizer)} tokens, the encoder {num_embeddings} embeddings. "
            "Use the tokenizer that was saved with the model."
        )
    max_positions = getattr(config.text_config, "max_position_embeddings", None)
    if max_positions is not None and 0 < max_positions < processor.max_length:
        raise ValueError(
            f"The processor's max_length is {processor.max_length}, the encoder has {max_positions} positions. "
            "Set processor.max_length to at most that."
        )
    prefix = PREFIX_OF_MODE.get(config.mode, "none")
    if warn and processor.prefix != prefix:
        logger.warning(
            f"The model's mode {config.mode!r} goes with the prefix {prefix!r}, but the processor writes "
            f"{processor.prefix!r}. This is how some released checkpoints were trained; otherwise it is a mistake."
        )


def find_failing_words(
    model: BertramModel, processor: BertramProcessor, contexts: Mapping[str, Sequence[str]]
) -> dict[str, str]:
    """Returns why words cannot have a vector, before the encoder runs.

    Contexts are searched here only where it depends on them: for a context-only model up to the first that holds the
    word, and for white-space matching, which fails where the released code does.
    """
    config = model.config
    failed: dict[str, str] = {}
    for word, texts in contexts.items():
        try:
            processor.check(word, texts if config.has_context else [])
            if not config.has_form and len(texts) == 0:
                raise WordError(f"{word!r} has no contexts, and a context-only model cannot do without.")
            if config.has_context and processor.match == "whitespace":
                processor.locate(word, texts)
            elif not config.has_form and all(processor.locate(word, [text]) == [None] for text in texts):
                raise WordError(f"None of the {len(texts)} contexts of {word!r} holds it.")
        except WordError as error:
            failed[word] = str(error)
    return failed
