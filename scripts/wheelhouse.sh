#!/bin/sh
# Collects the wheels that a GPU host without network needs, and builds the project's own wheel.
#
#   sh scripts/wheelhouse.sh DIR [--python 3.12] [--arch x86_64]
#
# torch, CUDA and cupy are not collected: they are several GB and belong to the host's own installation.
# Runs with any Python 3.11 or later that has pip and network; PYTHON names it (default: .venv's, else python3).
set -eu

usage() {
    echo "usage: sh scripts/wheelhouse.sh DIR [--python 3.12] [--arch x86_64]" >&2
    exit 2
}

root=$(cd "$(dirname "$0")/.." && pwd)
dir='' version=3.12 arch=x86_64
while [ $# -gt 0 ]; do
    case "$1" in
    --python) [ $# -ge 2 ] || usage; version=$2; shift 2 ;;
    --arch) [ $# -ge 2 ] || usage; arch=$2; shift 2 ;;
    -*) usage ;;
    *) [ -z "$dir" ] || usage; dir=$1; shift ;;
    esac
done
[ -n "$dir" ] || usage
default=$root/.venv/bin/python
[ -x "$default" ] || default=python3
PYTHON=${PYTHON:-$default}
mkdir -p "$dir"

# pip matches platform tags one by one, so that every level up to the host's glibc (2.34: RHEL 9, Ubuntu 22.04) is named.
platforms="--platform manylinux2014_$arch --platform manylinux1_$arch"
for minor in 17 24 26 27 28 31 34; do
    platforms="$platforms --platform manylinux_2_${minor}_$arch"
done

# What pyproject.toml asks for, without torch; and what the tests need.
requirements=$("$PYTHON" - "$root/pyproject.toml" <<'PY'
import re, sys, tomllib
project = tomllib.load(open(sys.argv[1], "rb"))["project"]
name = lambda text: re.match(r"[A-Za-z0-9_.-]+", text)[0]
tests = {"pytest", "pytest-asyncio", "pytest-timeout", "hypothesis"}
wanted = [d for d in project["dependencies"] if name(d) != "torch"]
wanted += [d for d in project["optional-dependencies"]["dev"] if name(d) in tests]
print("\n".join(wanted))
PY
)
list=$(mktemp)
trap 'rm -f "$list"' EXIT
printf '%s\n' "$requirements" >"$list"

# shellcheck disable=SC2086  # several options
"$PYTHON" -m pip download -q --disable-pip-version-check --only-binary=:all: --implementation cp \
    --python-version "$version" $platforms --dest "$dir" --requirement "$list"
"$PYTHON" -m pip wheel -q --disable-pip-version-check --no-deps --wheel-dir "$dir" "$root"

echo "$(find "$dir" -name '*.whl' | wc -l) wheels in $dir, $(du -sh "$dir" | cut -f1)"
cat <<EOF
On the host, with its own torch and CUDA (Python $version):
  python3 -m pip install --no-index --find-links $dir --no-deps --target /opt/hiera-mcp $dir/*.whl
  export PYTHONPATH=/opt/hiera-mcp
  python3 -m hiera_mcp doctor
EOF
