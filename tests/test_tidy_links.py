"""Nothing points the wrong way or nowhere: C includes, dead files, documents and their links."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.support.source import CODE, ROOT, chosen, numbered, report, text, tree

# --- includes point down ------------------------------------------------------------------------

# The rooms of native/src, each above those before it: a file includes its own room and those.
ROOMS = (
    "foundation", "io", "batch", "wire", "journal", "segment", "partition", "vsr", "catalog",
    "store", "usage", "http2", "grpc", "service", "host", "shard", "engine",
)  # fmt: skip
# They may ask the system; io/io.h is how the others ask for I/O.
WITH_SYSTEM_CALLS = {"io", "http2", "shard", "engine"}
SYSTEM_HEADERS = re.compile(
    r"<(sys/(?!types)\w+|unistd|fcntl|pthread|netinet/\w+|time|nghttp2/\w+)"
)
# Memory at the start, what the processor can do, how a thread is made.
SYSTEM_FILES = {"foundation/arena.c", "foundation/crc32c.c", "foundation/thread.c"}
C_MODULES_MAX = 20


def headers_included(path: Path) -> Iterator[tuple[int, str]]:
    """Line and path of each of our headers that a C file includes; public headers have no room."""
    for number, line in numbered(text(path)):
        if found := re.match(r'\s*#\s*include\s+"(\w+/[\w/]+\.h)"', line):
            yield number, found.group(1)


def test_c_includes_point_down() -> None:
    report(
        [
            f"{path}:{number}: {included} lies above {path.parts[2]}/; turn it round"
            for path in chosen(".c", ".h", under="native/src/")
            for number, included in headers_included(path)
            if ROOMS.index(included.partition("/")[0]) > ROOMS.index(path.parts[2])
        ]
    )


def test_a_state_is_known_in_its_own_room_alone() -> None:
    report(
        [
            f"{path}:{number}: {included} is private to its room; ask its functions"
            for path in chosen(".c", ".h", under="native/")
            for number, included in headers_included(path)
            if included.endswith("/state.h")
            and not path.is_relative_to(Path("native/src") / included.partition("/")[0])
            # A fuzz target turns the shards of an engine by hand.
            and (path.parts[1], included) != ("fuzz", "engine/state.h")
        ]
    )


def parts_of_a_replica() -> dict[str, Path]:
    """The folder that owns each part of struct replica: where the part's struct is defined."""
    header = text(Path("native/src/store/replica.h"))
    owners = {
        struct: path.parent
        for path in chosen(".h", under="native/src/store/")
        for struct in re.findall(r"^struct (\w+) \{", text(path), re.MULTILINE)
    }
    fields = re.findall(r"^    struct (\w+) (\w+);", header, re.MULTILINE)
    return {name: owners[struct] for struct, name in fields if struct in owners}


def test_a_part_of_a_replica_is_touched_in_its_own_folder_alone() -> None:
    parts = parts_of_a_replica()
    assert len(parts) > 10
    touches = re.compile(rf"\b(?:replica|registry_at\([^)]*\))->({'|'.join(parts)})\b")
    report(
        [
            f"{path}:{number}: replica->{name} belongs to {parts[name]}/; ask its functions"
            for path in chosen(".c", ".h", under="native/")
            for number, line in numbered(text(path))
            for name in touches.findall(line)
            if path.parent != parts[name]
        ]
    )


def test_a_shard_is_known_to_the_engine_alone() -> None:
    report(
        [
            f"{path}:{number}: only shard/ and engine/ know struct shard; take what it lends"
            for path in chosen(".c", ".h", under="native/src/")
            if path.parts[2] not in {"shard", "engine"}
            for number, line in numbered(text(path))
            if re.search(r"\bstruct shard\b", line)
        ]
    )


def test_every_c_file_lies_in_a_room_that_can_be_seen_at_a_glance() -> None:
    folders = Counter(path.parent for path in chosen(".c", under="native/"))
    findings = [
        f"{folder}: {count} modules; find the room in it"
        for folder, count in folders.items()
        if count > C_MODULES_MAX
    ]
    found = {path.parts[2] for path in chosen(".c", ".h", under="native/src/")}
    assert found == set(ROOMS)
    report(findings)


