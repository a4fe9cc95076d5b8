# SPDX-License-Identifier: Apache-2.0
# Makes the source archive, and from it and the existing build the Debian packages. They must have the expected files, and work
# in the folder where they are unpacked. `make check-deb` builds them as Debian does and installs them into a fresh Debian.
. tests/lib.sh
version=$(env -u MAKEFLAGS -u MAKELEVEL make -s --no-print-directory \
	--eval 'version: ; @echo $(VERSION)' version 2>/dev/null | tail -n 1)
grep -q "^gpuloom ($version) " debian/changelog || fail "debian/changelog does not begin with version $version"
for distribution in apt dnf pacman; do # stand-ins for the package managers show the names for each distribution
	mkdir "$tmp/$distribution"
	for tool in sh sed awk grep xargs id tr; do ln -s "$(command -v $tool)" "$tmp/$distribution/"; done
done
printf '#!/bin/sh\n[ "$3" = gcc ] || [ "$2" = gcc ]\n' >"$tmp/dnf/rpm"
cp "$tmp/dnf/rpm" "$tmp/pacman/pacman"
touch "$tmp/dnf/dnf" && chmod +x "$tmp"/dnf/* "$tmp"/pacman/pacman
expect 1 'missing: glibc-devel make .* numactl-devel zlib-devel$' env PATH="$tmp/dnf" tools/deps --check build
expect 1 'missing: glibc make .* cjson numactl zlib$' env PATH="$tmp/pacman" tools/deps --check build
# The output of a package manager goes to a file, and is printed only if packages cannot be installed.
for tool in cat env mktemp; do ln -s "$(command -v $tool)" "$tmp/pacman/"; done
cat >"$tmp/pacman/pacman" <<'SH'
#!/bin/sh
[ "$1" != -T ] || { [ "$2" = gcc ]; exit; }
echo 'a line of the package manager'
exit "$PACMAN"
SH
rm "$tmp/pacman/id" && printf '#!/bin/sh\necho 0\n' >"$tmp/pacman/id" && chmod +x "$tmp/pacman/id"
expect 0 'whose output goes to /' env PATH="$tmp/pacman" TMPDIR="$tmp" PACMAN=0 tools/deps build
! grep 'a line of' "$tmp/err" || fail 'the output of the package manager'
expect 1 'a line of the package manager' env PATH="$tmp/pacman" TMPDIR="$tmp" PACMAN=1 tools/deps build
expect 0 'no Debian, Ubuntu, Fedora or Arch: install .* libnuma-dev' env PATH="$tmp/apt" tools/deps build
expect 2 "no group 'nix': build check" tools/deps nix

# The source archive: the same bytes twice, and again in the unpacked archive, which has no repository.
tree=$tmp/gpuloom-$version
expect 0 "gpuloom-$version.tar.gz: revision ." tools/dist "$tmp/dist"
cp -p "$tmp/dist/gpuloom-$version.tar.gz" "$tmp/first.tar.gz"
expect 0 '' sh -c 'umask 077 && exec tools/dist "$0"' "$tmp/dist"
cmp "$tmp/first.tar.gz" "$tmp/dist/gpuloom-$version.tar.gz" || fail 'two source archives differ'
tar -xz -C "$tmp" -f "$tmp/first.tar.gz" || fail 'the source archive'
expect 0 '' sh -c 'cd "$0" && exec tools/dist "$1"' "$tree" "$tmp/dist"
cmp "$tmp/first.tar.gz" "$tmp/dist/gpuloom-$version.tar.gz" || fail 'the archive of an unpacked archive differs'
read -r revision _ <"$tree/SOURCES"
expect 0 "^$revision\$" env -u MAKEFLAGS -u MAKELEVEL make -s --no-print-directory -C "$tree" \
	--eval 'revision: ; @echo $(REVISION)' revision

case $B in *address* | *thread* | *undefined* | *perturbed*) plain=no ;; *) plain=yes ;; esac
if [ $plain = no ] || ! command -v dh_missing >/dev/null; then
	[ "$failures" -eq 0 ] || finish
	skip 'the packages: there is no debhelper (tools/deps deb), or this is no plain build'
fi
mkdir "$tree/build"
cp -a "$B/obj" "$B/plugins" "$B/build-facts.h" "$B/required" "$tree/build/"
for part in required obj plugins; do find "$tree/build/$part" -type f -exec touch {} +; \
	done # make considers these files up to date only if they are newer than the tree
(cd "$tree" && env -u MAKEFLAGS -u MAKELEVEL DPKG_DEB_COMPRESSOR_TYPE=none \
	DEB_BUILD_OPTIONS='nocheck noautodbgsym nostrip' dpkg-buildpackage -us -uc -b -d -nc) \
	>"$tmp/log" 2>&1 || { fail 'dpkg-buildpackage'; tail -n 30 "$tmp/log"; finish; }
for package in gpuloom libgpuloom0 libgpuloom-dev gpuloom-doc; do
	dpkg-deb -x "$tmp/${package}_${version}_"*.deb "$tmp/root" || fail "there is no $package"
done
lib=usr/lib/$(dpkg-architecture -q DEB_HOST_MULTIARCH)
for f in usr/bin/gpuloom usr/share/man/man1/gpuloom.1.gz usr/share/bash-completion/completions/gpuloom \
	$lib/libgpuloom.so \
	$lib/libgpuloom.so.0 $lib/pkgconfig/gpuloom.pc usr/include/gpuloom/dev/dev.h \
	usr/share/doc/gpuloom/docs/options.md* usr/share/gpuloom/python/gpuloom/foreign.py \
	usr/share/doc/gpuloom/examples/embed/wordcount.c; do
	[ -s "$tmp/root/"$f ] || fail "no package has $f"
done
expect 0 "^device +cpu .* $tmp/root/$lib/gpuloom/plugins" "$tmp/root/usr/bin/gpuloom" list -v
expect 0 'sort --threads' "$tmp/root/usr/bin/gpuloom" report tests/data/foreign/hyperfine.json
expect 0 'verified' "$tmp/root/usr/bin/gpuloom" run "$tmp/root/usr/share/doc/gpuloom/examples/conf/fib.ini" \
	--samples 1 \
	--set workload.fib.n=18
finish
