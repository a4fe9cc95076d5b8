# SPDX-License-Identifier: Apache-2.0
# An installed tree serves by itself: the command, an embedding program, an out-of-tree plug-in.
. tests/lib.sh
case $B in *address* | *thread* | *undefined* | *perturbed*)
	echo 'skipped: the plain build is installed'
	exit 77
	;;
esac
make -s install DESTDIR= PREFIX="$tmp/usr" >/dev/null || fail 'make install'
export PKG_CONFIG_PATH="$tmp/usr/lib/pkgconfig" PATH="$tmp/usr/bin:$PATH"
[ "$(pkg-config --variable=plugindir gpuloom)" = "$tmp/usr/lib/gpuloom/plugins" ] || fail plugindir
cp -r examples "$tmp/examples"
cd "$tmp/examples" || exit 1
make -s -C embed wordcount || fail 'examples/embed does not build'
make -s -C plugin-term-ring || fail 'examples/plugin-term-ring does not build'
seq 100000 >"$tmp/numbers"
tr '\n' ' ' <"$tmp/numbers" >"$tmp/line"
words=$(embed/wordcount "$tmp/numbers" "$tmp/line") || fail wordcount
[ "$words" = 200000 ] ||
	fail "wordcount says $words"
cd plugin-term-ring || exit 1
expect 0 'term_ring' gpuloom describe ./term_ring.so
expect 0 'verified' gpuloom run "$tmp/usr/share/gpuloom/conf/fib.ini" term_ring.ini --samples 20 \
	--set workload.fib.n=18
expect 0 'verified' gpuloom run "$tmp/usr/share/gpuloom/conf/uts.ini" term_ring.ini --samples 5 \
	--set workload.uts.tree=custom --set device.cpu.workers=3 --set device.cpu.isolation=process
finish
