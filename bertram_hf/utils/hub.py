"""Uploading to the Hub what is no Transformers object."""

import os
import tempfile
from collections.abc import Sequence
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
    with tempfile.TemporaryDirectory() as folder:
        item.save_pretrained(folder)
        return push_folder(folder, repo_id, private=private, token=token, message=f"Upload {type(item).__name__}")


def push_folder(
    folder: str | os.PathLike,
    repo_id: str,
    *,
    private: bool | None = None,
    token: str | bool | None = None,
    revision: str | None = None,
    message: str | None = None,
    ignore_patterns: Sequence[str] = (),
) -> str:
    """Uploads a folder, subfolders included, to a model repository in one commit.

    Args:
        folder: What is to be uploaded.
        repo_id: Name on the Hub; the repository is made if it does not exist.
        private: Whether a new repository is private.
        token: Access token; by default the one of `hf auth login`.
        revision: Branch; it is made if it does not exist. By default the main one.
        message: Of the commit.
        ignore_patterns: Files that stay, as `huggingface_hub.HfApi.upload_folder` takes them.

    Returns:
        The address of the repository or, with `revision`, of the branch.
    """
    api = HfApi(token=token)
    url = api.create_repo(repo_id, private=private, exist_ok=True)
    if revision is not None:
        api.create_branch(url.repo_id, branch=revision, exist_ok=True)
    api.upload_folder(
        repo_id=url.repo_id,
        folder_path=os.fspath(folder),
        revision=revision,
        commit_message=message,
        ignore_patterns=list(ignore_patterns),
    )
    return str(url) if revision is None else f"{url}/tree/{revision}"
