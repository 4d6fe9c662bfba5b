"""The same as the `a2a-ledger` command, for a checkout: `python cli.py VERB …`."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent
sys.path[:0] = [str(ROOT / "ledger"), str(ROOT / "projections")]

from a2a_ledger.cli import main  # noqa: E402 - the source roots must be on the path first

if __name__ == "__main__":
    main()
