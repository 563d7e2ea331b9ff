#!/bin/sh
# Builds the engine's core with address and undefined-behaviour sanitizers into build/asan, and runs
# the tests that drive it, or what the arguments name, over it. The first report ends the run.
# Sockets and threads are sanitized by deploy/fuzz.sh and deploy/tsan.sh.
set -eu

cd "$(dirname "$0")/.."

SANITIZERS="-fsanitize=address,undefined"
BUILD="build/asan"
CFLAGS="$SANITIZERS -fno-sanitize-recover=undefined -fno-omit-frame-pointer" \
    LDFLAGS="$SANITIZERS" HEADRACE_MODULES=engine_sim \
    .venv/bin/python setup.py --quiet build_ext --build-lib "$BUILD" --build-temp "$BUILD/temp"

if [ "$#" -eq 0 ]; then
    # shellcheck disable=SC2046
    set -- $(grep -rlE --include='test_*.py' "_engine_sim|tests\.support\.builders" tests/native) \
        tests/simulation
fi

# Python itself leaks by design, and the runtime must come before it.
HEADRACE_ENGINE_SIM="$(echo "$PWD/$BUILD"/native/_engine_sim*.so)" \
    LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libubsan.so)" \
    ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
    exec .venv/bin/python -m pytest -q -p no:cacheprovider "$@"
