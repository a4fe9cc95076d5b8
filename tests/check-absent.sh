# SPDX-License-Identifier: Apache-2.0
# A plug-in that the build omitted is reported as not available, with the reason and a remedy.
. tests/lib.sh
plain_build 'the plain build says it'
mkdir "$tmp/absent"
printf '%s\n' 'there was no ghost.h' 'install it and build again' >"$tmp/absent/device_ghost.absent"
cat >"$tmp/x.ini" <<END
[run]
workload = memset
devices = ghost:0 ghost:1
[gpuloom]
plugin_path = $tmp/absent
[device.ghost]
colour = white
[transport]
use = host
[scheduler]
use = mgws
[termination]
use = counter
END
expect 4 "x.ini:3:11: error: device plug-in 'ghost' was left out .*: there was no ghost.h; install it and build again$" \
	"$G" run "$tmp/x.ini"
[ "$(wc -l <"$tmp/err")" -eq 1 ] || fail 'more than one sentence about what was left out'
# Other errors of the conf are still reported. Options of omitted plug-ins that are not selected are no errors.
expect 2 'no scheduler plug-in' "$G" run "$tmp/x.ini" --set scheduler.use=nonsense
expect 0 verified "$G" run "$tmp/x.ini" --set run.devices=cpu:0 --set workload.memset.tasks=1000 --samples 1
for name in ghost device_ghost device.ghost; do
	expect 4 'left out' "$G" describe $name --plugin-path "$tmp/absent"
done
# A FIFO with the name of a note is ignored, without waiting for a writer.
mkfifo "$tmp/absent/term_pipe.absent"
expect 0 'device ghost: there was no ghost.h; install' "$G" list --plugin-path "$tmp/absent"
expect 0 'device_ghost +no +left out' "$G" doctor --plugin-path "$tmp/absent"

# Without the vendors' headers, the devices for GPUs are left out, and the rest builds.
none="CUDA_HOME=$tmp/none ROCM_PATH=$tmp/none"
b=$tmp/build
expect 0 'left out: device_cuda: there was no cuda.h' make -s B="$b" $none "$b/plugins/device_cpu.so" \
	"$b/plugins/device_cuda.absent" "$b/plugins/device_hip.absent" left-out
[ "$(grep -c device_cuda "$tmp/out")" -eq 1 ] || fail 'device_cuda is reported twice'
expect 0 '' make -s B="$b" $none help
! grep 'left out: device' "$tmp/out" "$tmp/err" || fail 'a target that builds no plug-in reports what was left out'
for device in cuda hip; do
	[ "$(wc -l <"$b/plugins/device_$device.absent")" -eq 2 ] || fail "no note about device_$device"
done
make -s -j2 B="$b" $none "$b/tests/test_compose" "$b/tests/test_compose_hip" >"$tmp/out" 2>&1 ||
	{ fail 'the tests of the devices for GPUs, without them'; cat "$tmp/out"; } # minutes, where compilers are slow
expect 77 'device_cuda is not built here' "$b/tests/test_compose"
expect 77 'device_hip is not built here' "$b/tests/test_compose_hip"
# A library that some plug-ins need is found by pkg-config, or by the usual place of its header.
expect 0 'left out: trigger_gputn trigger_hdn .*: it was built with FABRIC=0; build again without FABRIC=0' \
	make -s B="$b" $none FABRIC=0 "$b/plugins/trigger_gputn.absent" left-out
[ "$(wc -l <"$b/plugins/trigger_gputn.absent")" -eq 2 ] || fail 'no note about trigger_gputn'
expect 0 'left out: launchers with PMIx' sh -c \
	"make -n B=$b PMIX=0 | tr '\\n' ' '"
[ ! -e /usr/include/rdma/fabric.h ] ||
	expect 0 '' env PKG_CONFIG_LIBDIR="$tmp/none" make -n B="$b" FABRIC=1 "$b/plugins/device_cpu.so"
expect 2 'FABRIC=1, but there is no rdma/fabric.h' make -s B="$b" FABRIC=1 FABRIC_FLAGS= all
# A missing compiler or mandatory library gives one message, before the first compiler error.
expect 2 "not found: nogcc, the compiler; 'tools/deps build' installs" make -s B="$tmp/bare" CC=nogcc
expect 2 "not found: iniparser/iniparser.h .*'tools/deps build' installs" make -s B="$tmp/bare" CPPFLAGS=-nostdinc
[ "$(grep -c error "$tmp/err")" = 0 ] || fail 'compiler errors beside what is missing'
expect 2 'CUDA=1, but there is no cuda.h' make -s B="$b" $none CUDA=1 all
expect 2 'HIP=1, but there is no hip/hip_runtime_api.h' make -s B="$b" $none HIP=1 all
finish
