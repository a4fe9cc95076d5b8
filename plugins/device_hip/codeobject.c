/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the notes of a code object, which are MessagePack: a map with short texts as keys. There is one kernel, so each
 * key occurs once. */
#include <string.h>

#include "runtime.h"

/* Returns the unsigned number that follows a key, or `otherwise` if there is none. */
static uint32_t number(const char *code, size_t bytes, const char *key, uint32_t otherwise)
{
	char packed[40] = {0};
	size_t n = strlen(key) + 1;
	packed[0] = (char)(0xa0 | strlen(key)); /* the type byte of a text of less than 32 bytes */
	memcpy(packed + 1, key, n - 1);
	const unsigned char *at = memmem(code, bytes, packed, n);
	if (!at || (const char *)at + n + 5 > code + bytes)
		return otherwise;
	at += n;
	switch (*at) {
	case 0xcc:
		return at[1];
	case 0xcd:
		return (uint32_t)at[1] << 8 | at[2];
	case 0xce:
		return (uint32_t)at[1] << 24 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 8 | at[4];
	default:
		return *at < 0x80 ? *at : otherwise;
	}
}

/* Nested tasks are a recursion. The compiler counts the stack of each function in the recursion once, and adds
 * ASSUMED_STACK bytes for the recursive call. Without this addition, the count is a bound on the stack of one more
 * level. */
#define ASSUMED_STACK 16384u

/* Returns the number of registers that the compiler spills to memory. On gfx90a it spills to free accumulation registers
 * first, by a move, and counts those too. */
static uint32_t spilled(const char *code, size_t bytes)
{
	uint32_t all = number(code, bytes, ".vgpr_spill_count", 0);
	uint32_t moved = number(code, bytes, ".agpr_count", 0);
	return all > moved ? all - moved : 0;
}

int code_resources(const char *code, size_t bytes, struct resources *out)
{
	*out = (struct resources){
	    .registers = number(code, bytes, ".vgpr_count", 0),
	    .shared = number(code, bytes, ".group_segment_fixed_size", 0),
	    .stack = number(code, bytes, ".private_segment_fixed_size", 0),
	    .spills = 4 * spilled(code, bytes),
	};
	out->nested = out->stack > ASSUMED_STACK ? out->stack - ASSUMED_STACK : out->stack;
	return out->registers != 0;
}
