/* SPDX-License-Identifier: Apache-2.0 */
/* What tasks on tiles share: float16 and bfloat16, exponentials, and copies into a worker's private memory. Device
 * code.
 *
 * If the compiler's target has no instruction to convert a value of 16 bits, it is converted with integer operations.
 * Copies are asynchronous on GPUs that have such copies (cp.async). Elsewhere they are ordinary loads and stores,
 * which end before tile_copies_wait(). */
#ifndef WORKLOAD_TILE_DEV_H
#define WORKLOAD_TILE_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/dev/dev.h>
#endif

/* A worker of a real GPU first copies tiles into shared memory. Elsewhere tasks read tiles in place. */
#if defined(LOOM_DEVICE_COMPILE) && !defined(LOOM_SIM)
#define TILE_STAGED 1
#define TILE_UNROLL _Pragma("unroll")
#else
#define TILE_STAGED 0
#define TILE_UNROLL
#endif

/* Eight values of 16 bits, which one load of 16 bytes reads. */
struct __attribute__((__may_alias__, aligned(16))) tile_eight {
	uint32_t w[4];
};

union tile_bits {
	uint32_t bits;
	float number;
};

LOOM_FN float tile_half(uint32_t half)
{
#if defined(__CUDA_ARCH__)
	float number;
	asm("cvt.f32.f16 %0, %1;" : "=f"(number) : "h"((unsigned short)half));
	return number;
#else
	union tile_bits x;
	x.bits = (half & 0x7fffu) << 13;
	x.number *= 5192296858534827628530496329220096.0f; /* 2^112: the difference of the exponents' biases */
	x.bits |= (half & 0x8000u) << 16;
	return x.number;
#endif
}

LOOM_FN float tile_bfloat(uint32_t bfloat)
{
	union tile_bits x;
	x.bits = bfloat << 16;
	return x.number;
}

/* `bfloat` selects the type: 1 is bfloat16, 0 is float16. In a program for GPUs it is a constant. */
LOOM_FN float tile_number(uint32_t bits, uint32_t bfloat)
{
	return bfloat ? tile_bfloat(bits) : tile_half(bits);
}

LOOM_FN void tile_numbers(const void *at, uint32_t bfloat, float *eight)
{
	struct tile_eight x = *(const struct tile_eight *)at;
	TILE_UNROLL
	for (int i = 0; i < 4; i++) {
		eight[2 * i] = tile_number(x.w[i] & 0xffffu, bfloat);
		eight[2 * i + 1] = tile_number(x.w[i] >> 16, bfloat);
	}
}

/* Returns 2^x for x <= 0, with a relative error below 2^-21. Except on NVIDIA's GPUs, x below -126 gives 2^-126. */
LOOM_FN float tile_exp2(float x)
{
#if defined(__CUDA_ARCH__)
	float number;
	asm("ex2.approx.f32 %0, %1;" : "=f"(number) : "f"(x));
	return number;
#else
	union tile_bits scale;
	x = x < -126.0f ? -126.0f : x;
	int whole = (int)(x - 0.5f);
	float f = x - (float)whole;
	scale.bits = (uint32_t)(whole + 127) << 23;
	return scale.number *
	       (1.0f +
		f * (0.69314718f +
		     f * (0.24022651f + f * (0.055504109f + f * (0.0096181291f + f * (0.0013333558f + f * 0.0001540353f))))));
#endif
}

/* Starts to copy 16 bytes from the device's memory into private memory. */
LOOM_FN void tile_copy(void *to, const void *from)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
	asm volatile("{\n\t.reg .u64 to, from;\n\tcvta.to.shared.u64 to, %0;\n\tcvta.to.global.u64 from, %1;\n\t"
		     "cp.async.cg.shared.global [to], [from], 16;\n\t}" ::"l"(to),
		     "l"(from)
		     : "memory");
#else
	*(struct tile_eight *)to = *(const struct tile_eight *)from;
#endif
}

/* Makes a group of the copies that this lane has started since the last call. */
LOOM_FN void tile_copies_close(void)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
	asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* Waits until all groups of this lane have ended. If `but_last` is set, does not wait for the last group. A barrier
 * of the lanes must follow. */
LOOM_FN void tile_copies_wait(int but_last)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
	if (but_last)
		asm volatile("cp.async.wait_group 1;" ::: "memory");
	else
		asm volatile("cp.async.wait_group 0;" ::: "memory");
#else
	(void)but_last;
#endif
}

#endif
