# SPDX-License-Identifier: Apache-2.0
# The Python package, installed by pip where there is one: with the first Python of this machine, and with another that has pandas
# and matplotlib.
. tests/lib.sh
plain_build 'a sanitized library cannot be loaded into an interpreter'
version=$(sed -n 's/^VERSION := //p' Makefile)
grep -q "^__version__ = \"$version\"" python/gpuloom/__init__.py ||
	fail "python/ has another version than $version"
tried=
for python in $(command -v python3) /usr/bin/python3; do
	real=$("$python" -c 'import os, sys; print(os.path.realpath(sys.executable))' 2>/dev/null) || continue
	case " $tried " in *" $real "*) continue ;; esac
	"$python" -c 'import ctypes, json, statistics, unittest' 2>/dev/null || continue # a minimal one lacks them
	[ -z "$tried" ] || "$python" -c 'import pandas, matplotlib' 2>/dev/null || continue # nothing new
	tried="$tried $real"
	here=$tmp/$(echo "$real" | tr / -)
	mkdir "$here" && cp -r python "$here/python"
	if "$python" -c 'import pip' 2>/dev/null; then # without a compiler, without a network
		CC=false "$python" -m pip install --quiet --no-index --disable-pip-version-check --root-user-action=ignore \
			--target "$here/installed" "$here/python" >"$tmp/log" 2>&1 || { fail "pip install with $real"; cat "$tmp/log"; }
	else
		echo "$real has no pip: used from the tree"
		mv "$here/python" "$here/installed"
	fi
	ln -s "$PWD/conf" "$here/conf"
	(cd "$here" && NOTEBOOK="$OLDPWD/python/examples/victims.ipynb" GPULOOM=$G PYTHONPATH="$here/installed" MPLBACKEND=Agg \
		PYTHONDONTWRITEBYTECODE=1 "$python" "$OLDPWD/tests/python_package.py") || fail "the package with $real"
done
[ -n "$tried" ] || skip 'there is no python3'
finish
