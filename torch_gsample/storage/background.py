"""Runs work in a background thread, one task at a time."""

import os
import threading
from collections.abc import Callable
from typing import Any


class Background:
    """Runs a function in a thread.

    Args:
        function (Callable): Called with an event. When the event is set, it
            should end early.
    """

    def __init__(self, function: Callable[[threading.Event], Any]):
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._process = os.getpid()

        def work() -> None:
            try:
                function(self._stop)
            except BaseException as error:
                self._error = error

        self._thread = threading.Thread(
            target=work, name='torch_gsample_background', daemon=True
        )
        self._thread.start()

    def wait(self) -> None:
        """Waits until it is done; raises its error here, once.

        Raises:
            RuntimeError: In a forked child, which does not have the thread.
        """
        if os.getpid() != self._process:
            raise RuntimeError(
                'StreamingSampler: an epoch must be awaited in the process '
                f'that prepares it ({self._process}) (got {os.getpid()})'
            )
        self._thread.join()
        try:
            if self._error is not None:
                raise self._error
        finally:
            self._error = None  # its traceback refers to this object

    def stop(self) -> None:
        """Requests the end of the function and waits for it."""
        self._stop.set()
        if threading.current_thread() is not self._thread:
            self._thread.join()
