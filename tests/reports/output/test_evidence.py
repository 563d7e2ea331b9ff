"""A signed run: any change to a file, a figure, the manifest or the chain is seen, by name."""

import hashlib
import json
import shutil
import stat
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from headrace.errors import Invalid
from headrace.evidence import FIRST, MANIFEST, canonical_json, verify
from reports.errors import PublishError
from reports.files import digest
from reports.output.evidence import KEY, PUBLIC_KEY, sign_manifest

ROWS = "name,amount\r\n'=1,0.100000000\r\nb,0.200000000\r\n"


def publish(root: Path, name: str, rows: str = ROWS, **more: str) -> Path:
    """A run of one table, as a report job leaves it; `more`: of its manifest."""
    folder = root / "usage" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "usage.csv").write_text(rows, newline="")
    manifest = sign_manifest(
        root,
        "usage",
        {
            "kind": "usage",
            "path": str(folder),
            "files": [digest(folder / "usage.csv").entry()],
            "sums": [{"file": "usage.csv", "rows": "2", "columns": {"amount": "0.300000000"}}],
            **more,
        },
    )
    (folder / MANIFEST).write_bytes(canonical_json(manifest))
    return folder


def failed(folder: Path, public_key: str = "", heads: Sequence[str] = ()) -> set[str]:
    """The last word of every check that did not hold."""
    checks = verify(folder, public_key, heads)
    return {check.name.split()[-1] for check in checks if check.ok is False}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Three runs of one service."""
    for name in ("one", "two", "three"):
        publish(tmp_path, name)
    return tmp_path


def test_a_published_run_passes_every_check(root: Path) -> None:
    assert [(check.name, check.ok) for check in verify(root / "usage" / "two")] == [
        ("files", True),
        ("totals", True),
        ("signature", True),
        ("chain", True),
    ]
    assert failed(root) == set()


def test_every_run_names_the_one_before_and_the_first_names_none(root: Path) -> None:
    found = [
        json.loads((root / "usage" / n / MANIFEST).read_bytes()) for n in ("one", "two", "three")
    ]
    assert [one["sequence"] for one in found] == [1, 2, 3]
    assert [one["previous"] for one in found] == [FIRST, found[0]["sha256"], found[1]["sha256"]]


def test_signing_the_same_content_again_gives_the_same_place(root: Path) -> None:
    before = (root / "usage" / "two" / MANIFEST).read_bytes()
    assert (publish(root, "two") / MANIFEST).read_bytes() == before
    assert failed(root) == set()


def test_the_key_is_its_owners_alone(root: Path) -> None:
    assert stat.S_IMODE((root / "evidence" / KEY).stat().st_mode) == 0o600
    public = root / "evidence" / PUBLIC_KEY
    pinned = public.read_text()
    assert len(pinned.strip()) == 64
    # As after a run that was killed between the two files.
    public.unlink()
    sign_manifest(root, "usage", {"kind": "usage", "files": []})
    assert public.read_text() == pinned


def _edit(path: Path, change: Callable[[dict[str, object]], None]) -> None:
    document = json.loads(path.read_bytes())
    change(document)
    path.write_bytes(canonical_json(document))


CHANGES: dict[str, tuple[Callable[[Path], object], set[str]]] = {
    "a digit in a file": (
        lambda run: (run / "usage.csv").write_text(ROWS.replace("0.2", "0.3"), newline=""),
        {"files", "totals"},
    ),
    "a file that goes": (lambda run: (run / "usage.csv").unlink(), {"files", "totals"}),
    "a file that comes": (lambda run: (run / "more.csv").write_text("x"), {"files"}),
    "a figure of the manifest": (
        lambda run: _edit(run / MANIFEST, lambda one: one.update(path="elsewhere")),
        {"signature", "chain"},
    ),
    "a name that leaves the folder": (
        lambda run: _edit(run / MANIFEST, lambda one: one.update(files=[{"name": "../../x"}])),
        {"files", "signature", "chain"},
    ),
    "a signature of another run": (
        lambda run: _edit(
            run / MANIFEST,
            lambda one: one.update(
                signature=json.loads((run.parent / "one" / MANIFEST).read_bytes())["signature"]
            ),
        ),
        {"signature", "chain"},
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_found_where_it_was_made(root: Path, name: str) -> None:
    change, seen = CHANGES[name]
    change(root / "usage" / "two")
    assert failed(root / "usage" / "two") == seen


def answered(folder: Path) -> str:
    """Whether what a folder holds was signed; anything else that is raised fails the test."""
    try:
        return "not what was signed" if failed(folder) else "signed"
    except Invalid as refusal:
        return "not what was signed" if refusal.code == "EVIDENCE_INVALID" else refusal.code


@pytest.mark.parametrize("member", ["kind", "sha256", "as_of", "sums", "files", "public_key"])
def test_whatever_a_document_says_the_answer_is_a_check_or_that_it_is_none(
    root: Path, member: str
) -> None:
    run = root / "usage" / "two"
    entry = sorted((root / "evidence" / "usage").glob("*.json"))[1]
    strange: list[object] = ["\ud800", "../" * 9, "9" * 5000, [], {}, None, -1, [{"file": "a"}]]
    for path in (run / "manifest.json", entry):
        before = path.read_bytes()
        for said in strange:
            path.write_text(json.dumps({**json.loads(before), member: said}))
            assert answered(root) == answered(run) == "not what was signed"
        path.write_bytes(before)


@pytest.mark.parametrize("cell", ["1E999999", "sNaN", '"' + "1" * 200_000 + '"'])
def test_a_cell_that_cannot_be_added_is_a_sum_that_differs(root: Path, cell: str) -> None:
    table = root / "usage" / "two" / "usage.csv"
    table.write_text(table.read_text().replace("0.100000000", cell))
    assert failed(root) == {"files", "totals"}


def test_an_entry_that_is_taken_out_of_the_ledger_breaks_the_chain(root: Path) -> None:
    next((root / "evidence" / "usage").glob("00000001-*")).unlink()
    assert failed(root / "usage" / "three") == {"chain"}


def test_an_end_that_was_taken_with_its_run_is_seen_by_who_kept_its_digest(root: Path) -> None:
    entry = next((root / "evidence" / "usage").glob("00000003-*"))
    head = str(json.loads(entry.read_bytes())["sha256"])
    (chain,) = (check for check in verify(root) if check.name == "usage chain")
    assert chain.detail.endswith(f"the last is {head}")
    for folder in (root, root / "usage" / "one"):
        assert failed(folder, heads=[head.upper()]) == set()
    entry.unlink()
    shutil.rmtree(root / "usage" / "three")
    assert failed(root) == set()
    for folder in (root, root / "usage" / "one"):
        assert failed(folder, heads=[head]) == {"head"}


ARCHIVED: dict[str, tuple[Callable[[Path], object], bool | None]] = {
    "as it was frozen": (lambda archive: archive.stat(), True),
    "a byte of a file": (lambda archive: (archive / "usage.parquet").write_bytes(b"rowz"), False),
    "a file that goes": (lambda archive: (archive / "usage.parquet").unlink(), False),
    "a file that comes": (lambda archive: (archive / "more").write_bytes(b"x"), False),
    "the list of files": (lambda archive: (archive / "inputs.json").write_bytes(b"{}"), False),
    "no list": (lambda archive: (archive / "inputs.json").unlink(), False),
    "another place": (lambda archive: archive.rename(archive.parent.parent / "away"), None),
}


@pytest.mark.parametrize("name", ARCHIVED)
def test_inputs_that_were_changed_are_found_by_the_run_that_was_computed_from_them(
    tmp_path: Path, name: str
) -> None:
    pending = tmp_path / "inputs" / "pending"
    pending.mkdir(parents=True)
    (pending / "usage.parquet").write_bytes(b"rows")
    index = canonical_json({"files": [digest(pending / "usage.parquet").entry()]})
    (pending / "inputs.json").write_bytes(index)
    sha256 = hashlib.sha256(index).hexdigest()
    archive = pending.rename(pending.parent / sha256)
    run = publish(tmp_path, "one", input_sha256=sha256)
    change, ok = ARCHIVED[name]
    change(archive)
    for folder, check in ((run, "inputs"), (tmp_path, "usage/one inputs")):
        assert {one.name: one.ok for one in verify(folder)}[check] is ok
    assert failed(run) == (set() if ok is not False else {"inputs"})


def test_a_chain_that_is_signed_anew_with_another_key_fails_against_the_pinned_one(
    root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    pinned = (root / "evidence" / PUBLIC_KEY).read_text().strip()
    forged = tmp_path_factory.mktemp("forged")
    publish(forged, "one")
    assert failed(forged) == set()
    assert failed(forged, pinned) == {"signature", "chain"}
    assert failed(root, pinned) == set()


def test_a_run_without_its_ledger_says_that_the_chain_was_not_checked(
    root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    alone = tmp_path_factory.mktemp("alone") / "kind" / "run"
    alone.parent.mkdir()
    (root / "usage" / "two").rename(alone)
    assert [check.ok for check in verify(alone)] == [True, True, True, None]


def test_a_manifest_that_says_one_thing_twice_is_not_what_was_signed(root: Path) -> None:
    manifest = root / "usage" / "two" / MANIFEST
    said = manifest.read_text()
    manifest.write_text('{"complete":true,' + said[1:])
    assert failed(root / "usage" / "two") == {"signature", "chain"}
    entry = next((root / "evidence" / "usage").glob("00000002-*"))
    manifest.write_text(said)
    entry.write_text(entry.read_text().rstrip())
    assert failed(root / "usage" / "two") == {"chain"}


def test_all_runs_are_there_with_their_manifests_and_their_ledger(root: Path) -> None:
    states = {check.name: check.ok for check in verify(root)}
    assert (states["usage runs"], None in states.values()) == (True, False)
    shutil.rmtree(root / "usage" / "one")
    missing = [check for check in verify(root) if check.name == "usage runs"]
    assert [(check.ok, "00000001-" in check.detail) for check in missing] == [(None, True)]
    (root / "usage" / "two" / MANIFEST).unlink()
    assert failed(root) == {"files"}
    shutil.rmtree(root / "evidence" / "usage")
    assert failed(root) == {"files", "runs"}


def test_one_key_signs_every_kind_of_a_folder(root: Path) -> None:
    (root / "evidence" / KEY).unlink()
    manifest = sign_manifest(root, "retention", {"kind": "retention", "files": []})
    folder = root / "retention" / "one"
    folder.mkdir(parents=True)
    (folder / MANIFEST).write_bytes(canonical_json(manifest))
    assert "signature" in {
        check.name.split()[-1]
        for check in verify(root)
        if check.ok is False and check.name.startswith("usage/")
    }


def test_nothing_is_signed_behind_an_end_that_was_changed(root: Path) -> None:
    last = next((root / "evidence" / "usage").glob("00000003-*"))
    _edit(last, lambda one: one.update(path="elsewhere"))
    with pytest.raises(PublishError, match="CHAIN_DAMAGED"):
        publish(root, "four")


def test_a_key_that_is_none_is_refused_and_not_replaced(root: Path) -> None:
    (root / "evidence" / KEY).write_bytes(b"short")
    with pytest.raises(PublishError, match="SIGNING_KEY_INVALID"):
        publish(root, "four")
