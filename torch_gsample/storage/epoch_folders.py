"""The folders of prepared epochs, and the thread that prepares the next one.

A state has the thread as ``work`` and a :class:`Folder` for each epoch as
``folders``. The process that created it closes and removes them.
"""

import os
from typing import Any

from torch_gsample.owned_folder import OwnedFolder


def remove_others(state: dict[str, Any], epoch: int) -> None:
    """Removes the results of all epochs except the one before ``epoch``."""
    folders = state['folders']
    for old in [e for e in folders if not epoch - 1 <= e < epoch]:
        folders.pop(old).remove()


def close_inherited(state: dict[str, Any]) -> None:
    """Closes the inherited result files of a forked process.

    They would hold memory that their owner has freed.
    """
    folders = state['folders']
    # A copy: in the owner, a thread may prepare an epoch now.
    for epoch, folder in list(folders.items()):
        if folder.process != os.getpid():
            folders.pop(epoch).close()


def remove_all(owner: int, state: dict[str, Any], folder: OwnedFolder) -> None:
    """Stops the thread of a sampler and removes its results.

    A forked process has a copy, and does neither.
    """
    if os.getpid() != owner:
        return
    work, state['work'] = state['work'], None
    if work is not None:
        work.stop()
    for results in state['folders'].values():
        results.close()
    folder.remove()
