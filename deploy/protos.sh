#!/bin/sh
# Generates the protobuf stubs beside their protos: NAME_pb2.py, NAME_pb2.pyi and NAME_pb2_grpc.py.
#
# The generator is pinned and lives in a virtual environment of its own under build/, so that it can
# never decide which protobuf runtime the product uses. The output is committed; a test runs this
# again and compares.
set -eu

cd "$(dirname "$0")/.."

GENERATOR="grpcio-tools==1.76.0"
PROTOS="headrace/wire/stream.proto headrace/wire/usage.proto \
    dataplane/wire/node.proto dataplane/wire/reflection.proto"
VENV="build/protos"
OUTPUT="${1:-.}" # where to write; the test that compares names another folder

if [ "$(cat "$VENV/generator" 2>/dev/null || true)" != "$GENERATOR" ]; then
    rm -rf "$VENV"
    python3 -m venv "$VENV"
    "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check "$GENERATOR"
    echo "$GENERATOR" >"$VENV/generator"
fi

# One include root, the repository, so that imports come out package-qualified.
# shellcheck disable=SC2086
"$VENV/bin/python" -m grpc_tools.protoc -I . \
    --python_out="$OUTPUT" --pyi_out="$OUTPUT" --grpc_python_out="$OUTPUT" $PROTOS
