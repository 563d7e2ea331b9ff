"""The commands: one module for each object or verb, loaded when it is typed."""
