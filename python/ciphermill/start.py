"""The command's first lines: from here on an interrupt ends it without a traceback.

Importing the command line takes some tenths of a second, in which nothing is begun that
would have to be cleared away: the signal's own effect is right until
`scratch.leave_clean` takes over. Imports nothing that takes time.
"""

import signal

signal.signal(signal.SIGINT, signal.SIG_DFL)


def main() -> None:
    """The entry point."""
    from .cli import main

    main()
