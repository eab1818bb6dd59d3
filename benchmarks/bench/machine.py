"""Describe this machine and the versions of the peers: the head of every report."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gatherum import __version__
from gatherum._system import native

from . import peers

CPUINFO = Path("/proc/cpuinfo")
MEMINFO = Path("/proc/meminfo")
CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")


def describe(command: list[str]) -> dict[str, Any]:
    """Return the date, the command, the machine and the versions."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": " ".join(command),
        "machine": {
            "cpu": _cpu(),
            "cores": os.cpu_count(),
            "caches": _caches(),
            "memory_bytes": _meminfo("MemTotal"),
            "kernel": platform.release(),
            "system": platform.system(),
            "huge_pages": _chosen(HUGE_PAGES),
        },
        "gatherum": {
            "level": native.level(),
            "threads": native.get_num_threads(),
            "output_cache_bytes": native.get_cache_limit(),
        },
        "versions": {
            "python": platform.python_version(),
            peers.OURS: __version__,
            **{name: peers.version_of(name) for name in peers.PEERS},
        },
    }


def available_memory() -> int | None:
    """Return the available memory in bytes, or None if the system does not report it."""
    return _meminfo("MemAvailable")


def _cpu() -> str:
    if CPUINFO.exists():
        for line in CPUINFO.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _caches() -> dict[str, str]:
    """Return the size of each cache of core 0, as reported by the system."""
    sizes = {}
    for folder in sorted(CACHES.glob("index*")):
        cache_type = (folder / "type").read_text().strip()
        suffix = {"Data": "d", "Instruction": "i"}.get(cache_type, "")
        sizes[f"L{(folder / 'level').read_text().strip()}{suffix}"] = (
            (folder / "size").read_text().strip()
        )
    return sizes


def _meminfo(name: str) -> int | None:
    if MEMINFO.exists():
        for line in MEMINFO.read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
    return None


def _chosen(path: Path) -> str | None:
    """Return the word in brackets of a system setting."""
    if not path.exists():
        return None
    return path.read_text().partition("[")[2].partition("]")[0]
