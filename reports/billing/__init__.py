"""From frozen inputs to usage, priced rows and draft invoices. Refuses to write files or pages."""
