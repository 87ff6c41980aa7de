"""``python -m ciphermill``."""

from .cli import main

main()
