#!/bin/sh
# Makes a checkout ready: Debian packages, .venv, Python packages, the project itself, the C engine.
#
# Every step is skipped when its stamp in .venv/stamps holds the hash of what it was made from, so
# running this again costs a few milliseconds. `--check` adds what only `make check` needs.
set -eu

cd "$(dirname "$0")/.."

# From Debian: a compiler and headers for the engine, a headless Java for the Spark reports; and for
# the tests what the documents speak REST with, strace, with which a node is ended inside a system
# call, PostgreSQL, of which a test run starts a server of its own, and a browser for the console.
SETUP_PACKAGES="python3-venv python3-dev gcc libc6-dev libnghttp2-dev libssl-dev liblz4-dev
    libzstd-dev libxxhash-dev libisal-dev openjdk-17-jre-headless curl jq strace
    postgresql-15 chromium"
# And for `make check`: a second compiler, and systemd to verify the units.
CHECK_PACKAGES="clang-14 libclang-rt-14-dev llvm-14 systemd"

VENV=".venv"
STAMPS="$VENV/stamps"
PYTHON="$VENV/bin/python"

say() { echo "setup: $*" >&2; }

fail() {
    say "$*"
    exit 1
}

# logged NAME COMMAND..: its output goes to build/NAME.log and is shown only when it fails.
logged() {
    log="build/$1.log"
    shift
    mkdir -p build
    "$@" >"$log" 2>&1 || {
        tail -n 40 "$log" >&2
        fail "that failed; the whole log is $log"
    }
}

# The hash of the named files' paths and contents.
digest() { sha256sum "$@" | sha256sum | cut -c1-32; }

is_fresh() { [ "$(cat "$STAMPS/$1" 2>/dev/null || true)" = "$2" ]; }

stamp() {
    mkdir -p "$STAMPS"
    echo "$2" >"$STAMPS/$1"
}

missing_packages() {
    installed="$(dpkg-query -W -f '${db:Status-Abbrev}${Package} ' "$@" 2>/dev/null || true)"
    for package in "$@"; do
        case " $installed" in
        *" ii $package "*) ;;
        *) printf ' %s' "$package" ;;
        esac
    done
}

# Runs apt-get as root, by itself or through sudo; answers 1 when it may not.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
        sudo "$@"
    else
        return 1
    fi
}

install_debian_packages() {
    command -v dpkg-query >/dev/null ||
        fail "this is not Debian; install the equivalents of:" $SETUP_PACKAGES
    missing="$(missing_packages "$@")"
    [ -n "$missing" ] || return 0
    line="apt-get install --yes --no-install-recommends$missing"
    # shellcheck disable=SC2086
    as_root apt-get -qq -o Acquire::Retries=3 update ||
        fail "Debian packages are missing; as root, run: apt-get update && $line"
    say "installing Debian packages:$missing"
    # /usr/share/man is cut from small images, and Java's packages register pages there.
    as_root mkdir -p /usr/share/man/man1
    # shellcheck disable=SC2086
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Acquire::Retries=3 \
        -o Dpkg::Use-Pty=0 install --yes --no-install-recommends $missing >&2 ||
        fail "apt-get failed; as root, run: apt-get update && $line"
}

make_venv() {
    if [ -x "$PYTHON" ] && "$PYTHON" -c '' 2>/dev/null; then return 0; fi
    base="$(command -v python3 || true)"
    [ -n "$base" ] || fail "python3 is not on PATH; install Python 3.11 or newer"
    "$base" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
        fail "$base is $("$base" --version); Headrace needs Python 3.11 or newer"
    say "creating $VENV with $("$base" --version)"
    rm -rf "$VENV"
    "$base" -m venv "$VENV"
}

pip_install() {
    logged pip "$PYTHON" -m pip install --disable-pip-version-check --retries 10 "$@"
}

install_requirements() {
    hash="$(digest requirements/pip.txt requirements/dev.txt)"
    if is_fresh requirements "$hash"; then return 0; fi
    say "installing Python packages (the first time takes a few minutes: PySpark is 450 MB)"
    # Debian's pip ignores its wheel cache when hashes are required, and would build PySpark every
    # time.
    pip_install --require-hashes --requirement requirements/pip.txt
    pip_install --require-hashes --requirement requirements/dev.txt
    stamp requirements "$hash"
}

install_project() {
    hash="$(digest pyproject.toml setup.py headrace/version.py deploy/setup.sh)"
    if is_fresh project "$hash" && [ -x "$VENV/bin/headrace" ]; then return 0; fi
    say "installing the project in place"
    # A path, not a finder: a script beside a clone called headrace would find that folder first.
    logged install env HEADRACE_MODULES= "$PYTHON" -m pip install --disable-pip-version-check \
        --no-deps --no-build-isolation --config-settings editable_mode=compat --editable .
    stamp project "$hash"
}

build_engine() {
    sources="$(find native -name '*.[ch]' ! -name '_engine*' | LC_ALL=C sort)"
    # shellcheck disable=SC2086
    hash="$(digest setup.py native/build.py $sources)"
    if is_fresh engine "$hash" && modules_exist; then return 0; fi
    say "building the engine"
    logged engine "$PYTHON" setup.py --quiet build_ext --inplace
    stamp engine "$hash"
}

# The pages of the console, by the Node that came with the Python packages. It must trust what the
# system trusts, as pip does: in many companies a proxy signs what npm downloads.
build_console() {
    sources="$(find api/console -type f ! -path '*/node_modules/*' ! -path '*/dist/*' \
        ! -path '*/build/*' ! -name '*.py' ! -path '*/__pycache__/*' | LC_ALL=C sort)"
    # shellcheck disable=SC2086
    hash="$(digest openapi/control-plane.json $sources)"
    if is_fresh console "$hash" && [ -f api/console/dist/index.html ]; then return 0; fi
    say "building the console"
    bin="$(pwd)/$VENV/bin"
    logged npm env PATH="$bin:$PATH" NODE_USE_SYSTEM_CA=1 \
        npm --prefix api/console ci --no-audit --no-fund
    logged console env PATH="$bin:$PATH" npm --prefix api/console run build
    stamp console "$hash"
}

modules_exist() {
    for module in native/_engine native/_engine_sim headrace/_codec; do
        ls "$module".*.so >/dev/null 2>&1 || return 1
    done
}

install_debian_packages $SETUP_PACKAGES
if [ "${1:-}" = "--check" ]; then install_debian_packages $CHECK_PACKAGES; fi
make_venv
install_requirements
install_project
build_engine
build_console
