/* SPDX-License-Identifier: Apache-2.0 */
/* Inline PTX: the rewriter (rewrite.h) makes a call of ::explore::ptx() of each asm statement. */
#ifndef GPULOOM_EXPLORE_PTX_H
#define GPULOOM_EXPLORE_PTX_H

#include "run.h"

struct explore_operand {
	const char *constraint; /* "=r", "+l", "n" ... */
	uint64_t bits;		/* the value, extended by its sign */
};

#ifdef __cplusplus
extern "C" {
#endif
/* Executes a template. text: a string that stays valid. operand: n operands in the order of the statement; outputs get
 * their values in `bits`. Refuses what it does not know. */
void explore_ptx(const struct explore_place *at, const char *text, struct explore_operand *operand, uint32_t n);
#ifdef __cplusplus
}

#include <cstring>
#include <type_traits>

namespace explore
{
template <class T> struct operand {
	explore_operand o;
	T *to; /* nullptr: an input */
	void take(uint64_t bits)
	{
		if constexpr (std::is_integral_v<T> || std::is_enum_v<T>)
			*to = static_cast<T>(bits);
		else
			std::memcpy(const_cast<void *>(static_cast<const volatile void *>(to)), &bits, sizeof(T));
	}
};

template <class T> uint64_t bits(const T &value)
{
	static_assert(sizeof(T) <= 8, "an operand of PTX has at most 64 bits");
	uint64_t b = 0;
	if constexpr (std::is_integral_v<T> || std::is_enum_v<T>)
		b = static_cast<uint64_t>(value);
	else
		std::memcpy(&b, const_cast<const void *>(static_cast<const volatile void *>(&value)), sizeof(T));
	return b;
}

/* constraint[0]: '=', or '+' if the statement also reads the variable. */
template <class T> operand<T> out(const char *constraint, T &variable)
{
	return {{constraint, constraint[0] == '+' ? bits(variable) : 0}, &variable};
}

template <class T> operand<char> in(const char *constraint, T value)
{
	return {{constraint, bits(value)}, nullptr};
}

template <class... O> void ptx(const explore_place &at, const char *text, O... operands)
{
	explore_operand o[] = {operands.o..., {nullptr, 0}};
	const explore_operand *next = o;
	explore_ptx(&at, text, o, sizeof...(operands));
	((operands.to ? operands.take(next->bits) : void(), ++next), ...);
}
} // namespace explore
#endif
#endif
