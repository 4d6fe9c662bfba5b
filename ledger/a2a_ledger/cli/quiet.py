"""Keeps loggers quiet while something noisy runs on purpose, and leaves them as they were."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator


@contextmanager
def quiet(**levels: int) -> Generator[None]:
    """Raise the level of loggers, by name, for as long as this lasts."""
    before = {name: logging.getLogger(name).level for name in levels}
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)
    try:
        yield
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)
