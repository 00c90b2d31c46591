"""`python -m lamina` is the command line."""

from lamina.cli import main

main()
