"""The three cffi modules, each compiled from the C sources by glob.

- ``native._engine``: what the node runs; declares only ``include/engine.h``.
- ``native._engine_sim``: the same sources and the simulator with ``ENGINE_CHECKED``; declares the
  internal headers too, for tests.
- ``headrace._codec``: the batch format alone, for customers.

cffi reads the headers as the compiler does, after the preprocessor, and knows types, enums and
prototypes only: a header with more in it, or with a library's types, stays hidden from tests.
``setup.py build_ext --inplace`` builds all; two variables narrow that while a part is in work:

- ``HEADRACE_MODULES=codec,engine_sim`` builds only these modules;
- ``HEADRACE_SOURCES=batch/batch,foundation/crc32c`` takes only these sources, and their headers,
  into a module.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from cffi import FFI

ROOT = Path(__file__).absolute().parent.parent

CODEC_SOURCES = (
    "batch/batch batch/batch_records batch/codec "
    "foundation/crc32c foundation/limits foundation/status"
).split()

# Headers that several sources implement: the first of them stands for all.
BEHIND = {"codec": "batch/codec", "engine": "engine/engine", "store/store": "store/state"}

STRICT = ["-Wall", "-Wextra", "-Wconversion", "-Wshadow"]

# A header is included by its path below one of FOLDERS. -iquote, not -I: only quotes find ours.
# Python's own flags define NDEBUG, which would disarm a system assert that reaches us through a
# library's header.
FOLDERS = ["native/include", "native/src", "native/sim"]
FLAGS = ["-std=gnu11", "-D_GNU_SOURCE", "-UNDEBUG", "-fvisibility=hidden", "-pthread", *STRICT]
FLAGS += [f"-iquote{folder}" for folder in FOLDERS]

LIBRARIES = {
    "isa-l/crc.h": "isal",
    "lz4.h": "lz4",
    "zstd.h": "zstd",
    "nghttp2/nghttp2.h": "nghttp2",
    "openssl/ssl.h": "ssl",
    "openssl/evp.h": "crypto",
    "openssl/sha.h": "crypto",
}

# What cffi does not read.
_CODE = re.compile(r"\b(static inline|static_assert|_Static_assert|__attribute__|_Thread_local)\b")
_INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^">]+)[">]', re.MULTILINE)


def _includes(path: Path) -> list[tuple[str, str]]:
    """(``<`` or ``"``, name) of every include of a file of ours."""
    return _INCLUDE.findall((ROOT / path).read_text())


def _find(name: str) -> Path | None:
    """Where a header of ours is, by the name it is included with."""
    for folder in FOLDERS:
        if (ROOT / folder / name).exists():
            return Path(folder) / name
    return None


def _name(path: Path) -> str:
    """The path by which a file of ours is included, without its ending."""
    folder = next(folder for folder in FOLDERS if path.is_relative_to(folder))
    return path.relative_to(folder).with_suffix("").as_posix()


def _plain(header: Path) -> bool:
    """True if cffi can read the header and all it includes: types, enums, prototypes only."""
    if _CODE.search((ROOT / header).read_text()):
        return False
    for bracket, name in _includes(header):
        if bracket == "<" and name not in {"stddef.h", "stdint.h"}:
            return False
        included = _find(name) if bracket == '"' else None
        if included is not None and included != header and not _plain(included):
            return False
    return True


def _ordered(headers: Sequence[Path]) -> list[Path]:
    """The headers and all they include, each after those it includes."""
    ordered: list[Path] = []

    def visit(header: Path) -> None:
        if header in ordered:
            return
        for bracket, name in _includes(header):
            included = _find(name) if bracket == '"' else None
            if included is not None and included != header:
                visit(included)
        ordered.append(header)

    for header in headers:
        visit(header)
    return ordered


def _declarations(header: Path, *, functions: bool) -> str:
    """What cffi is told of one header: its own text through the preprocessor, without includes.

    Without ``functions`` only its types: a prototype without a body fails when the module loads.
    """
    text = re.sub(r"^\s*#\s*include\b.*$", "", (ROOT / header).read_text(), flags=re.MULTILINE)
    compiler = os.environ.get("CC", "cc").split()
    done = subprocess.run(
        [*compiler, "-E", "-P", "-undef", "-x", "c", "-"],
        input=text,
        capture_output=True,
        check=True,
        text=True,
    )
    if functions:
        return done.stdout
    return "\n".join(
        declaration
        for declaration in re.findall(r"[^;{]*(?:\{[^}]*\}[^;{]*)?;", done.stdout)
        if "(" not in declaration.partition("{")[0]
    )


def _libraries(sources: Sequence[Path]) -> list[str]:
    """The libraries to link, found from what the sources include and this machine has."""
    wanted = {LIBRARIES.get(name) for path in sources for _, name in _includes(path)}
    found = sorted(name for name in wanted if name is not None)
    if "isal" in found and not Path("/usr/include/isa-l/crc.h").exists():
        found.remove("isal")  # crc32c.c then falls back to its tables
    return found


def _sources(folders: Sequence[str], only: Sequence[str] | None) -> list[Path]:
    """C files of the folders, relative to the root; ``only`` narrows those of ``native/src``."""
    narrowed = os.environ.get("HEADRACE_SOURCES")
    if only is None and narrowed:
        only = narrowed.split(",")
    found = sorted(
        path.relative_to(ROOT) for folder in folders for path in (ROOT / folder).rglob("*.c")
    )
    return [path for path in found if only is None or _name(path) in only]


def _internal_headers(sources: Sequence[Path]) -> list[Path]:
    """The headers that _engine_sim declares: all that cffi can read, of the sources taken."""
    narrowed = os.environ.get("HEADRACE_SOURCES") is not None
    names = {_name(path) for path in sources}
    headers = sorted(
        path.relative_to(ROOT) for folder in FOLDERS for path in (ROOT / folder).rglob("*.h")
    )
    wanted = [header for header in headers if _name(header) in names or not narrowed]
    return [header for header in wanted if _plain(header)]


def _module(
    name: str, headers: Sequence[Path], sources: Sequence[Path], flags: Sequence[str]
) -> FFI:
    ffi = FFI()
    names = {_name(path) for path in sources}
    ordered = _ordered(headers)
    for header in ordered:
        module = _name(header)
        ffi.cdef(_declarations(header, functions=BEHIND.get(module, module) in names))
    ffi.set_source(
        name,
        "\n".join(f'#include "{_name(header)}.h"' for header in ordered),
        sources=[str(path) for path in sources],
        depends=[
            "native/build.py",
            *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "native").rglob("*.h")),
        ],
        libraries=_libraries(sources),
        extra_compile_args=[*FLAGS, *flags],
        extra_link_args=["-pthread"],
        py_limited_api=True,
    )
    return ffi


def engine() -> FFI:
    """What the node runs."""
    headers = [Path("native/include/engine.h")]
    return _module("native._engine", headers, _sources(["native/src"], None), ["-O2"])


def engine_sim() -> FFI:
    """What tests and the simulator run."""
    sources = _sources(["native/src", "native/sim"], None)
    headers = _internal_headers(sources)
    return _module("native._engine_sim", headers, sources, ["-O1", "-g", "-DENGINE_CHECKED"])


def codec() -> FFI:
    """What customers get: the batch format alone."""
    headers = [Path("native/include/codec.h")]
    return _module("headrace._codec", headers, _sources(["native/src"], CODEC_SOURCES), ["-O2"])
