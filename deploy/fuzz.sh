#!/bin/sh
# Builds the fuzz targets of native/fuzz with libFuzzer, address and undefined-behaviour sanitizers
# into build/fuzz; replays what once failed (tests/data/fuzz/TARGET/crash-*), then runs each target
# for a fixed count from its seeds. With arguments: `deploy/fuzz.sh TARGET [libFuzzer's arguments]`
# runs one target as long as it likes. Any report ends the run; the input that made it lies in
# build/fuzz and belongs, under a name that says what it is, beside the seeds.
set -eu

cd "$(dirname "$0")/.."

BUILD="build/fuzz"
SEEDS="tests/data/fuzz"
COMPILER="clang-14 -std=gnu11 -D_GNU_SOURCE -DENGINE_CHECKED -UNDEBUG -O1 -g -pthread -Werror"
COMPILER="$COMPILER -fno-omit-frame-pointer -fno-sanitize-recover=undefined"
COMPILER="$COMPILER -iquotenative/include -iquotenative/src -iquotenative/sim -iquotenative/fuzz"
LIBRARIES="-lnghttp2 -lssl -lcrypto -llz4 -lzstd"
if [ -e /usr/include/isa-l/crc.h ]; then LIBRARIES="$LIBRARIES -lisal"; fi

# TARGET RUNS: each within ten seconds.
TARGETS="
    proto 600000
    batch 400000
    messages 200000
    checkpoint 300000
    access 400000
    names 15000
    journal 1000
    connection 6000
    host 1500
"

mkdir -p "$BUILD"
# Objects are older than a header, or a source has moved: all of them again.
if [ -n "$(find native \( -name '*.h' -o -type d \) -newer "$BUILD/stamp" 2>&1 | head -n 1)" ]; then
    rm -f "$BUILD"/*.o
    touch "$BUILD/stamp"
fi
# An object is named by its source's path: rooms share names.
find native/src native/sim native/fuzz -name '*.c' ! -name threads.c | while read -r source; do
    object="$BUILD/$(echo "${source#native/}" | tr / -).o"
    if [ ! -e "$object" ] || [ "$source" -nt "$object" ]; then echo "$source $object"; fi
done | xargs -r -P 2 -L 1 \
    sh -c "$COMPILER"' -fsanitize=fuzzer-no-link,address,undefined -c "$0" -o "$1"'

link() {
    objects="$(ls "$BUILD"/src-*.o "$BUILD"/sim-*.o)"
    shared="$BUILD/fuzz-fuzz_input.c.o $BUILD/fuzz-fuzz_node.c.o $BUILD/fuzz-fuzz_http2.c.o"
    # shellcheck disable=SC2086
    $COMPILER -fsanitize=fuzzer,address,undefined -o "$BUILD/$1" "$BUILD/fuzz-fuzz_$1.c.o" \
        $shared $objects $LIBRARIES
}

export ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1

if [ "$#" -gt 0 ]; then
    target="$1"
    shift
    link "$target"
    mkdir -p "$BUILD/corpus-$target"
    exec "$BUILD/$target" -artifact_prefix="$BUILD/" "$@" "$BUILD/corpus-$target" "$SEEDS/$target"
fi

echo "$TARGETS" | while read -r target runs; do
    if [ -z "$target" ]; then continue; fi
    link "$target"
    set -- "$SEEDS/$target"/*
    "$BUILD/$target" -artifact_prefix="$BUILD/" "$@" >"$BUILD/$target.log" 2>&1 || {
        cat "$BUILD/$target.log"
        exit 1
    }
    began="$(date +%s)"
    rm -rf "$BUILD/found-$target"
    mkdir "$BUILD/found-$target"
    "$BUILD/$target" -artifact_prefix="$BUILD/" -seed=1 -runs="$runs" -max_len=4096 -timeout=10 \
        -rss_limit_mb=1024 "$BUILD/found-$target" "$SEEDS/$target" >"$BUILD/$target.log" 2>&1 || {
        tail -n 60 "$BUILD/$target.log"
        exit 1
    }
    echo "$target: $runs runs in $(($(date +%s) - began)) s, $# inputs replayed"
done
