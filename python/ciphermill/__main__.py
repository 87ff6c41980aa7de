"""``python -m ciphermill``."""

from .start import main

main()
