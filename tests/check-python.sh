# SPDX-License-Identifier: Apache-2.0
# Installs the Python package, by pip if available. The package is tested with the first Python of this machine, and with
# another Python that has pandas and matplotlib.
. tests/lib.sh
plain_build 'a sanitized library cannot be loaded into an interpreter'
version=$(sed -n 's/^VERSION := //p' Makefile)
grep -q "^__version__ = \"$version\"" python/gpuloom/__init__.py ||
	fail "python/ has another version than $version"
tried=
for python in $(command -v python3) /usr/bin/python3; do
	real=$("$python" -c 'import os, sys; print(os.path.realpath(sys.executable))' 2>/dev/null) || continue
	case " $tried " in *" $real "*) continue ;; esac
	"$python" -c 'import ctypes, json, statistics, unittest' 2>/dev/null || continue # a minimal Python lacks these modules
	[ -z "$tried" ] || "$python" -c 'import pandas, matplotlib' 2>/dev/null || continue # this Python would test nothing new
	tried="$tried $real"
	here=$tmp/$(echo "$real" | tr / -)
	mkdir "$here" && cp -r python "$here/python"
	if "$python" -c 'import pip' 2>/dev/null; then # the installation must need neither a compiler nor a network
		pip="$python -m pip --quiet --no-input --disable-pip-version-check"
		CC=false $pip install --no-index --root-user-action=ignore \
			--target "$here/installed" "$here/python" >"$tmp/log" 2>&1 ||
			{ fail "pip install with $real"; cat "$tmp/log"; }
		# All users may read what root installs, whatever the umask of the build is. A source archive and -e work,
		# too.
		(umask 077 && cd "$here/python" &&
			"$python" -c 'import backend; print(backend.build_sdist(".."), backend.build_wheel(".."))') >/dev/null ||
			fail "sdist and wheel with $real"
		"$python" - "$here"/*.whl "$here"/*.tar.gz <<'PYTHON' || fail \
			"F17e: modes of files in the wheel and the source archive"
import sys, tarfile, zipfile
wheel, sdist = zipfile.ZipFile(sys.argv[1]), tarfile.open(sys.argv[2])
modes = {e.filename: e.external_attr >> 16 & 0o777 for e in wheel.infolist()} | {e.name: e.mode for e in sdist}
sys.exit([n for n, mode in modes.items() if mode != 0o644] != [] or len(modes) < 15)
PYTHON
		CC=false $pip install --no-index --root-user-action=ignore \
			--target "$here/archive" "$here"/*.tar.gz >"$tmp/log" 2>&1 &&
			[ -f "$here/archive/gpuloom/embed.py" ] && [ -f "$here/archive/gpuloom/py.typed" ] ||
			{ fail "F17f: pip install of the source archive with $real"; cat "$tmp/log"; }
		# In a venv, the wheel and the archive find the library beside the command in PATH, from any folder.
		if "$python" -m venv "$here/venv" >/dev/null 2>&1; then
			for package in "$here"/*.whl "$here"/*.tar.gz; do
				"$here/venv/bin/pip" --quiet --disable-pip-version-check install --force-reinstall \
					--no-index "$package" >"$tmp/log" 2>&1 &&
					(cd / && unset GPULOOM GPULOOM_LIBRARY PYTHONPATH && PATH="$B:$PATH" CONF="$OLDPWD/conf/fib.ini" "$here/venv/bin/python" -c '
import gpuloom, os
with gpuloom.Stack(os.environ["CONF"], set={"workload.fib.n": 12}) as stack:
    assert stack.run()["metrics"]["seconds"]
print(gpuloom.__file__)') >"$tmp/out" 2>>"$tmp/log" && grep -q "^$here/venv/" "$tmp/out" ||
					{ fail "pip install $package in a venv"; cat "$tmp/log"; }
			done
			"$here/venv/bin/pip" --quiet --disable-pip-version-check install \
				--no-index -e "$here/python" >"$tmp/log" 2>&1 &&
				(cd / && "$here/venv/bin/python" -c 'import gpuloom; print(gpuloom.__file__)') |
				grep -qx "$here/python/gpuloom/__init__.py" ||
				{ fail "F17f: pip install -e with $real"; cat "$tmp/log"; }
		fi
	else
		echo "$real has no pip: used from the tree"
		mv "$here/python" "$here/installed"
	fi
	ln -s "$PWD/conf" "$here/conf"
	(cd "$here" &&
		NOTEBOOK="$OLDPWD/python/examples/victims.ipynb" TREE="$OLDPWD" GPULOOM=$G PYTHONPATH="$here/installed" \
		MPLBACKEND=Agg \
		PYTHONDONTWRITEBYTECODE=1 \
		env --default-signal=INT "$python" "$OLDPWD/tests/python_package.py") || fail "the package with $real"
	PYTHONPYCACHEPREFIX="$here/cache" "$python" -m py_compile examples/torch/*.py || fail "examples/torch with $real"
	(cd "$here" &&
		GPULOOM=$G PYTHONPATH="$here/installed:$OLDPWD/tests/torch_stand_in" PYTHONDONTWRITEBYTECODE=1 \
			env --default-signal=INT "$python" "$OLDPWD/tests/python_torch.py") ||
		fail "gpuloom.torch with $real"
done
[ -n "$tried" ] || skip 'there is no python3'
finish
