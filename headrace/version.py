"""The one version of both distributions, `headrace` and `headrace-server`.

Both pyproject files read this constant without importing the package, so it stays a literal.
"""

VERSION = "0.1.0"
