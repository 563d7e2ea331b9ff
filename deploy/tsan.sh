#!/bin/sh
# Builds the engine and native/fuzz/threads.c with the thread sanitizer into build/tsan and runs it:
# rings at full speed, then three shards under traffic, metrics and a stop. The first race ends it.
set -eu

cd "$(dirname "$0")/.."

BUILD="build/tsan"
COMPILER="clang-14 -std=gnu11 -D_GNU_SOURCE -DENGINE_CHECKED -UNDEBUG -O1 -g -pthread"
COMPILER="$COMPILER -fno-omit-frame-pointer -fsanitize=thread"
COMPILER="$COMPILER -iquotenative/include -iquotenative/src -iquotenative/fuzz"
LIBRARIES="-lnghttp2 -lssl -lcrypto -llz4 -lzstd"
if [ -e /usr/include/isa-l/crc.h ]; then LIBRARIES="$LIBRARIES -lisal"; fi

mkdir -p "$BUILD" build/fuzz
if [ -n "$(find native \( -name '*.h' -o -type d \) -newer "$BUILD/stamp" 2>&1 | head -n 1)" ]; then
    rm -f "$BUILD"/*.o
    touch "$BUILD/stamp"
fi
{
    find native/src -name '*.c'
    echo native/fuzz/fuzz_node.c native/fuzz/fuzz_http2.c native/fuzz/threads.c | tr ' ' '\n'
} | while read -r source; do
    object="$BUILD/$(echo "${source#native/}" | tr / -).o"
    if [ ! -e "$object" ] || [ "$source" -nt "$object" ]; then echo "$source $object"; fi
done |
    xargs -r -P 2 -L 1 sh -c "$COMPILER"' -c "$0" -o "$1"'
# shellcheck disable=SC2086
$COMPILER -o "$BUILD/threads" "$BUILD"/*.o $LIBRARIES

TSAN_OPTIONS="halt_on_error=1 second_deadlock_stack=1 suppressions=deploy/tsan.suppressions" \
    exec "$BUILD/threads"