def test_the_core_makes_no_system_calls() -> None:
    report(
        [
            f"{path}:{number}: {line.strip()}: ask through io/io.h"
            for path in chosen(".c", ".h", under="native/src/")
            if path.parts[2] not in WITH_SYSTEM_CALLS
            and path.relative_to("native/src").as_posix() not in SYSTEM_FILES
            for number, line in numbered(text(path))
            if line.startswith("#include") and SYSTEM_HEADERS.search(line)
        ]
    )


# --- nothing dead --------------------------------------------------------------------------------


def test_every_header_is_included_by_somebody() -> None:
    sources = "\n".join(text(p) for p in (*chosen(".c", ".h"), Path("native/build.py")))
    report(
        [
            f"{path}: nobody includes it"
            for path in chosen(".h")
            if not re.search(rf'["/]{"/".join(path.parts[-2:])}"|"{path.name}"', sources)
        ]
    )


def imported_names() -> set[str]:
    """Every dotted name that some Python file imports, with its parents."""
    names: set[str] = set()
    for path in chosen(".py"):
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def test_every_python_module_is_used() -> None:
    names = imported_names()
    named = "\n".join(text(p) for p in (*chosen(".toml", ".sh", ".service"), Path("Makefile")))
    lazily = "\n".join(text(p) for p in chosen(".py") if p.parts[0] in {"headrace", "api"})
    report(
        [
            f"{path}: nobody imports it"
            for path in chosen(".py")
            if path.parts[0] in {"api", "dataplane", "headrace", "native", "reports"}
            and path.stem not in {"__init__", "__main__", "build", "version"}
            and (dotted := ".".join(path.with_suffix("").parts)) not in names
            and dotted not in named
            and f'"{dotted}' not in lazily
            and f'".{path.stem}"' not in lazily
        ]
    )


def test_every_golden_file_is_read_by_a_test() -> None:
    tests = "\n".join(text(p) for p in chosen(".py", under="tests/"))

    def named(stem: str) -> bool:
        # Tests may write the last words of a name as a parameter: f"op_{kind}_v1".
        words = stem.split("_")
        return stem in tests or any(f"{'_'.join(words[:n])}_{{" in tests for n in range(1, 4))

    folder = ROOT / "tests" / "data"
    report(
        [
            f"{path.relative_to(ROOT)}: no test names it"
            for path in sorted(folder.rglob("*"))
            if path.is_file() and "fuzz" not in path.parts and not named(path.stem.split(".")[0])
        ]
    )


# --- documents -----------------------------------------------------------------------------------


def test_every_link_in_a_document_leads_somewhere() -> None:
    findings = []
    for path in chosen(".md"):
        body = re.sub(r"```.*?```", "", text(path), flags=re.S)
        for target in re.findall(r"\]\(([^)\s]+)\)", body):
            file = target.partition("#")[0]
            if "://" not in target and file and not (ROOT / path.parent / file).exists():
                findings.append(f"{path}: the link to {target} is broken")
    report(findings)


def test_every_document_that_is_mentioned_exists() -> None:
    known = {path.name for path in chosen(".md")}
    report(
        [
            f"{path}:{number}: {name} is not in this repository"
            for path in chosen(*CODE, ".md")
            if path.name != "test_tidy.py"
            for number, line in numbered(text(path))
            for name in re.findall(r"[\w-]+\.md\b", line)
            if name not in known
        ]
    )


def test_every_document_is_linked_from_another() -> None:
    linked = set()
    for path in chosen(".md"):
        for target in re.findall(r"\]\(([^)\s#]+)", text(path)):
            linked.add((ROOT / path.parent / target).resolve())
    folders = {path for path in linked if path.is_dir()}
    report(
        [
            f"{path}: link it from README.md or docs/ARCHITECTURE.md"
            for path in chosen(".md", under="docs/")
            if (ROOT / path) not in linked and (ROOT / path).parent not in folders
        ]
    )
