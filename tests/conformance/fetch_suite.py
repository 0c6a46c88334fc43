"""Fetches the tests that Transformers ships with its source, once: `python tests/conformance/fetch_suite.py`.

A wheel does not hold them, so pip downloads the source archive of the installed version from the index that it is set
up for (10 MB, some ten seconds). The files become a package of its own name, as `tests` is the name of our folder too.
"""

import subprocess
import sys
import tarfile
import tempfile
from importlib.metadata import version
from pathlib import Path

VERSION = version("transformers")
SUITE_FOLDER = Path(__file__).parents[2] / ".cache" / "transformers-suite" / VERSION
PACKAGE_NAME = "transformers_suite"


def fetch_suite() -> Path:
    """Makes sure that the package `transformers_suite` is in `SUITE_FOLDER`, and returns its path."""
    package = SUITE_FOLDER / PACKAGE_NAME
    if package.is_dir():
        return package
    SUITE_FOLDER.mkdir(parents=True, exist_ok=True)
    # On the same disk as the package, so that a broken download never leaves half of it.
    with tempfile.TemporaryDirectory(dir=SUITE_FOLDER) as folder:
        requirement = ["--no-deps", "--no-binary", "transformers", f"transformers=={VERSION}"]
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--dest", folder, *requirement], check=True)
        (archive,) = Path(folder).glob("*.tar.gz")
        with tarfile.open(archive) as tar:
            members = [member for member in tar if Path(member.name).parts[1:2] == ("tests",)]
            tar.extractall(folder, members=members, filter="data")
        (tests,) = Path(folder).glob("*/tests")
        (tests / "__init__.py").touch()
        tests.rename(package)
    return package


if __name__ == "__main__":
    print(f"The tests of Transformers {VERSION} are in {fetch_suite()}")
