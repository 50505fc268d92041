"""Runs the command ``radmm`` as ``python -m radmm``."""

from radmm._cli import main

if __name__ == "__main__":
    main()
