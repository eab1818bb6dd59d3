"""Options of the benchmarks on a CUDA device, the check for a device, and the file of results."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import torch


def parse(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Return the arguments, including `--json`. End the program without a device."""
    parser.add_argument("--json", help="also write the times to this file")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit(f"{Path(parser.prog).stem}: needs a CUDA device that torch sees")
    return options


def write(path: str | None, **times: Any) -> None:
    """Write times and the name of the device to a file, if a path was passed."""
    if path:
        text = json.dumps({"device": torch.cuda.get_device_name(), **times})
        Path(path).write_text(text, encoding="utf-8")
