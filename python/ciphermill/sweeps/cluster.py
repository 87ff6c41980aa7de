"""A sweep on a Dask cluster: the same tasks, other workers.

The results come back here and are kept here; the workers need the package and
nothing else of ours, no files. A worker that dies takes nothing with it: Dask
gives its tasks to another. Dask is optional: ``pip install 'ciphermill[sweep]'``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .. import scratch
from .._core import InputError, version
from .work import Answer, Task, measure

#: Workers that may die over one task before it counts as failed.
DEATHS = 10


@contextmanager
def connected(address: str, workers: int | None = None) -> Iterator[Any]:
    """A `client`, and afterwards none: neither it nor what was started for it, nor a file of theirs."""
    with scratch.folder() as folder:
        client = _client(address, workers, folder)
        try:
            yield client
        finally:
            local = client.cluster if address == "local" else None
            client.close()
            if local is not None:
                local.close()


def _client(address: str, workers: int | None, folder: Path) -> Any:
    """A client of the scheduler at an address, or of one started here for ``local``.

    ``workers`` is how many processes a local cluster has, by default the cores; ``folder`` is where they
    keep what they spill.
    """
    # Optional, and a second to import.
    try:
        import dask
        from distributed import Client, LocalCluster
    except ImportError:
        raise InputError("--cluster needs Dask, which is not installed: pip install 'ciphermill[sweep]'") from None
    dask.config.set({"distributed.scheduler.allowed-failures": DEATHS})
    if address == "local":
        # A nanny has a folder of its own beside its worker's.
        dask.config.set({"temporary-directory": str(folder)})
    try:
        if address == "local":
            cluster = LocalCluster(
                n_workers=workers or os.cpu_count(),
                threads_per_worker=1,
                processes=True,
                dashboard_address=None,
                local_directory=str(folder),
            )
            return Client(cluster)
        return Client(address, timeout=20)
    except (OSError, ValueError) as error:
        raise InputError(f"--cluster {address}: no scheduler there: {error}; start one with `dask scheduler`") from None


def same_version(client: Any) -> None:
    """Workers with another build would measure something else."""
    for worker, theirs in client.run(version).items():
        if theirs != version():
            raise InputError(
                f"--cluster: the worker {worker} has ciphermill {theirs}, this is {version()}; install the same"
            )


def remote(tasks: Sequence[Task], client: Any) -> Iterator[Answer]:
    """Measure on the cluster; answers as they come."""
    from distributed import as_completed

    same_version(client)
    # A name of its own for each task: Dask must not take two for one.
    futures = [client.submit(measure, task, key=f"ciphermill-{task.key}", pure=True) for task in tasks]
    for future in as_completed(futures):
        yield future.result()
        future.release()
