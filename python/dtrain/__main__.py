# SPDX-License-Identifier: Apache-2.0
"""The program `dtrain` of this package, in place of this process."""

import os
import sys

from ._build import BINDIR


def program():
    """Path of the program that this package contains."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "_root", BINDIR, "dtrain")


def main():
    os.execv(program(), ["dtrain", *sys.argv[1:]])


if __name__ == "__main__":
    main()
