"""The methods served in Python. Handlers raise `Refused`; `rpc.py` converts it to a status."""
