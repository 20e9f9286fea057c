"""Work on a stopped index: build graphs, drop the space of deleted points.

`optimize()` holds the GIL for its whole length (7 s at 20k points, 3 minutes at 100k), so it never
runs in the serving process.
"""

from __future__ import annotations

from pathlib import Path

from pincite.servers.index.store import IndexStore


def optimize_all(data_dir: Path, *, search_threads: int | None = None) -> dict[str, bool]:
    """Optimise every shard of a data directory that nobody serves.

    Returns:
        collection name -> whether there was something to optimise.

    Raises IndexOwned while a server has the directory, BrokenRegistry when it cannot be read.
    """
    store = IndexStore.open(data_dir, search_threads=search_threads)
    try:
        results = {}
        for name in store.names:
            with store.use(name) as collection:
                results[name] = collection.read(lambda shard: shard.optimize())
                collection.read(lambda shard: shard.flush())
        return results
    finally:
        store.close()
