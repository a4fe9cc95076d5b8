/* SPDX-License-Identifier: Apache-2.0 */
#include "trigger_list.h"
#include "nic.dev.h"

#include <string.h>

int list_open(const struct loom_host *host, struct trigger_list *l, uint32_t counters, uint32_t posts)
{
	*l = (struct trigger_list){.mask = counters - 1, .posts = posts, .ready_mask = 1023};
	l->counter = host->alloc(host, (size_t)counters * sizeof(*l->counter));
	l->post = host->alloc(host, (size_t)posts * sizeof(*l->post));
	l->ready = host->alloc(host, (l->ready_mask + 1) * sizeof(*l->ready));
	if (!l->counter || !l->post || !l->ready) {
		list_close(host, l);
		return LOOM_ENOMEM;
	}
	list_clear(l);
	return 0;
}

void list_close(const struct loom_host *host, struct trigger_list *l)
{
	host->free(host, l->counter);
	host->free(host, l->post);
	host->free(host, l->ready);
	*l = (struct trigger_list){0};
}

void list_clear(struct trigger_list *l)
{
	memset(l->counter, 0, ((size_t)l->mask + 1) * sizeof(*l->counter));
	l->counters = 0;
	l->deferred = LIST_NONE;
	l->ready_head = l->ready_tail = 0;
	for (uint32_t i = 0; i < l->posts; i++) {
		struct list_post *p = &l->post[i];
		*p = (struct list_post){.generation = p->generation + 1, .next = i + 1 < l->posts ? i + 1 : LIST_NONE};
	}
	l->free = 0;
	l->room = l->posts;
}

/* ---- counters ------------------------------------------------------------------------------------ */

static uint32_t slot_of(const struct trigger_list *l, uint64_t tag)
{
	return (uint32_t)nic_hash(tag) & l->mask;
}

uint32_t list_find(struct trigger_list *l, uint64_t tag)
{
	uint32_t i = slot_of(l, tag);
	for (; l->counter[i].tag; i = (i + 1) & l->mask)
		if (l->counter[i].tag == tag)
			return i;
	if (l->counters >= l->mask - l->mask / 8)
		return LIST_NONE;
	l->counters++;
	l->counter[i] = (struct list_counter){
		.tag = tag, .first = LIST_NONE, .last = LIST_NONE, .next_deferred = LIST_NONE};
	return i;
}

/* ---- posts on a counter -------------------------------------------------------------------------- */

/* Inserts a post into the list of its counter, in the order of thresholds and behind posts with the same threshold. */
static void insert(struct trigger_list *l, struct list_counter *c, uint32_t i)
{
	struct list_post *p = &l->post[i];
	if (c->last != LIST_NONE && l->post[c->last].threshold <= p->threshold) {
		l->post[c->last].next = i;
		p->next = LIST_NONE;
		c->last = i;
		return;
	}
	uint32_t *at = &c->first;
	while (*at != LIST_NONE && l->post[*at].threshold <= p->threshold)
		at = &l->post[*at].next;
	p->next = *at;
	*at = i;
	if (p->next == LIST_NONE)
		c->last = i;
}

static void remove_first(struct trigger_list *l, struct list_counter *c)
{
	c->first = l->post[c->first].next;
	if (c->first == LIST_NONE)
		c->last = LIST_NONE;
}

static void give_back(struct trigger_list *l, uint32_t i)
{
	struct list_post *p = &l->post[i];
	*p = (struct list_post){.generation = p->generation + 1, .next = l->free};
	l->free = i;
	l->room++;
}

/* Queues the posts of a counter whose thresholds are reached, as long as the queue has room. */
static void settle(struct trigger_list *l, uint32_t counter)
{
	struct list_counter *c = &l->counter[counter];
	while (c->first != LIST_NONE && l->post[c->first].threshold <= c->value) {
		uint32_t i = c->first;
		struct list_post *p = &l->post[i];
		if (l->ready_head - l->ready_tail > l->ready_mask) {
			if (!c->deferred) {
				c->deferred = 1;
				c->next_deferred = l->deferred;
				l->deferred = counter;
			}
			return;
		}
		l->ready[l->ready_head++ & l->ready_mask] =
		    (struct list_run){.post = i, .argument = p->threshold <= c->argued ? c->argument : 0};
		p->in_flight++;
		remove_first(l, c);
		/* A threshold beyond the counter's range is never reached. */
		if (p->what.rearm && p->threshold + p->what.rearm > p->threshold) {
			p->threshold += p->what.rearm;
			insert(l, c, i);
		} else {
			p->state = POST_SPENT;
		}
	}
}

int list_add(struct trigger_list *l, const struct loom_trigger_post *what, uint64_t *id)
{
	uint32_t counter = l->free == LIST_NONE ? LIST_NONE : list_find(l, what->tag);
	if (counter == LIST_NONE)
		return LOOM_EFULL;
	if (what->flags && what->threshold <= l->counter[counter].value)
		return LOOM_EBUSY;
	uint32_t i = l->free;
	struct list_post *p = &l->post[i];
	l->free = p->next;
	l->room--;
	*p = (struct list_post){.what = *what,
			   .threshold = what->threshold,
			   .state = POST_WAITS,
			   .generation = p->generation,
			   .counter = counter};
	insert(l, &l->counter[counter], i);
	*id = (uint64_t)p->generation << 32 | i;
	settle(l, counter); /* the tag may have been fired before (GPU-TN, 3.2) */
	return 0;
}

void list_done(struct trigger_list *l, uint32_t i)
{
	struct list_post *p = &l->post[i];
	p->in_flight--;
	if (!p->in_flight && p->state == POST_SPENT)
		give_back(l, i);
}

/* ---- counting ------------------------------------------------------------------------------------ */

void list_count_at(struct trigger_list *l, uint32_t counter, uint64_t n, uint64_t argument)
{
	struct list_counter *c = &l->counter[counter];
	c->value = n > UINT64_MAX - c->value ? UINT64_MAX : c->value + n;
	if (!c->deferred) { /* deferred runs still need the argument of an earlier fire */
		c->argument = argument;
		c->argued = c->value;
	}
	if (c->first != LIST_NONE && l->post[c->first].threshold <= c->value)
		settle(l, counter);
}

int list_count(struct trigger_list *l, uint64_t tag, uint64_t n, uint64_t argument)
{
	uint32_t counter = list_find(l, tag);
	if (counter == LIST_NONE)
		return LOOM_EFULL;
	list_count_at(l, counter, n, argument);
	return 0;
}

int list_next(struct trigger_list *l, struct list_run *due)
{
	if (l->ready_head == l->ready_tail)
		return 0;
	*due = l->ready[l->ready_tail++ & l->ready_mask];
	while (l->deferred != LIST_NONE && l->ready_head - l->ready_tail <= l->ready_mask) {
		struct list_counter *c = &l->counter[l->deferred];
		uint32_t counter = l->deferred;
		l->deferred = c->next_deferred;
		c->deferred = 0;
		settle(l, counter);
	}
	return 1;
}
