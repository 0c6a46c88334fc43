"""Uploading to the Hub what is no Transformers object."""

import tempfile
from typing import Any, Protocol

from huggingface_hub import HfApi


class Saveable(Protocol):
    """Anything that writes itself into a folder."""

    def save_pretrained(self, save_directory: Any) -> Any:
        """Writes everything into `save_directory`."""


def push_saved(item: Saveable, repo_id: str, *, private: bool | None = None, token: str | bool | None = None) -> str:
    """Saves `item` and uploads the folder, subfolders included, to a model repository.

    Args:
        item: What is to be uploaded.
        repo_id: Name on the Hub; the repository is made if it does not exist.
        private: Whether a new repository is private.
        token: Access token; by default the one of `hf auth login`.

    Returns:
        The repository's address.
    """
    api = HfApi(token=token)
    url = api.create_repo(repo_id, private=private, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        item.save_pretrained(folder)
        api.upload_folder(repo_id=url.repo_id, folder_path=folder, commit_message=f"Upload {type(item).__name__}")
    return str(url)
