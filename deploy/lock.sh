#!/bin/sh
# Resolves requirements/*.txt from pyproject.toml: exact versions with hashes, and no registry
# address inside.
set -eu

cd "$(dirname "$0")/.."

# lock OUTPUT SOURCE...: uv leaves registry addresses out unless asked to emit them.
lock() {
    output="$1"
    shift
    .venv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
        --no-annotate --custom-compile-command "make lock" --output-file "$output" "$@"
}

echo pip | lock requirements/pip.txt -
lock requirements/dev.txt pyproject.toml --extra spark --group dev
# What the images build a wheel with.
printf 'cffi\nsetuptools\nwheel\n' |
    lock requirements/build.txt --constraint requirements/dev.txt -
# The images take the same versions and fewer packages.
lock requirements/runtime.txt pyproject.toml --constraint requirements/dev.txt
lock requirements/spark.txt pyproject.toml --extra spark --constraint requirements/dev.txt
