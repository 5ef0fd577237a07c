"""Real data that an environment can use and that is not agentc's to ship: where it comes from, what
makes the environment's own form of it, and by which hashes that form is known.

An `EnvironmentBackend` lists its data sets; `agentc data` (`agentc.data_sets`) fetches them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSource:
    """One file to download. `name` is what it is called here; a `.zip` is unpacked. `size` is in
    bytes, as published: more than twice as much is refused."""

    name: str
    url: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """`name` is what `agentc data fetch` takes, `use` what a spec writes, with `{path}` for where
    the data lies.

    `program` is a module's arguments, run by the Python that runs agentc (standard library only)
    as `python *program FETCHED OUT`: the folder with what was downloaded, unpacked, and the folder
    to fill. `contents` are the files that OUT must hold then: a name without a compression's suffix
    (.xz, .gz) to the SHA-256 of what is in it, decompressed. `unpacked_size` bounds what archives
    may hold, twice over.
    """

    name: str
    doc: str
    licence: str
    sources: tuple[DataSource, ...]
    unpacked_size: int
    program: tuple[str, ...]
    contents: Mapping[str, str]
    use: str
