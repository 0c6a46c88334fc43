"""Runs all benchmarks, prints one table, and compares it with the stored results.

    python benchmarks/all.py                      # about an hour on two cores that do nothing else
    python benchmarks/all.py --only induction --only injection
    python benchmarks/all.py --store              # writes benchmarks/results/

Everything is a ratio within one run. The exit code is 1 if one is more than a tenth worse than the stored one.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
# For each result: the script and its arguments.
COMMANDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "induction": ("induction.py", ()),
    "induction-bfloat16": ("induction.py", ("--dtype", "bfloat16")),
    "corpus": ("corpus.py", ()),
    "injection": ("injection.py", ()),
    "injection-million": ("injection.py", ("--words", "1000000", "--dtype", "float16", "--repetitions", "3")),
    "baking": ("baking.py", ()),
    "training": ("training.py", ("--repetitions", "1")),
    "one_token_approximation": ("one_token_approximation.py", ("--words", "32", "--iterations", "1000")),
    "rarification": ("rarification.py", ("--candidates", "2000")),
}
# Their ratios are times beside the plain model's, or bytes beside those of the vectors: less is better.
TIMES_PLAIN = ("injection", "injection-million", "baking")
MARGIN = 0.1


def list_ratios(results: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Yields all numbers whose name ends in "ratio", and shares of what the machine can do, with their paths."""
    if isinstance(results, dict):
        for name, value in results.items():
            if isinstance(value, int | float) and (name.endswith("ratio") or name == "share_of_product"):
                yield f"{path} {name}".strip(), float(value)
            else:
                yield from list_ratios(value, f"{path} {name}".strip())


def main() -> None:
    """Runs, prints and compares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=COMMANDS, help="run this one; may be given more often")
    parser.add_argument("--store", action="store_true", help="replace the stored results")
    arguments = parser.parse_args()
    slower = False
    print(f"{'benchmark':<26} {'ratio':<46} {'now':>8} {'stored':>8}")
    for name in arguments.only or COMMANDS:
        script, options = COMMANDS[name]
        stored = FOLDER / "results" / f"{name}.json"
        before = dict(list_ratios(json.loads(stored.read_text())["results"])) if stored.is_file() else {}
        with tempfile.TemporaryDirectory() as folder:
            output = stored if arguments.store else Path(folder) / stored.name
            command = [sys.executable, str(FOLDER / script), *options, "--json", str(output)]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            now = dict(list_ratios(json.loads(output.read_text())["results"]))
        for ratio, value in now.items():
            old = before.get(ratio)
            change = 1.0 if not old else old / value if name in TIMES_PLAIN else value / old
            mark = "  slower" if change < 1 - MARGIN else ""
            slower |= bool(mark)
            shown = "" if old is None else f"{old:.3g}"
            print(f"{name:<26} {ratio:<46} {value:>8.3g} {shown:>8}{mark}", flush=True)
    sys.exit(slower)


if __name__ == "__main__":
    main()
