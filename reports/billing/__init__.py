"""From frozen inputs to usage, priced rows and draft invoices. No files, no pages."""
