"""`python -m bertram_hf.cli`, also under `torchrun -m bertram_hf.cli`."""

import sys

from .main import main

sys.exit(main())
