#!/bin/sh
# Finds a Python that can carry Brood, then hands over to install/environment.py, which
# makes .venv. This part is sh because it must also run where the only Python is too old.
#
# Usage: sh install/setup.sh STACK PYTHON
#   STACK   cpu, cuda, or empty: chosen by looking for an NVIDIA GPU
#   PYTHON  a Python to use, or empty: the one that .venv was made with, else python3.11, else
#           the newest of 3.13, 3.12 and python3
set -eu
stack=${1-} asked=${2-}
cd "$(dirname "$0")/.."

# Exit status: 0 can be used, 3 wrong version, 4 no venv module, 5 no C headers.
probe='
import sys
if not (3, 11) <= sys.version_info[:2] < (3, 14):
    sys.exit(3)
try:
    import ensurepip, venv
except ImportError:
    sys.exit(4)
import os, sysconfig
if not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")):
    sys.exit(5)
'

fail() {
    echo "brood: $1" >&2
    exit 2
}

# A complete .venv was made by a Python that passed the probe; not probing again saves time.
if [ -z "$asked" ] && [ -f .venv/brood-packages.json ] && [ -x .venv/bin/python ]; then
    exec .venv/bin/python -E -s -S -m install.environment "$stack"
fi

# The first that can be used wins; else the best near miss gives the message.
near_miss='' miss_status=0
for python in ${asked:-python3.11 python3.13 python3.12 python3}; do
    command -v "$python" >/dev/null 2>&1 || continue
    status=0
    "$python" -E -s -S -c "$probe" >/dev/null 2>&1 || status=$?
    if [ "$status" -eq 0 ]; then
        exec "$python" -E -s -S -m install.environment "$stack"
    fi
    # 3 to 5 are the probe's; a near miss that lacks only a package is the better one to name.
    case $status in [345]) ;; *) status=1 ;; esac
    if [ "$status" -gt "$miss_status" ] || [ -z "$near_miss" ]; then
        near_miss=$python miss_status=$status
    fi
done

if [ -z "$near_miss" ]; then
    fail "${asked:-python3} was not found: install Python 3.11, 3.12 or 3.13 (Debian, Ubuntu: apt install python3 python3-venv python3-dev), or name one with PYTHON=/path/to/python3.11."
fi
version=$("$near_miss" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null || echo "?")
case $miss_status in
    4) fail "$near_miss has no venv module: install it (Debian, Ubuntu: apt install python$version-venv)." ;;
    5) fail "$near_miss has no C headers (Python.h): install them (Debian, Ubuntu: apt install python$version-dev)." ;;
    3) fail "$near_miss is Python $version, but 3.11, 3.12 or 3.13 is needed: install one, or name it with PYTHON=/path/to/python3.11." ;;
    *) fail "$near_miss does not run: name another with PYTHON=/path/to/python3.11." ;;
esac
