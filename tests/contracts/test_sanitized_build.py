"""Sanitized code is a module of its own: it can never stand where the plain one is loaded from."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FUZZ = ROOT / "tests" / "data" / "fuzz"
RUNTIMES = (b"__asan_init", b"__tsan_init", b"__ubsan_handle")


def test_the_modules_beside_the_sources_carry_no_sanitizer() -> None:
    modules = [*(ROOT / "native").glob("_engine*.so"), *(ROOT / "headrace").glob("_codec*.so")]
    assert modules
    for module in modules:
        code = module.read_bytes()
        assert not [runtime for runtime in RUNTIMES if runtime in code], module


def test_every_fuzz_target_has_seeds_and_a_count() -> None:
    script = (ROOT / "deploy" / "fuzz.sh").read_text()
    listed = script.partition('TARGETS="')[2].partition('"')[0].split()
    assert all(count.isdigit() for count in listed[1::2])
    assert sorted(listed[::2]) == sorted(folder.name for folder in FUZZ.iterdir())
    for folder in FUZZ.iterdir():
        assert (ROOT / "native" / "fuzz" / f"fuzz_{folder.name}.c").exists()
        assert list(folder.glob("*.bin"))


def test_sanitizers_build_below_build_only() -> None:
    for name in ("sanitize", "fuzz", "tsan"):
        script = (ROOT / "deploy" / f"{name}.sh").read_text()
        assert 'BUILD="build/' in script
        assert "--inplace" not in script
