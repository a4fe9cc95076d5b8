# SPDX-License-Identifier: Apache-2.0
# A plug-in that the build left out is not available here, and one sentence says why and what to do.
. tests/lib.sh
case $B in *address* | *thread* | *undefined* | *perturbed*)
	echo 'skipped: the plain build says it'
	exit 77
	;;
esac
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
# A mistake beside it is one; options of what is not selected are none.
expect 2 'no scheduler plug-in' "$G" run "$tmp/x.ini" --set scheduler.use=nonsense
expect 0 verified "$G" run "$tmp/x.ini" --set run.devices=cpu:0 --set workload.memset.tasks=1000 --samples 1
for name in ghost device_ghost device.ghost; do
	expect 4 'left out' "$G" describe $name --plugin-path "$tmp/absent"
done
expect 0 'device ghost: there was no ghost.h; install' "$G" list --plugin-path "$tmp/absent"
expect 0 'device_ghost +no +left out' "$G" doctor --plugin-path "$tmp/absent"

# The devices for GPUs, where no vendor's headers are: the rest builds.
none="CUDA_HOME=$tmp/none ROCM_PATH=$tmp/none"
b=$tmp/build
expect 0 'device_cuda is left out: there was no cuda.h' make -s B="$b" $none "$b/plugins/device_cpu.so" \
	"$b/plugins/device_cuda.absent" "$b/plugins/device_hip.absent"
for device in cuda hip; do
	[ "$(wc -l <"$b/plugins/device_$device.absent")" -eq 2 ] || fail "no note about device_$device"
done
expect 0 '' make -s B="$b" $none "$b/tests/test_compose" "$b/tests/test_compose_hip"
expect 77 'device_cuda is not built here' "$b/tests/test_compose"
expect 77 'device_hip is not built here' "$b/tests/test_compose_hip"
expect 2 'CUDA=1, but there is no cuda.h' make -s B="$b" $none CUDA=1 all
expect 2 'HIP=1, but there is no hip/hip_runtime_api.h' make -s B="$b" $none HIP=1 all
finish
