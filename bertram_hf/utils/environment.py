"""What a run was made with."""

import platform
from importlib.metadata import version

PACKAGES = ("bertram-hf", "torch", "transformers")


def installed_versions() -> dict[str, str]:
    """Returns the versions that a record of a run names."""
    return {name: version(name) for name in PACKAGES} | {"python": platform.python_version()}
