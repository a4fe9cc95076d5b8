# SPDX-License-Identifier: Apache-2.0
# Plug-ins build with the installed files alone: each folder of plugins/ is copied and built with what `make install` has put into
# an empty folder. One plug-in of each kind passes `gpuloom validate`, and so do the devices that compile code. The device of
# examples/ builds the same way, and runs jobs.
. tests/lib.sh
plain_build 'the plain build is installed'
need pkg-config
make -s install DESTDIR= PREFIX="$tmp/usr" >"$tmp/out" || fail 'make install'
export PKG_CONFIG_PATH="$tmp/usr/lib/pkgconfig" PATH="$tmp/usr/bin:$PATH"
sdk=$(pkg-config --variable=sdkdir gpuloom)
case $sdk in "$tmp/usr"/*) ;; *) fail "sdkdir is '$sdk'" ;; esac
out=$tmp/outside
mkdir "$out"
for mk in plugins/*/plugin.mk plugins/workloads/*/plugin.mk; do
	folder=${mk%/plugin.mk}
	case $folder in *_common) continue ;; esac
	cp -r "$folder" "$out/"
done
cp -r examples/device-far "$out/"
# Two builds at a time. What is built is tested, but not how fast it is.
build='cd "$0" && make -s -f "$1/plugins/outside.mk" OPT=-O0 >make.log 2>&1 || echo "$0"'
for folder in "$out"/*; do printf '%s\0' "$folder"; done | (cd "$tmp" && xargs -0 -n 1 -P 2 sh -c 'sh -c "$0" "$2" "$1"' "$build" "$sdk") >"$tmp/failed"
while read -r folder; do
	fail "$(basename "$folder") does not build outside"
	grep -m 3 -E 'error|\*\*\*' "$folder/make.log"
done <"$tmp/failed"
# The copies are the plug-ins of this build, no more and no less.
(cd "$out" && ls -- */*.so | sed 's|.*/||; /^device_far.so$/d' | sort) >"$tmp/built"
(cd "$B/plugins" && ls -- *.so | sort) | diff - "$tmp/built" || fail 'other plug-ins than those of the build'
keep_programs
for plugin in transport_host sched_static term_counter sync_poll barrier_central trigger_peer qos_split workload_fib device_sim \
	device_far; do
	"$limit" 300 gpuloom validate "$(echo "$out"/*/$plugin.so)" >"$tmp/out" 2>&1 || { fail "validate $plugin"; tail -n 12 "$tmp/out"; }
done
# device_cuda runs over the stand-in for its driver (check-device-cuda).
cuda=$out/device_cuda/device_cuda.so
if [ -e "$cuda" ]; then
	LD_LIBRARY_PATH="$B/tests/cuda" XDG_CACHE_HOME="$tmp/cache" "$limit" 300 gpuloom validate "$cuda" --skip device.keys \
		--skip device.embeds >"$tmp/out" 2>&1 || { fail 'validate device_cuda'; tail -n 12 "$tmp/out"; }
fi
# Jobs on the device of the example.
cd "$out/device-far" || exit 1
for job in contains fib memset barrier; do
	expect 0 'verified' gpuloom run $job device_far.ini --samples 2 --set transport.use=host
done
# Each device keeps the struct loom_launch of its own that it got for the probe.
expect 0 'verified' gpuloom run fib device_far.ini --samples 2 --set run.devices='./device_far.so:0 ./device_far.so:1 cpu:0'
finish
