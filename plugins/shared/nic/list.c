/* SPDX-License-Identifier: Apache-2.0 */
#include "list.h"
#include "nic.dev.h"

#include <string.h>

int list_open(const struct loom_host *host, struct list *l, uint32_t counters, uint32_t posts)
{
	*l = (struct list){.mask = counters - 1, .posts = posts, .due_mask = 1023};
	l->counter = host->alloc(host, (size_t)counters * sizeof(*l->counter));
	l->post = host->alloc(host, (size_t)posts * sizeof(*l->post));
	l->due = host->alloc(host, (l->due_mask + 1) * sizeof(*l->due));
	if (!l->counter || !l->post || !l->due) {
		list_close(host, l);
		return LOOM_ENOMEM;
	}
	list_clear(l);
	return 0;
}

void list_close(const struct loom_host *host, struct list *l)
{
	host->free(host, l->counter);
	host->free(host, l->post);
	host->free(host, l->due);
	*l = (struct list){0};
}

void list_clear(struct list *l)
{
	memset(l->counter, 0, ((size_t)l->mask + 1) * sizeof(*l->counter));
	l->counters = 0;
	l->unsettled = LIST_NONE;
	l->due_head = l->due_tail = 0;
	for (uint32_t i = 0; i < l->posts; i++) {
		struct post *p = &l->post[i];
		*p = (struct post){.generation = p->generation + 1, .next = i + 1 < l->posts ? i + 1 : LIST_NONE};
	}
	l->free = 0;
	l->room = l->posts;
}

/* ---- counters ------------------------------------------------------------------------------------ */

static uint32_t slot_of(const struct list *l, uint64_t tag)
{
	return (uint32_t)nic_hash(tag) & l->mask;
}

uint32_t list_counter(struct list *l, uint64_t tag)
{
	uint32_t i = slot_of(l, tag);
	for (; l->counter[i].tag; i = (i + 1) & l->mask)
		if (l->counter[i].tag == tag)
			return i;
	if (l->counters >= l->mask - l->mask / 8)
		return LIST_NONE;
	l->counters++;
	l->counter[i] = (struct counter){
		.tag = tag, .first = LIST_NONE, .last = LIST_NONE, .next_unsettled = LIST_NONE};
	return i;
}

/* ---- posts on a counter -------------------------------------------------------------------------- */

/* In the order of thresholds, behind those that are equal. */
static void insert(struct list *l, struct counter *c, uint32_t i)
{
	struct post *p = &l->post[i];
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

static void remove_first(struct list *l, struct counter *c)
{
	c->first = l->post[c->first].next;
	if (c->first == LIST_NONE)
		c->last = LIST_NONE;
}

static void give_back(struct list *l, uint32_t i)
{
	struct post *p = &l->post[i];
	*p = (struct post){.generation = p->generation + 1, .next = l->free};
	l->free = i;
	l->room++;
}

/* Queues whatever the counter has reached, as far as there is room. */
static void settle(struct list *l, uint32_t counter)
{
	struct counter *c = &l->counter[counter];
	while (c->first != LIST_NONE && l->post[c->first].threshold <= c->value) {
		uint32_t i = c->first;
		struct post *p = &l->post[i];
		if (l->due_head - l->due_tail > l->due_mask) {
			if (!c->unsettled) {
				c->unsettled = 1;
				c->next_unsettled = l->unsettled;
				l->unsettled = counter;
			}
			return;
		}
		l->due[l->due_head++ & l->due_mask] = (struct due){.post = i, .argument = p->threshold <= c->argued ? c->argument : 0};
		p->flying++;
		remove_first(l, c);
		/* A threshold past the end of the counter is never reached. */
		if (p->what.rearm && p->threshold + p->what.rearm > p->threshold) {
			p->threshold += p->what.rearm;
			insert(l, c, i);
		} else {
			p->state = POST_SPENT;
		}
	}
}

int list_post(struct list *l, const struct loom_trigger_post *what, uint64_t *id)
{
	uint32_t counter = l->free == LIST_NONE ? LIST_NONE : list_counter(l, what->tag);
	if (counter == LIST_NONE)
		return LOOM_EFULL;
	if (what->flags && what->threshold <= l->counter[counter].value)
		return LOOM_EBUSY;
	uint32_t i = l->free;
	struct post *p = &l->post[i];
	l->free = p->next;
	l->room--;
	*p = (struct post){.what = *what,
			   .threshold = what->threshold,
			   .state = POST_WAITS,
			   .generation = p->generation,
			   .counter = counter};
	insert(l, &l->counter[counter], i);
	*id = (uint64_t)p->generation << 32 | i;
	settle(l, counter); /* fired before it was posted (3.2) */
	return 0;
}

int list_cancel(struct list *l, uint64_t id)
{
	uint32_t i = (uint32_t)id;
	struct post *p = i < l->posts ? &l->post[i] : NULL;
	if (!p || p->generation != (uint32_t)(id >> 32) || p->state == POST_FREE)
		return LOOM_ENOENT;
	if (p->state == POST_SPENT)
		return LOOM_EBUSY;
	struct counter *c = &l->counter[p->counter];
	uint32_t *at = &c->first, before = LIST_NONE;
	while (*at != i) {
		before = *at;
		at = &l->post[*at].next;
	}
	*at = p->next;
	if (c->last == i)
		c->last = before;
	p->state = POST_SPENT;
	if (!p->flying)
		give_back(l, i);
	return 0;
}

void list_landed(struct list *l, uint32_t i)
{
	struct post *p = &l->post[i];
	p->flying--;
	if (!p->flying && p->state == POST_SPENT)
		give_back(l, i);
}

/* ---- counting ------------------------------------------------------------------------------------ */

void list_count_at(struct list *l, uint32_t counter, uint64_t n, uint64_t argument)
{
	struct counter *c = &l->counter[counter];
	c->value = n > UINT64_MAX - c->value ? UINT64_MAX : c->value + n;
	if (!c->unsettled) { /* else what is due by an earlier fire has yet to get that one's */
		c->argument = argument;
		c->argued = c->value;
	}
	if (c->first != LIST_NONE && l->post[c->first].threshold <= c->value)
		settle(l, counter);
}

int list_count(struct list *l, uint64_t tag, uint64_t n, uint64_t argument)
{
	uint32_t counter = list_counter(l, tag);
	if (counter == LIST_NONE)
		return LOOM_EFULL;
	list_count_at(l, counter, n, argument);
	return 0;
}

int list_next(struct list *l, struct due *due)
{
	if (l->due_head == l->due_tail)
		return 0;
	*due = l->due[l->due_tail++ & l->due_mask];
	while (l->unsettled != LIST_NONE && l->due_head - l->due_tail <= l->due_mask) {
		struct counter *c = &l->counter[l->unsettled];
		uint32_t counter = l->unsettled;
		l->unsettled = c->next_unsettled;
		c->unsettled = 0;
		settle(l, counter);
	}
	return 1;
}
