/* SPDX-License-Identifier: Apache-2.0 */
/* Checks whether a post can run at the time when it is posted, so that a fire finds no error. */
#include <stdio.h>
#include <string.h>

#include "nic.h"

static uint32_t places(uint32_t option, uint32_t least, uint64_t needed, uint32_t most)
{
	return option ? option : needed > most ? most : needed > least ? (uint32_t)needed : least;
}

struct nic_table nic_table(const struct nic_table *options, const struct loom_layout *layout,
			   struct loom_net_need *needed)
{
	*needed = layout && LOOM_HAS(layout, net) ? *layout->net : (struct loom_net_need){0};
	struct nic_table t = {.posts = places(options->posts, 4096, needed->posts, 1u << 24),
			      .tags = places(options->tags, 8192, needed->tags + needed->tags / 7 + 1ull, 1u << 24),
			      .slots = places(options->slots, 1024, needed->slots, 1u << 20),
			      .arrivals = places(options->arrivals, 1024, needed->arrivals, 1u << 20)};
	uint32_t tags = 16;
	while (tags < t.tags)
		tags *= 2;
	t.tags = tags;
	return t;
}

const char *nic_raise(const char *option, uint64_t least)
{
	static _Thread_local char text[128];
	snprintf(text, sizeof(text), "raise %s: set trigger.%s = %llu or more", option, option, (unsigned long long)least);
	return text;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

uint64_t nic_more_tags(const struct nic_table *table, const struct loom_net_need *needed)
{
	return larger(2ull * table->tags, needed->tags + needed->tags / 7 + 1ull);
}

uint64_t nic_more_posts(const struct nic_table *table, const struct loom_net_need *needed)
{
	return larger(2ull * table->posts, needed->posts);
}

int nic_too_late(const struct loom_host *host, const char *plugin, const struct loom_trigger_post *what,
		 struct loom_error *err)
{
	return LOOM_FAIL(host, err, LOOM_EBUSY,
			 "%s: tag %#llx was fired before this operation was posted, but the operation takes its place "
			 "or rank from the fire: post such operations before workers start",
			 plugin, (unsigned long long)what->tag);
}

static int check_places(const struct nic_bounds *b, const struct loom_trigger_post *w, struct loom_error *err)
{
	const struct loom_host *host = b->host;
	uint64_t shift = w->flags & LOOM_NET_LOCAL_FROM_FIRE ? w->window : 0;
	uint64_t reach = w->bytes + shift;
	if (reach < w->bytes || !b->reaches(b->of, host->rank, w->local, reach))
		return LOOM_FAIL(host, err, LOOM_EINVAL,
				 "%s: %llu bytes at segment %u offset %llu are not in memory of this rank that the "
				 "network can access",
				 b->name, (unsigned long long)reach, LOOM_REF_SEGMENT(w->local),
				 (unsigned long long)LOOM_REF_OFFSET(w->local));
	if (w->op == LOOM_NET_SEND || w->op == LOOM_NET_RECV)
		return 0;
	reach = w->bytes + (w->flags & LOOM_NET_REMOTE_FROM_FIRE ? w->window : 0);
	if (reach < w->bytes || !b->reaches(b->of, w->target, w->remote, reach))
		return LOOM_FAIL(host, err, LOOM_EINVAL,
				 "%s: %llu bytes at segment %u offset %llu are not in memory of rank %u: start all "
				 "ranks with the same conf",
				 b->name, (unsigned long long)reach, LOOM_REF_SEGMENT(w->remote),
				 (unsigned long long)LOOM_REF_OFFSET(w->remote), w->target);
	return 0;
}

int nic_check_bounds(const struct nic_bounds *b, const struct loom_trigger_post *w, struct loom_error *err)
{
	const struct loom_host *host = b->host;
	if (w->size < offsetof(struct loom_trigger_post, paired))
		return LOOM_FAIL(host, err, LOOM_EABI, "%s: a post of %zu bytes: set its member "
			"`size`", b->name, w->size);
	if (w->op < LOOM_NET_PUT || w->op > LOOM_NET_COUNT)
		return LOOM_FAIL(host, err, LOOM_EINVAL, "%s: unknown operation %u", b->name, w->op);
	if (w->tag == 0 || w->tag >> 48 || w->chain >> 48)
		return LOOM_FAIL(host, err, LOOM_EINVAL, "%s: tag %#llx, chain %#llx: tags have 47 bits",
				 b->name, (unsigned long long)w->tag, (unsigned long long)w->chain);
	if (w->slot >= b->table.slots)
		return LOOM_FAIL(host, err, LOOM_EINVAL, "%s: slot %u, but slots = %u; %s", b->name, w->slot,
				 b->table.slots, nic_raise("slots", larger(w->slot + 1ull, b->needs.slots)));
	if (w->notify >= b->table.arrivals)
		return LOOM_FAIL(host, err, LOOM_EINVAL, "%s: notify %u, but arrivals = %u; %s", b->name, w->notify,
				 b->table.arrivals,
				 nic_raise("arrivals", larger(w->notify + 1ull, b->needs.arrivals)));
	if (w->notify && (w->op == LOOM_NET_GET || w->op == LOOM_NET_SEND || w->op == LOOM_NET_COUNT))
		return LOOM_FAIL(host, err, LOOM_ENOTSUP, "%s: only put, add and receive can notify", b->name);
	if (w->op == LOOM_NET_COUNT)
		return 0;
	if (w->target >= host->ranks)
		return LOOM_FAIL(host, err, LOOM_EINVAL, "%s: target %u, but the job has %u "
			"ranks", b->name, w->target, host->ranks);
	if (w->op == LOOM_NET_ADD && !b->adds(b->of, w))
		return LOOM_FAIL(host, err, LOOM_ENOTSUP,
				 "%s: %s cannot add %llu bytes of %s atomically", b->name,
				 b->adder, (unsigned long long)w->bytes,
				 w->type == LOOM_NET_F32 ? "float" : "64-bit integers");
	return check_places(b, w, err);
}
