"""What bertram_hf saved in a folder, read without loading weights."""

import os
from math import prod
from pathlib import Path
from typing import Literal

from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils import validate_repo_id
from safetensors import safe_open

from ..induction.word_vectors import VECTORS_NAME
from ..injection.saving import SETTINGS_NAME
from ..utils.files import read_json
from ..utils.names import CONFIG_NAME, MASKED_LM_NAME, PROCESSOR_NAME

FolderKind = Literal["model", "processor", "words", "injected", "masked-lm"]


def find_kind(folder: Path) -> FolderKind:
    """Returns what a folder holds; a model may have its processor beside it.

    Raises:
        ValueError: If it is none of these.
    """
    if (folder / SETTINGS_NAME).is_file():
        return "injected"
    if (folder / VECTORS_NAME).is_file():
        return "words"
    if (folder / MASKED_LM_NAME).is_file():
        return "masked-lm"
    if (folder / CONFIG_NAME).is_file():
        model_type = read_json(folder / CONFIG_NAME).get("model_type")
        if model_type == "bertram":
            return "model"
        found = f"{CONFIG_NAME} of a {model_type} model"
    elif (folder / PROCESSOR_NAME).is_file():
        processor_class = read_json(folder / PROCESSOR_NAME).get("processor_class")
        if processor_class == "BertramProcessor":
            return "processor"
        found = f"{PROCESSOR_NAME} of a {processor_class}"
    else:
        found = "none of these files" if folder.is_dir() else "no such folder"
    raise ValueError(
        f"Expected a folder with a BERTRAM model ({CONFIG_NAME}), its processor ({PROCESSOR_NAME}), word vectors "
        f"({VECTORS_NAME}), an injected model ({SETTINGS_NAME}) or a masked language model with a trained head "
        f"({MASKED_LM_NAME}); found in {folder}: {found}. Give what save_pretrained or a bertram command wrote; "
        "`hf upload` takes other folders."
    )


def is_hub_name(name: str) -> bool:
    """Whether others find a model under this name; a local folder of this name comes first, as in Transformers."""
    try:
        validate_repo_id(name)
    except HFValidationError:
        return False
    return not os.path.isdir(name)


def count_parameters(folder: Path) -> dict[str, int]:
    """Returns the size of each of a model's weights, from the headers of the files."""
    shapes = [read_shapes(path) for path in sorted(folder.glob("model*.safetensors"))]
    return {key: prod(shape) for file in shapes for key, shape in file.items()}


def read_shapes(path: Path) -> dict[str, list[int]]:
    """Returns the shape of each tensor in a file, from its header."""
    with safe_open(path, framework="numpy") as file:
        return {key: file.get_slice(key).get_shape() for key in file.keys()}  # noqa: SIM118 (no mapping)
