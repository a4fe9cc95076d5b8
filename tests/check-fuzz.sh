#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the readers of external input with each input in tests/data/fuzz/TARGET, and with reproducible mutations of these
# inputs. An input whose name ends in _S1, _S5 and the like is the input of a fixed fault. `make fuzz` searches for more.
. tests/lib.sh
plain_build 'the plain build replays them with sanitizers of its own'
mutations=${MUTATIONS:-300}

sanitizers=address,undefined
echo 'int main(void) { return 0; }' | ${CC:-gcc} -x c -fsanitize=$sanitizers - -o "$tmp/a" 2>/dev/null && "$tmp/a" ||
	sanitizers=
env -u MAKEFLAGS -u MAKELEVEL make -s -j2 B="$B/replay" SAN=$sanitizers CC="${CC:-gcc}" OPT=-O1 \
	${sanitizers:+FUZZ_FLAGS=-fno-sanitize-recover=all} fuzz-targets >"$tmp/make" 2>&1 || {
	cat "$tmp/make"
	fail 'the targets do not build'
	finish
}
for source in tests/fuzz/fuzz_*.c; do
	target=$(basename "$source" .c)
	target=${target#fuzz_} input=$B/replay/$target.input
	[ -d "tests/data/fuzz/$target" ] || fail "no inputs for $target in tests/data/fuzz/$target"
	more=1
	[ "$target" != conf ] || more=30 # every program reads confs
	if "$B/replay/target/$target" "tests/data/fuzz/$target" "$((mutations * more))" "$input" >"$tmp/out" 2>&1; then
		printf '%s: %s\n' "$target" "$(tail -n 1 "$tmp/out")"
		rm -f "$input"
	else
		fail "$target: again: $B/replay/target/$target $input"
		head -n 20 "$tmp/out"
	fi
done
for folder in tests/data/fuzz/*/; do
	[ -e "tests/fuzz/fuzz_$(basename "$folder").c" ] || fail "$folder: no such target"
done
finish
