"""`bertram push`."""

import argparse
import json
from pathlib import Path
from typing import Any

from ..utils.files import read_json
from ..utils.names import CONFIG_NAME, PROCESSOR_NAME, TRAINING_NAME
from ..utils.paths import hide_paths

# What a training run leaves beside the model, and hidden files. "*" stands for "/" too.
IGNORED = (
    ".*",
    "*/.*",
    "checkpoint-*",
    "optimizer.*",
    "scheduler.*",
    "scaler.*",
    "rng_state*",
    "trainer_state.json",
    "training_args.bin",
    "runs/*",
)


def add_command(commands: Any) -> None:
    """Adds the command to the parser."""
    command = commands.add_parser(
        "push",
        help="upload a saved folder to the Hugging Face Hub",
        description="Uploads a BERTRAM model with its processor, a processor, word vectors, an injected model, or a "
        "masked language model of `bertram masked-lm`. A model without its code files gets them, so that "
        "trust_remote_code=True loads it. Checkpoints, optimizer state and hidden files are not uploaded.",
        epilog="Example: bertram push my-bertram user/my-bertram --private",
    )
    command.add_argument("folder", metavar="FOLDER", help="folder that save_pretrained or a bertram command wrote")
    command.add_argument("repo_id", metavar="REPO_ID", help="name on the Hub; made if it does not exist")
    command.add_argument("--private", action="store_true", help="make a new repository private")
    command.add_argument("--message", help="message of the commit")
    command.add_argument("--revision", help="branch; made if it does not exist")
    command.add_argument(
        "--allow-local-encoder",
        action="store_true",
        help="upload a slim model although its encoder is not on the Hub; users then have to give encoder=",
    )
    command.add_argument("--json", action="store_true", help="print a summary for scripts")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Uploads a folder and prints its address."""
    from huggingface_hub import get_token
    from huggingface_hub.errors import HTTPError

    from ..cards.folders import find_kind
    from ..cards.remote_code import add_remote_code, has_remote_code
    from ..utils.hub import push_folder

    folder = Path(arguments.folder)
    notes = check_folder(folder, allow_local_encoder=arguments.allow_local_encoder)
    if get_token() is None:
        raise ValueError("Expected a login to the Hugging Face Hub; found none. Run `hf auth login`, or set HF_TOKEN.")
    if find_kind(folder) in ("model", "processor") and not has_remote_code(folder):
        names = add_remote_code(folder)
        notes.append(f"Added {len(names)} code files and auto_map to {folder}, for trust_remote_code=True.")
    files = list_files(folder)
    try:
        url = push_folder(
            folder,
            arguments.repo_id,
            private=arguments.private or None,  # None leaves it to the settings of the account
            revision=arguments.revision,
            message=arguments.message or "Upload with bertram_hf",
            ignore_patterns=IGNORED,
        )
    except HTTPError as error:
        raise OSError(_explain(error, arguments.repo_id)) from error
    if arguments.json:
        print(json.dumps({"url": url, "files": files, "notes": notes}))
        return
    print(f"Uploaded {len(files)} files to {url}")
    for note in notes:
        print(f"Note: {note}")


def list_files(folder: Path) -> list[str]:
    """Returns the files that are uploaded, by their paths in the repository."""
    from huggingface_hub.utils import filter_repo_objects

    files = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return list(filter_repo_objects(files, ignore_patterns=list(IGNORED)))


def check_folder(folder: Path, *, allow_local_encoder: bool = False) -> list[str]:
    """Returns what the uploader may want to know, or raises if others could not load the folder.

    Raises:
        ValueError: If the folder is none of ours, a file is missing, or a slim model's encoder is not on the Hub.
    """
    from ..cards.card import CARD_NAME
    from ..cards.folders import find_kind
    from ..induction.word_vectors import METADATA_NAME, VECTORS_NAME
    from ..injection.saving import PACKS_FOLDER, InjectorSettings

    kind = find_kind(folder)
    notes = []
    if kind == "model":
        notes += _check_model(folder, allow_local_encoder)
    elif kind == "processor":
        notes.append("There is no model beside the processor.")
        _check_files(folder, ["tokenizer_config.json"], f'Save it again: `processor.save_pretrained("{folder}")`.')
    elif kind == "words":
        _check_files(folder, [VECTORS_NAME, METADATA_NAME], "Save the vectors again with `vectors.save_pretrained`.")
    elif kind == "masked-lm":
        fix = "Train it again with `bertram masked-lm`, in a new folder."
        _check_files(folder, [CONFIG_NAME, "model*.safetensors", "tokenizer_config.json"], fix)
    else:
        packs = [f"{PACKS_FOLDER}/{pack}" for pack in InjectorSettings.load(folder).packs]
        names = [f"{pack}/{name}" for pack in packs for name in (VECTORS_NAME, METADATA_NAME)]
        fix = "Save the injector again with `injector.save_pretrained`."
        _check_files(folder, [CONFIG_NAME, "model*.safetensors", "tokenizer_config.json", *names], fix)
    if not (folder / CARD_NAME).is_file():
        notes.append(f"There is no {CARD_NAME}. `bertram card {folder}` writes one.")
    return notes


def _check_model(folder: Path, allow_local_encoder: bool) -> list[str]:
    from ..cards.folders import is_hub_name
    from ..tokenization_form import FORM_VOCAB_NAME

    config = read_json(folder / CONFIG_NAME)
    _check_files(folder, ["model*.safetensors"], "Save the model again with `model.save_pretrained`.")
    form_files = [] if config.get("mode") == "context" else [FORM_VOCAB_NAME]
    fix = f'Save the processor too: `processor.save_pretrained("{folder}")`.'
    _check_files(folder, [PROCESSOR_NAME, "tokenizer_config.json", *form_files], fix)
    notes = []
    if (folder / TRAINING_NAME).is_file():
        training = read_json(folder / TRAINING_NAME)
        if hide_paths(training) != training:
            notes.append(f"{TRAINING_NAME} has paths of this machine, which everybody can read then.")
    encoder, is_slim = config.get("encoder_name_or_path"), not config.get("encoder_included", True)
    if encoder is not None and is_hub_name(encoder):
        return notes
    if not is_slim:
        if encoder is not None:
            notes.append(f"{CONFIG_NAME} names the folder of the encoder, {encoder}, which everybody can read then.")
        return notes
    found = "names none" if encoder is None else f"names the local folder {encoder}"
    if allow_local_encoder:
        return [*notes, f"{CONFIG_NAME} {found} as the encoder; users have to give encoder= to from_pretrained."]
    raise ValueError(
        f"{folder} is a slim model, so its encoder must be on the Hub for others to load it; {CONFIG_NAME} {found}. "
        "Save the model with include_encoder=True, set encoder_name_or_path in config.json to the encoder's name on "
        "the Hub, or pass --allow-local-encoder."
    )


def _check_files(folder: Path, patterns: list[str], fix: str) -> None:
    missing = [pattern for pattern in patterns if not any(folder.glob(pattern))]
    if missing:
        raise ValueError(f"Expected {', '.join(patterns)} in {folder}; {', '.join(missing)} is missing. {fix}")


def _explain(error: Exception, repo_id: str) -> str:
    """Returns one line for an error of several."""
    from huggingface_hub.errors import HfHubHTTPError

    if isinstance(error, HfHubHTTPError) and error.response.status_code in (401, 403):
        return (
            f"Expected a token that may write to {repo_id}; the Hub answered {error.response.status_code}. "
            "Run `hf auth login` with a token of the type write, and check the user or organisation in the name."
        )
    return f"The upload to {repo_id} failed: {' '.join(str(error).split())} Check the connection, and try again."
