# SPDX-License-Identifier: Apache-2.0
# The binary interface is that of tests/abi: the functions of libgpuloom.so, and the types of the public headers, which plug-ins
# share with the core. abidiff (package abigail-tools) says what has changed.
#   sh tests/check-abi.sh BUILD            compares
#   sh tests/check-abi.sh BUILD --renew    writes tests/abi
# As long as 0.1.0 is not released, a commit that changes the interface renews tests/abi. After that, a change which abidiff does
# not call compatible needs another LOOM_ABI.
. tests/lib.sh
case $B in *address* | *thread* | *undefined*) skip 'sanitizers add symbols' ;; esac
for tool in abidw abidiff readelf; do need $tool; done
readelf -S "$B/libgpuloom.so" | grep -q '\.debug_info' || skip 'libgpuloom.so has no debug information: build with OPT="-O2 -g"'

root=$PWD
# describe FILE OPTION...: prints the interface of a shared object, without paths, lines and indentation. Identifiers of types are
# hashes, so that a change alters few lines.
describe() {
	abidw --headers-dir "$root/core/include" --headers-dir "$root/comm/include" --drop-private-types --no-corpus-path --no-comp-dir-path --no-show-locs \
		--no-architecture --no-elf-needed --type-id-style hash "$@" | sed 's/^ *//'
}
# No function of the library uses the types that only plug-ins and workers have, so a file that includes all headers is
# compiled. The debug information of gcc omits unused types, unless an option forbids this.
for header in core/include/gpuloom/*.h core/include/gpuloom/dev/*.h comm/include/gpuloom/*.h comm/include/gpuloom/dev/*.h; do
	case $header in */cpu.h | */gpu.h | */dev.h | */futex.h | */libc.h | */ir.h) continue ;; esac # functions that are inlined
	echo "#include <${header#*/include/}>"
done >"$tmp/types.c"
echo 'int loom_public_types;' >>"$tmp/types.c"
(cd "$tmp" && gcc -std=gnu11 -D_GNU_SOURCE -g -fPIC -shared -fno-eliminate-unused-debug-types -I"$root/core/include" -I"$root/comm/include" -I"$root/plugins/device_cpu/include" \
	-I"$root/plugins/device_common/include" types.c -o types.so) ||
	{ fail 'the public headers do not compile'; finish; }
describe --exported-interfaces-only "$B/libgpuloom.so" >"$tmp/library.xml"
describe --load-all-types "$tmp/types.so" >"$tmp/types.xml"
for part in library types; do
	[ -s "$tmp/$part.xml" ] || fail "abidw describes no interface of $part"
	if [ "${2-}" = --renew ] && [ "$failures" -eq 0 ]; then
		cp "$tmp/$part.xml" "tests/abi/$part.xml"
	elif ! cmp -s "tests/abi/$part.xml" "$tmp/$part.xml"; then # another compiler may describe the same interface in other words
		abidiff $([ $part = library ] || echo --non-reachable-types) "tests/abi/$part.xml" "$tmp/$part.xml" >"$tmp/out" 2>&1 ||
			{ fail "the interface differs from tests/abi/$part.xml: sh tests/check-abi.sh $B --renew"; cat "$tmp/out"; }
	fi
done
finish
