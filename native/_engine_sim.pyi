"""Types of the module that tests and the simulator run: whatever the headers of native/ declare."""

from typing import Any, TypeAlias

# A value of C's.
CData: TypeAlias = Any

ffi: Any
lib: Any
