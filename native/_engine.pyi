"""Types of the compiled module. Everything C is Any: native/engine.py is its only reader."""

from typing import Any

ffi: Any
lib: Any
