"""The command line: `headrace`. Thin over the SDK; its output contract is output.py, tested for
every command."""
