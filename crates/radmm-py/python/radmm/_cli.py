"""The command ``radmm``: the same as the binary of that name."""

from __future__ import annotations

import signal
import sys

from radmm._radmm import run_command


def main() -> None:
    """Runs the command with the arguments of this process, and exits with its code."""
    # The command has no use for Python's handler, which would wait for it to end.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(run_command([sys.executable, "-m", "radmm"], sys.argv[1:]))
