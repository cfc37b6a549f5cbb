"""`python -m mc` is the `tailstep` command."""

from mc.cli.app import main

main()
