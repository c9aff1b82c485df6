#!/bin/sh
# Makes the virtual environment and installs the project into it. Safe to run again.
#
#   PYTHON=python3 VENV=.venv sh scripts/setup.sh
#
# HIERA_SETUP_INSTALL=1  as root on Debian or Ubuntu, install missing system packages instead of naming them.
# HIERA_SETUP_EXTRA=…    the extra for this host's GPU: cuda12, cuda13, or none. By default the driver decides.
#
# Without an NVIDIA driver constraints.txt pins a torch that is small enough for any machine. With one, torch is left
# to pip (or to what is installed already in the environment), and cupy for the driver's CUDA version is added.
set -eu
cd "$(dirname "$0")/.."
PYTHON=${PYTHON:-python3}
VENV=${VENV:-.venv}

say() { printf '%s\n' "$*" >&2; }

# One line per system package that is missing: "what it is for|Debian package".
missing() {
    command -v "$PYTHON" >/dev/null 2>&1 || echo "Python 3.11 or later ($PYTHON)|python3"
    if command -v "$PYTHON" >/dev/null 2>&1 && ! "$PYTHON" -c 'import ensurepip, venv' 2>/dev/null; then
        echo "venv for $PYTHON|python3-venv"
    fi
    command -v g++ >/dev/null 2>&1 || echo "g++, the compiler of the cpu target|g++"
    command -v bwrap >/dev/null 2>&1 || echo "bubblewrap, which isolates candidates|bubblewrap"
    command -v objdump >/dev/null 2>&1 || echo "binutils, for instruction mixes|binutils"
}

install_or_explain() {
    packages=$(printf '%s\n' "$1" | cut -d'|' -f2 | sort -u | tr '\n' ' ')
    if [ "${HIERA_SETUP_INSTALL:-}" = 1 ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        say "Installing: $packages"
        apt-get update -qq
        # shellcheck disable=SC2086  # several packages
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages >/dev/null
        return
    fi
    say "Missing on this machine:"
    printf '%s\n' "$1" | cut -d'|' -f1 | sed 's/^/  - /' >&2
    say "Install it with:"
    say "  sudo apt-get install $packages"
    exit 2
}

check_python() {
    "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' && return
    say "$PYTHON is $("$PYTHON" --version 2>&1); Python 3.11 or later is needed."
    say "Name another one: make PYTHON=python3.12 …"
    exit 2
}

# cuda12, cuda13 or nothing, from the highest CUDA version that the driver supports.
gpu_extra() {
    if [ -n "${HIERA_SETUP_EXTRA:-}" ]; then
        [ "$HIERA_SETUP_EXTRA" = none ] || echo "$HIERA_SETUP_EXTRA"
        return
    fi
    command -v nvidia-smi >/dev/null 2>&1 || return 0
    major=$(nvidia-smi 2>/dev/null | sed -n 's/.*CUDA Version: *\([0-9]*\).*/\1/p' | head -n 1)
    if [ "${major:-0}" -ge 13 ]; then
        echo cuda13
    elif [ "${major:-0}" -eq 12 ]; then
        echo cuda12
    fi
}

lacking=$(missing)
[ -z "$lacking" ] || install_or_explain "$lacking"
check_python

[ -x "$VENV/bin/python" ] || "$PYTHON" -m venv "$VENV"
say "Installing into $VENV: a minute or a few, most of it for torch; nothing is shown meanwhile."
extra=$(gpu_extra)
if [ -n "$extra" ]; then
    say "An NVIDIA driver is present: installing with the extra $extra, torch as pip finds it."
    "$VENV/bin/python" -m pip install -q --disable-pip-version-check -e ".[dev,$extra]"
else
    "$VENV/bin/python" -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[dev]'
fi
say "Ready: $VENV/bin/hiera-mcp"
