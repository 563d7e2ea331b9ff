"""The control plane: desired state in SQL, and workers that apply it."""
