"""The inputs of a run: frozen, verified and archived before the first figure is computed."""
