"""The package's version, in a file that can be read without importing the package; and what results depend on."""

import platform
from importlib.metadata import version

__version__ = "0.1.0"
PACKAGES = ("bertram-hf", "torch", "transformers")


def installed_versions() -> dict[str, str]:
    """Returns the versions that a record of a run names."""
    return {name: version(name) for name in PACKAGES} | {"python": platform.python_version()}
