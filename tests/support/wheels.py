"""Wheels for tests: small, local, and real to pip."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from collections.abc import Mapping
from pathlib import Path


def write_wheel(
    folder: Path, name: str, version: str, files: Mapping[str, str], metadata: str = ""
) -> Path:
    """A pure Python wheel with these files; `metadata` are further header lines."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        head = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        contents = {
            **files,
            f"{info}/METADATA": head + metadata,
            f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        record = ""
        for file, text in contents.items():
            archive.writestr(file, text)
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest())
            record += f"{file},sha256={digest.decode().rstrip('=')},{len(text.encode())}\n"
        archive.writestr(f"{info}/RECORD", record + f"{info}/RECORD,,\n")
    return path
