"""Nothing points the wrong way or nowhere: C includes, dead files, documents and their links."""

import ast
import re
from pathlib import Path

from tests.support.source import CODE, ROOT, chosen, numbered, report, text, tree

# --- includes point down: effects -> core -> foundation ------------------------------------------

FOUNDATION = {
    "arena", "assert", "bytes", "crc32c", "hash", "limits", "machine", "queue", "random", "ring",
    "status",
}  # fmt: skip
EFFECTS = {
    "call", "engine", "lanes", "node_identity", "produce_queue", "reply_budget", "shard", "thread",
}  # fmt: skip
EFFECT_FAMILIES = ("engine_", "grpc_", "host_", "io_", "shard_", "stream_")
# The public header holds types only, and rows of tables are among them.
PUBLIC = "engine"
SYSTEM_HEADERS = re.compile(
    r"<(sys/(?!types)\w+|unistd|fcntl|pthread|netinet/\w+|time|nghttp2/\w+)"
)


def rank(stem: str) -> int:
    """0 foundation, 1 core, 2 effects. io.h is the core's own way to ask for I/O."""
    if stem in FOUNDATION:
        return 0
    if stem in EFFECTS or stem.startswith(EFFECT_FAMILIES):
        return 2
    return 1


def test_c_includes_point_down() -> None:
    findings = []
    for path in chosen(".c", ".h", under="native/src/"):
        for number, line in numbered(text(path)):
            found = re.match(r'\s*#\s*include\s+"([\w/]+)\.h"', line)
            if found is None or found.group(1) == PUBLIC:
                continue
            if rank(found.group(1)) > rank(path.stem):
                findings.append(f"{path}:{number}: {found.group(1)}.h lies above; turn it round")
    report(findings)


def test_the_core_makes_no_system_calls() -> None:
    report(
        [
            f"{path}:{number}: {line.strip()}: only effects may; ask through io.h"
            for path in chosen(".c", ".h", under="native/src/")
            for number, line in numbered(text(path))
            if line.startswith("#include") and rank(path.stem) == 1 and SYSTEM_HEADERS.search(line)
        ]
    )


# --- nothing dead --------------------------------------------------------------------------------


def test_every_header_is_included_by_somebody() -> None:
    sources = "\n".join(text(p) for p in (*chosen(".c", ".h"), Path("native/build.py")))
    report([f"{p}: nobody includes it" for p in chosen(".h") if f'{p.name}"' not in sources])


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
