/* SPDX-License-Identifier: Apache-2.0 */
/* 16-bit floating-point numbers, as far as `gpuloom explore` knows them: they are converted to float and back. */
#ifndef LOOM_EXPLORE_CUDA_FP16_H
#define LOOM_EXPLORE_CUDA_FP16_H

#include <cuda_runtime.h>

namespace explore {
static inline uint16_t half_of(float v)
{
	uint32_t b = (uint32_t)to_bits(v), sign = b >> 16 & 0x8000, magnitude = b & 0x7fffffff;
	if (magnitude >= 0x47800000) /* too large, infinite, or no number */
		return (uint16_t)(sign | (magnitude > 0x7f800000 ? 0x7e00 : 0x7c00));
	if (magnitude < 0x38800000) /* the result is below the smallest normal number: a multiple of 2^-24 */
		return (uint16_t)(sign | (uint32_t)__builtin_rintf(from_bits<float>(magnitude) * 16777216.0f));
	return (uint16_t)(sign | ((magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13));
}
static inline float of_half(uint16_t h)
{
	uint32_t exponent = h >> 10 & 31, fraction = h & 0x3ff;
	float v = exponent == 31  ? from_bits<float>(0x7f800000 | fraction << 13)
		  : exponent == 0 ? (float)fraction / 16777216.0f
				  : from_bits<float>((exponent + 112) << 23 | fraction << 13);
	return h & 0x8000 ? -v : v;
}
static inline uint16_t bfloat_of(float v)
{
	uint32_t b = (uint32_t)to_bits(v);
	return (uint16_t)((b + 0x7fff + (b >> 16 & 1)) >> 16);
}
static inline float of_bfloat(uint16_t b) { return from_bits<float>((uint32_t)b << 16); }

template <uint16_t (*From)(float), float (*To)(uint16_t)> struct small_float {
	uint16_t x;
	small_float() = default;
	small_float(float v) : x(From(v)) {}
	operator float() const { return To(x); }
	small_float &operator+=(small_float o) { return *this = small_float((float)*this + (float)o); }
};
} // namespace explore

typedef explore::small_float<explore::half_of, explore::of_half> __half;
typedef __half half;
typedef explore::small_float<explore::bfloat_of, explore::of_bfloat> __nv_bfloat16;
typedef __nv_bfloat16 nv_bfloat16;
#define EXPLORE_SMALL(type, to, from, add)                                                                             \
	struct alignas(4) type##2 {                                                                                    \
		type x, y;                                                                                             \
	};                                                                                                             \
	static inline type to(float v) { return type(v); }                                                             \
	static inline float from(type v) { return (float)v; }                                                          \
	static inline type add(type a, type b) { return type((float)a + (float)b); }                                   \
	static inline type##2 add##2(type##2 a, type##2 b) { return {add(a.x, b.x), add(a.y, b.y)}; }
EXPLORE_SMALL(__half, __float2half, __half2float, __hadd)
typedef __half2 half2;
EXPLORE_SMALL(__nv_bfloat16, __float2bfloat16, __bfloat162float, __hadd)
typedef __nv_bfloat162 nv_bfloat162;

#endif
