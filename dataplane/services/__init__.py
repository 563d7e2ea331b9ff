"""What each cold method means. Handlers raise `Refused`; `rpc.py` makes statuses of it."""
