/* SPDX-License-Identifier: Apache-2.0 */
/* Host half of trigger_counter. The counters are a page in host memory, which the NIC polls. */
#include "../trigger_common/nic/nic.h"
#include "trigger_counter.dev.h"

/* The counters that have posts. The NIC polls only these counters. */
struct counter_watch {
	uint32_t n; /* number of counters that have posts */
	uint32_t entries; /* number of counters of the page */
	uint32_t *tag;  /* [n]: their tags */
	uint64_t *seen; /* [entries], by tag: the value that the NIC loaded last */
	uint8_t *watched; /* [entries], by tag: 1 if the tag is in `tag` */
};

static uint32_t entries_of(const struct nic *nic)
{
	return nic->list.mask + 1;
}

static uint64_t counter_extra(const struct nic *nic, uint64_t *entries)
{
	*entries = entries_of(nic);
	return *entries * sizeof(struct trigger_counter);
}

static int counter_start(struct nic *nic, struct loom_error *err)
{
	if (nic->own)
		return 0;
	const struct loom_host *host = nic->host;
	uint64_t n = entries_of(nic);
	struct counter_watch *w = host->alloc(host, sizeof(*w) + n * (sizeof(*w->seen) + sizeof(*w->tag) + 1));
	if (!w)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "trigger_counter: out of memory");
	w->entries = (uint32_t)n;
	w->seen = (uint64_t *)(w + 1);
	w->tag = (uint32_t *)(w->seen + n);
	w->watched = (uint8_t *)(w->tag + n);
	nic->own = w;
	return 0;
}

static void counter_reset(struct nic *nic)
{
	struct counter_watch *w = nic->own;
	for (uint32_t i = 0; i < w->n; i++) {
		w->seen[w->tag[i]] = 0;
		w->watched[w->tag[i]] = 0;
	}
	w->n = 0;
}

static int counter_post(struct nic *nic, const struct loom_trigger_post *what, uint64_t *id, int *taken,
			struct loom_error *err)
{
	struct counter_watch *w = nic->own;
	(void)id, (void)taken;
	if (what->tag > LOOM_TAG_MAX)
		return 0; /* the NIC itself counts arrivals */
	if (what->tag >= w->entries)
		return LOOM_FAIL(
		    nic->host, err, LOOM_EINVAL, "trigger_counter: tag %llu, but the page has %u counters; %s",
		    (unsigned long long)what->tag, w->entries, nic_raise("tags", what->tag + 1));
	if (!w->watched[what->tag]) {
		w->watched[what->tag] = 1;
		w->tag[w->n++] = (uint32_t)what->tag;
	}
	return 0;
}

static uint64_t read_counter(struct nic *nic, uint32_t tag)
{
	const struct trigger_counter *page =
		(const struct trigger_counter *)(nic->base + nic->shape.extra_at);
	/* Acquire: pairs with the release add in trigger_counter_fire(). */
	return __atomic_load_n(&page[tag].value, __ATOMIC_ACQUIRE);
}

static uint32_t counter_poll(struct nic *nic)
{
	struct counter_watch *w = nic->own;
	uint32_t work = 0;
	for (uint32_t i = 0; i < w->n; i++) {
		uint32_t tag = w->tag[i];
		uint64_t value = read_counter(nic, tag);
		if (value == w->seen[tag])
			continue;
		nic->fires += value - w->seen[tag];
		nic_count(nic, tag, value - w->seen[tag], 0);
		w->seen[tag] = value;
		work++;
	}
	return work;
}

static int counter_drained(struct nic *nic)
{
	const struct counter_watch *w = nic->own;
	for (uint32_t i = 0; i < w->n; i++)
		if (read_counter(nic, w->tag[i]) != w->seen[w->tag[i]])
			return 0;
	return 1;
}

static const struct nic_ops counter = {.name = "trigger_counter",
				       .no_argument = "a counter cannot carry an argument",
				       .adds = 1,
				       .extra = counter_extra,
				       .start = counter_start,
				       .reset = counter_reset,
				       .post = counter_post,
				       .poll = counter_poll,
				       .drained = counter_drained};

NIC_PLUGIN(trigger_counter, "A page of counters: the address selects a counter, the value is added to it", counter)
