# shellcheck shell=bash
# Sourced by the other scripts: finds a Python, and keeps one virtual environment per purpose in the checkout.
# An environment is made anew when pyproject.toml, the interpreter or the place of the checkout changed.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export PIP_DISABLE_PIP_VERSION_CHECK=1

fail() {
    echo "$(basename "$0"): $*" >&2
    exit 1
}

# Print the path of a Python: $PYTHON, or version $1 (like 3.12), or any from 3.11 on; nothing if there is none.
# Each candidate is run: a name on the PATH may be a shim with nothing behind it, or lack SQLite.
find_python() {
    local version=${1:-} candidates candidate
    if [[ -n $version ]]; then
        candidates=("python$version" ~/.pyenv/versions/"$version".*/bin/python3)
    elif [[ -n ${PYTHON:-} ]]; then
        candidates=("$PYTHON")
    else
        candidates=(python3 python3.{14,13,12,11} ~/.pyenv/versions/3.*/bin/python3)
    fi
    for candidate in "${candidates[@]}"; do
        "$candidate" -c 'import sqlite3, sys; sys.version_info >= (3, 11) or sys.exit(1); print(sys.executable)' \
            2>/dev/null && return
    done
    return 1
}

# Debian keeps the part of venv that brings pip in a package of its own.
need_ensurepip() {
    local python=$1 package
    "$python" -c 'import ensurepip' 2>/dev/null && return
    package=$("$python" -c 'import sys; print("python{}.{}-venv".format(*sys.version_info))')
    if [[ $EUID -eq 0 ]] && command -v apt-get >/dev/null; then
        echo "installing $package, which $python needs to make a virtual environment" >&2
        export DEBIAN_FRONTEND=noninteractive
        { apt-get update -qq && apt-get install -qq --no-install-recommends "$package"; } </dev/null >/dev/null || true
    fi
    "$python" -c 'import ensurepip' 2>/dev/null ||
        fail "$python cannot make a virtual environment: install $package (Debian: sudo apt-get install $package)"
}

# make_venv NAME PYTHON PIP_ARGUMENTS...: have $root/NAME with these packages, at once if it is there already.
make_venv() {
    local venv=$root/$1 python=$2 wanted
    shift 2
    wanted="$root $("$python" -VV) $* $(<"$root/pyproject.toml")"
    if [[ -x $venv/bin/python && -f $venv/.wanted && $(<"$venv/.wanted") == "$wanted" ]]; then
        return
    fi
    need_ensurepip "$python"
    echo "making $venv with $("$python" -V); this is done once" >&2
    "$python" -m venv --clear "$venv"
    "$venv/bin/python" -m pip install --quiet "$@"
    echo "$wanted" >"$venv/.wanted"
}

python=$(find_python) || fail "needs Python 3.11 or newer with sqlite3; set PYTHON to one${PYTHON:+ (not $PYTHON)}"
