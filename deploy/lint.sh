#!/bin/sh
# Holds what is deployed against what knows its form: hadolint the images, the compose
# specification and yamllint the compose file, systemd the units. A stage of `make check`.
set -eu

cd "$(dirname "$0")/.."

BIN=".venv/bin"
UNITS="build/units"

"$BIN/hadolint" --config deploy/images/hadolint.yaml deploy/images/Dockerfile
"$BIN/yamllint" --strict --config-file deploy/yamllint.yaml deploy
"$BIN/check-jsonschema" --builtin-schema vendor.compose-spec deploy/compose.yaml

# The programs of a unit must be there to be verified; they are where the project is installed.
rm -rf "$UNITS"
mkdir -p "$UNITS"
for unit in deploy/systemd/*.service; do
    sed "s|^ExecStart=/opt/headrace/bin/|ExecStart=$(pwd)/$BIN/|" "$unit" >"$UNITS/${unit##*/}"
done
systemd-analyze verify --man=no --recursive-errors=no "$UNITS"/*.service
