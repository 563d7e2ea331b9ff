"""The commands: one module per object or verb, loaded on first use."""
