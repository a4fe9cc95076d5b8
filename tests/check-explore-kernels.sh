#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# gpuloom explore KERNEL.cu: each kernel of tests/explore is right, and has a fault with -DFAULT, which must be found. Bad
# input is refused by name. `make check` takes some of the kernels, `make check-rest` all.
. tests/lib.sh
need "${CXX:-c++}"

mkdir "$tmp/compiled"
export TMPDIR=$tmp/compiled

# kernel NAME TEXT [OPTION...]: TEXT: what the fault's message has
kernel() {
	name=$1 text=$2
	shift 2
	expect 0 'nothing found: 300 schedules' "$G" explore "tests/explore/$name.cu" --ranks 2 --seeds 300 "$@"
	expect 3 "$text" "$G" explore "tests/explore/$name.cu" --ranks 2 --define FAULT "$@"
	seed=$(sed -n 's/^again: --replay //p' "$tmp/out")
	first=$(sed -n 's/^found: //p' "$tmp/out")
	expect 3 'schedule 1 ' "$G" explore "tests/explore/$name.cu" --ranks 2 --define FAULT --replay "$seed" "$@"
	[ "$first" = "$(sed -n 's/^found: //p' "$tmp/out")" ] || fail "$name: seed $seed does not repeat: $first"
}
kernel reset_race 'hang'
kernel store 'race: read by rank .* bulk copies of rank'
kernel proxy 'read by bulk copies of rank'
kernel fence_scope 'race: read by rank'
if in_rest; then
	kernel one_set 'hang'
	kernel start_relaxed 'race'
	kernel end_release 'race: read by the host code'
	kernel grids 'rank 0, block 1, thread 1: polls'
	kernel residency 'hang' --resident 2
	kernel lamport 'wrong result: the sum of call'
	kernel graph_counter 'race'
	kernel two_shot 'race'
	kernel combine 'race'
fi

cat >"$tmp/main.cu" <<'C'
#include <cstdio>
#include <cassert>
template <class T> __global__ void count(const T *v, int n, int *h)
{
	__shared__ int local[4];
	if (threadIdx.x < 4)
		local[threadIdx.x] = 0;
#ifndef FAULT
	__syncthreads();
#endif
	for (int i = threadIdx.x; i < n; i += blockDim.x)
		atomicAdd(&local[v[i]], 1);
	__syncthreads();
	if (threadIdx.x < 4)
		atomicAdd(&h[threadIdx.x], local[threadIdx.x]);
	printf("a line of each thread\n");
}
int main()
{
	unsigned char *v;
	int *h, sum[4];
	cudaMalloc(&v, 64);
	cudaMalloc(&h, 16);
	cudaMemset(v, 1, 64);
	cudaMemset(h, 0, 16);
	count<unsigned char><<<2, 32>>>(v, 64, h);
	cudaMemcpy(sum, h, 16, cudaMemcpyDeviceToHost);
	assert(sum[1] == 128);
	return sum[0];
}
C
expect 0 'nothing found: 100 schedules' "$G" explore "$tmp/main.cu" --seeds 100
! grep -q 'a line of each' "$tmp/out" || fail 'prints of kernels are not muted'
expect 3 'race: ' "$G" explore "$tmp/main.cu" --define FAULT

# A crash, a loop that no other thread can end, and exit() are found with their place.
found() { # PATTERN HOST-CODE
	printf '__global__ void k(int *p) { while (!*p) ; }\nvoid explore_rank(int, int) { %s }\n' "$2" >"$tmp/bad.cu"
	expect 3 "$1" "$G" explore "$tmp/bad.cu"
	grep -q '^again: --replay 0' "$tmp/out" || fail "no seed: $2"
}
found 'crash, Segmentation fault, by rank 0, block 0, thread 0 at bad.cu:1' 'k<<<1, 1>>>((int *)8);'
found 'rank 0, block 0, thread 0 runs for 5 s .* at bad.cu:1' 'k<<<1, 1>>>(explore::buffer<int>("p", 0, 1));'
found 'the program called exit.7.' 'exit(7);'
found 'a grid of 1 blocks of 2048 threads' 'k<<<1, 2048>>>(nullptr);'

# refused PATTERN CODE-LINE: a kernel with this line is refused.
refused() {
	printf '__device__ void f(unsigned *p) { %s }\nvoid explore_rank(int, int) {}\n' "$2" >"$tmp/bad.cu"
	expect "$3" "$1" "$G" explore "$tmp/bad.cu"
}
refused 'does not compile' 'no_such_function(p);' 2
printf '__device__ unsigned word;\nvoid explore_rank(int, int) {}\n' >"$tmp/bad.cu"
expect 4 'bad.cu:1.*word' "$G" explore "$tmp/bad.cu"
cat >"$tmp/bad.cu" <<'C'
__global__ void k(unsigned *p) { asm volatile("multimem.red.add.u32 [%0], 1;" ::"l"(p)); }
void explore_rank(int, int) { k<<<1, 1>>>(nullptr); }
C
expect 4 'bad.cu:1: .*multimem' "$G" explore "$tmp/bad.cu"
expect 2 'No such file' "$G" explore "$tmp/none.cu"
expect 2 'No such file' "$G" explore "$tmp/main.cu" --harness "$tmp/none.cpp"
CXX=/none/c++ expect 4 'no C.. compiler can be run' "$G" explore "$tmp/main.cu"
[ -z "$(ls "$TMPDIR")" ] || fail "left: $(ls "$TMPDIR")"
finish
