"""The control plane: wishes in SQL, and workers that make them true."""
