"""Invoices. Owns drafts, lines and reconciliation. Refuses to compute an amount."""
