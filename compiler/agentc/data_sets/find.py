"""Which data sets the installed backends declare."""

from __future__ import annotations

from agentc.backend_api import BackendTable, DataSet, EnvironmentBackend


def declared_data_sets(table: BackendTable) -> dict[str, tuple[DataSet, tuple[str, ...]]]:
    """Each data set by its name, with the environments that can use it."""
    found: dict[str, tuple[DataSet, tuple[str, ...]]] = {}
    for backend in table:
        if isinstance(backend, EnvironmentBackend):
            for one in backend.data_sets:
                _, users = found.get(one.name, (one, ()))
                found[one.name] = (one, (*users, backend.id))
    return dict(sorted(found.items()))
