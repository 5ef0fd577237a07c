"""`--store`, apart from `arguments.py`: commands that only look into a store compile nothing."""

from __future__ import annotations

import argparse


def add_store_argument(parser: argparse.ArgumentParser) -> None:
    """For commands that read or fill a store."""
    parser.add_argument("--store", metavar="DIR", help="default: $AGENTC_STORE, else .agentc/store")
