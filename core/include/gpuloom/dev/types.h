/* SPDX-License-Identifier: Apache-2.0 */
/* Fixed-width types: those of the C library, or own definitions if a run-time compiler has no C library. A back end
 * whose compiler has uint64_t as unsigned long long defines LOOM_INT64_IS_LONG_LONG. */
#ifndef GPULOOM_DEV_TYPES_H
#define GPULOOM_DEV_TYPES_H

#if !defined(LOOM_DEVICE_COMPILE) && __has_include(<stdint.h>)
#include <stddef.h>
#include <stdint.h>
#else
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
#ifdef LOOM_INT64_IS_LONG_LONG
typedef signed long long int64_t;
typedef unsigned long long uint64_t;
#else
typedef long int64_t;
typedef unsigned long uint64_t;
#endif
typedef unsigned long uintptr_t;
typedef decltype(sizeof(0)) size_t;
static_assert(sizeof(uint64_t) == 8 && sizeof(void *) == 8, "hosts and devices with 64 bits only");
#define INT32_MAX 0x7fffffff
#define INT32_MIN (-INT32_MAX - 1)
#define INT64_MAX 0x7fffffffffffffffl
#define INT64_MIN (-INT64_MAX - 1)
#define UINT8_MAX 0xffu
#define UINT16_MAX 0xffffu
#define UINT32_MAX 0xffffffffu
#define UINT64_MAX 0xfffffffffffffffful
#ifndef NULL
#define NULL 0
#endif
#endif

#endif
