"""The content-addressed store as people see it: listing, verification, garbage collection.

Jobs write to it through `agentc.runtime`, which also owns its layout.
"""

from agentc.store.gc import Garbage, collect, find_garbage
from agentc.store.objects import Damage, StoredObject, list_objects, read_object, verify_object
from agentc.store.paths import RunFolder, open_store, plans_folder, store_root

__all__ = [
    "Damage",
    "Garbage",
    "RunFolder",
    "StoredObject",
    "collect",
    "find_garbage",
    "list_objects",
    "open_store",
    "plans_folder",
    "read_object",
    "store_root",
    "verify_object",
]
