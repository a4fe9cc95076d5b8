/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a post can ever run: said when it is posted, not when it is fired. */
#include "nic.h"

static int check_places(const struct nic_bounds *b, const struct loom_trigger_post *w, struct loom_error *err)
{
	const struct loom_host *host = b->host;
	uint64_t shift = w->flags & LOOM_NET_LOCAL_FROM_FIRE ? w->window : 0;
	uint64_t reach = w->bytes + shift;
	if (reach < w->bytes || !b->reaches(b->of, host->rank, w->local, reach))
		return LOOM_FAIL(host, err, LOOM_EINVAL,
				 "%s: %llu bytes at segment %u offset %llu are no memory of this rank that "
				 "the network reaches",
				 b->name, (unsigned long long)reach, LOOM_REF_SEGMENT(w->local),
				 (unsigned long long)LOOM_REF_OFFSET(w->local));
	if (w->op == LOOM_NET_SEND || w->op == LOOM_NET_RECV)
		return 0;
	reach = w->bytes + (w->flags & LOOM_NET_REMOTE_FROM_FIRE ? w->window : 0);
	if (reach < w->bytes || !b->reaches(b->of, w->target, w->remote, reach))
		return LOOM_FAIL(host, err, LOOM_EINVAL,
				 "%s: %llu bytes at segment %u offset %llu are no memory of rank %u",
				 b->name, (unsigned long long)reach, LOOM_REF_SEGMENT(w->remote),
				 (unsigned long long)LOOM_REF_OFFSET(w->remote), w->target);
	return 0;
}

int nic_check_bounds(const struct nic_bounds *b, const struct loom_trigger_post *w, struct loom_error *err)
{
	const struct loom_host *host = b->host;
	if (w->size < sizeof(*w))
		return LOOM_FAIL(host, err, LOOM_EABI, "%s: a post of %zu bytes: set .size", b->name, w->size);
	if (w->op < LOOM_NET_PUT || w->op > LOOM_NET_COUNT)
		return LOOM_FAIL(host, err, LOOM_EINVAL, "%s: operation %u is not known", b->name, w->op);
	if (w->tag == 0 || w->tag >> 48 || w->chain >> 48)
		return LOOM_FAIL(host, err, LOOM_EINVAL, "%s: tag %#llx, chain %#llx: tags have 47 bits",
				 b->name, (unsigned long long)w->tag, (unsigned long long)w->chain);
	if (w->slot >= b->slots)
		return LOOM_FAIL(host, err, LOOM_EINVAL, "%s: slot %u, but slots = %u", b->name, w->slot,
				 b->slots);
	if (w->notify >= b->arrivals)
		return LOOM_FAIL(host, err, LOOM_EINVAL, "%s: notify %u, but arrivals = %u",
				 b->name, w->notify, b->arrivals);
	if (w->notify && w->op != LOOM_NET_PUT && w->op != LOOM_NET_ADD)
		return LOOM_FAIL(host, err, LOOM_ENOTSUP, "%s: only put and add notify", b->name);
	if (w->op == LOOM_NET_COUNT)
		return 0;
	if (w->target >= host->ranks)
		return LOOM_FAIL(host, err, LOOM_EINVAL, "%s: target %u of %u ranks", b->name, w->target,
				 host->ranks);
	if (w->op == LOOM_NET_ADD && !b->adds(b->of, w))
		return LOOM_FAIL(host, err, LOOM_ENOTSUP,
				 "%s: %s cannot add %llu bytes of %s atomically", b->name,
				 b->adder, (unsigned long long)w->bytes,
				 w->type == LOOM_NET_F32 ? "float" : "64-bit integers");
	return check_places(b, w, err);
}
