"""`lamina` and `python -m lamina` are the command line."""

import sys

from lamina.interrupts import end_interrupted


def main() -> None:
    """The entry point. Ctrl-C ends with 130 and no traceback, even while the command line's modules are imported."""
    try:
        from lamina.cli import main as command_line
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        end_interrupted()
    command_line()


if __name__ == "__main__":
    main()
