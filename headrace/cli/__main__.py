"""`python -m headrace.cli`: the command line without the installed script."""

from headrace.cli.main import main

main()
