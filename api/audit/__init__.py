"""The audit log. Owns the pages of the audit log. Refuses to write a link of the chain."""
