// Types of the operands of asm. gpuloom explore must say: wrong result (the fault adds another number).
/* SPDX-License-Identifier: Apache-2.0 */
#include "flags.cuh"

#ifdef FAULT
enum { BY = 2 };
#else
enum { BY = -2 };
#endif
enum colour : unsigned char { RED = 1, BLUE = 200 };
struct two {
	short low, high;
};

template <class T, class V> __device__ T moved(V v)
{
	T to;
	asm("mov.b64 %0, %1;" : "=l"(to) : "l"(v));
	return to;
}

__global__ void check(int *right, float *p)
{
	int n = 0;
	n += moved<int>(-5) == -5;
	n += moved<long long>((short)-5) == -5;
	n += moved<unsigned char>(300) == 44;
	n += moved<bool>(true);
	n += moved<colour>(BLUE) == BLUE;
	n += moved<float *>(p + 1) == p + 1;
	n += moved<double>(2.5) == 2.5;
	n += moved<two>(two{3, -4}).high == -4;
	float f;
	asm("add.f32 %0, %1, %2;" : "=f"(f) : "f"(1.5f), "f"(2.25f));
	n += f == 3.75f;
	volatile unsigned v = 7;
	asm volatile("add.u32 %[v], %[v], %[by];" : [v] "+r"(v) : [by] "n"(BY));
	n += v == 5;
	short lo, hi;
	unsigned both = 0x00070003;
	asm("{ .reg .b32 all; mov.b32 all, %2; mov.b32 {%0, %1}, all; }" : "=h"(lo), "=h"(hi) : "r"(both));
	n += lo == 3 && hi == 7;
	float4 q;
	asm("ld.global.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(q.x), "=f"(q.y), "=f"(q.z), "=f"(q.w) : "l"(p));
	n += q.x == 0 && q.w == 3;
	*right = n;
}

void explore_rank(int rank, int ranks)
{
	int *right = explore::buffer<int>("right", rank, 1);
	float *p = explore::buffer<float>("p", rank, 4);
	for (int i = 0; i < 4; i++)
		p[i] = (float)i;
	check<<<1, 1>>>(right, p);
	cudaDeviceSynchronize();
	explore_expect(*right == 12, "the 12 values are right");
}
