/* SPDX-License-Identifier: Apache-2.0 */
/* What tasks on tiles share: float16 and bfloat16, exponentials, and products of matrices by warps. Device code.
 *
 * If the compiler's target has no instruction to convert a value of 16 bits, it is converted with integer operations. */
#ifndef WORKLOAD_TILE_DEV_H
#define WORKLOAD_TILE_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/dev/dev.h>
#endif

#if defined(LOOM_REAL_GPU)
#define TILE_UNROLL _Pragma("unroll")
#else
#define TILE_UNROLL
#endif

/* Eight values of 16 bits, which one load of 16 bytes reads. */
struct __attribute__((__may_alias__, aligned(16))) tile_eight {
	uint32_t w[4];
};

/* Two such values. */
struct __attribute__((__may_alias__, aligned(4))) tile_two {
	uint32_t w;
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

LOOM_FN float tile_dot8(const float *a, const float *b)
{
	return ((a[0] * b[0] + a[1] * b[1]) + (a[2] * b[2] + a[3] * b[3])) +
	       ((a[4] * b[4] + a[5] * b[5]) + (a[6] * b[6] + a[7] * b[7]));
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

/* ---- products of matrices by a warp ------------------------------------------------------------- */

/* NVIDIA's GPUs from compute capability 8.0 on have an instruction by which the 32 lanes of a warp multiply two small
 * matrices: LOOM_SHAPE_PRODUCTS. In the functions below all lanes of a warp take part. Lane l has the row l / 4 of its
 * part of a matrix, and there the columns from 2 (l % 4) on.
 *
 * An element of 16 bits is exact. A float is split into `TILE_TERMS` such elements, whose sum has the relative error
 * 2^-22 or less. */
#define TILE_WARP 32u
#define TILE_TERMS_MOST 3u
#define TILE_TERMS(bfloat) ((bfloat) ? 3u : 2u)
#define TILE_AREAS 4u /* warps of a worker that have an area of scratchpad memory at a time, when they add up their sums */

/* Copies into scratchpad memory that do not wait, each of 16 bytes. tile_copy() writes zeros if `some` is 0. TILE_COPY_GROUP() ends a
 * group of copies. After TILE_COPY_WAIT(n) all groups of this lane but the last n are complete; other lanes see them after a barrier,
 * too. A tile_near is an address in scratchpad memory. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
typedef uint32_t tile_near;
#define TILE_WARP_BARRIER()	__syncwarp()
#define TILE_COPY_GROUP()	asm volatile("cp.async.commit_group;" ::: "memory")
#define TILE_COPY_WAIT(pending) asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory")

LOOM_FN tile_near tile_near_of(const char *at)
{
	return (tile_near)__cvta_generic_to_shared(at);
}

LOOM_FN void tile_copy(tile_near to, const void *from, int some)
{
	asm volatile("{\n\t.reg .u64 at;\n\tcvta.to.global.u64 at, %1;\n\t"
		     "cp.async.cg.shared.global.L2::128B [%0], [at], 16, %2;\n\t}" ::"r"(to),
		     "l"(from), "r"(some ? 16 : 0)
		     : "memory");
}

/* Reads 8 bytes of scratchpad memory. */
LOOM_FN void tile_read(tile_near at, uint32_t *w)
{
	asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(w[0]), "=r"(w[1]) : "r"(at) : "memory");
}

/* Loads four matrices of 8 x 8 elements from scratchpad memory. Matrix m has as rows the 16 bytes at the places that the lanes from
 * 8 m on give. w[m] receives what tile_multiply() takes: lane l has row l / 4 of the matrix, and there the columns from 2 (l % 4) on.
 * With tile_transposed(), it is the transposed matrix that has these rows and columns. */
#define TILE_MATRICES(how)                                                                                             \
	asm volatile("ldmatrix.sync.aligned.m8n8.x4" how ".shared.b16 {%0, %1, %2, %3}, [%4];"                         \
		     : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])                                                  \
		     : "r"(at)                                                                                         \
		     : "memory")
LOOM_FN void tile_matrices(tile_near at, uint32_t *w)
{
	TILE_MATRICES("");
}

LOOM_FN void tile_transposed(tile_near at, uint32_t *w)
{
	TILE_MATRICES(".trans");
}
#undef TILE_MATRICES

/* Adds a product to sum, a matrix of 16 x 8: rows l / 4 in sum[0] and sum[1], rows l / 4 + 8 in sum[2] and sum[3].
 * The first factor is a matrix of 16 x 16: a0 has the row l / 4, a1 the row l / 4 + 8, a2 and a3 are the same rows 8
 * columns further. The second factor is a matrix of 16 x 8. b0 and b1 have the column l / 4, and there the rows from
 * 2 (l % 4) on, and 8 rows further. */
LOOM_FN void tile_multiply(float *sum, uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1,
			   uint32_t bfloat)
{
#define TILE_MULTIPLY(type)                                                                                            \
	asm("mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, " \
	    "{%0, %1, %2, %3};"                                                                                        \
	    : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])                                                   \
	    : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1))
	if (bfloat)
		TILE_MULTIPLY("bf16");
	else
		TILE_MULTIPLY("f16");
#undef TILE_MULTIPLY
}

/* Transposes a matrix of 8 x 8. */
LOOM_FN uint32_t tile_transpose(uint32_t word)
{
	uint32_t to;
	asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(to) : "r"(word));
	return to;
}

/* Rounds two floats to elements; `low` goes to the lower half. */
LOOM_FN uint32_t tile_pair(float low, float high, uint32_t bfloat)
{
	uint32_t to;
	if (bfloat)
		asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(to) : "f"(high), "f"(low));
	else
		asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(to) : "f"(high), "f"(low));
	return to;
}

/* Returns the value of the lane whose number differs in the bits of `mask`. */
LOOM_FN float tile_other(float value, uint32_t mask)
{
	return __shfl_xor_sync(0xffffffffu, value, mask);
}
#endif

#if (defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800) || defined(TILE_RIG) /* a test has the functions above for CPUs */
/* Return the largest value, and the sum, over the lanes with the same columns. */
LOOM_FN float tile_highest(float value)
{
	TILE_UNROLL
	for (uint32_t mask = 4; mask < TILE_WARP; mask *= 2) {
		float other = tile_other(value, mask);
		value = other > value ? other : value;
	}
	return value;
}

LOOM_FN float tile_total(float value)
{
	TILE_UNROLL
	for (uint32_t mask = 4; mask < TILE_WARP; mask *= 2)
		value += tile_other(value, mask);
	return value;
}

/* Splits two floats into terms, the largest term first. */
LOOM_FN void tile_split(float low, float high, uint32_t bfloat, uint32_t *term)
{
	TILE_UNROLL
	for (uint32_t t = 0; t < TILE_TERMS(bfloat); t++) {
		term[t] = tile_pair(low, high, bfloat);
		low -= tile_number(term[t] & 0xffffu, bfloat);
		high -= tile_number(term[t] >> 16, bfloat);
	}
}
#endif

#endif
