/* SPDX-License-Identifier: Apache-2.0 */
/* G_KMN: k-means (model: unidirectional, access: streaming). Device 0 assigns blocks of points to centroids and
 * streams the memberships. Meanwhile a consumer assigns a block of its own (C1). Then it sums the points of each
 * centroid, block by block (C2). One consumer computes the new centroids, which are sent to all workers once per
 * iteration. All numbers are integers, so the order of sums does not matter. Device code.
 *
 * Channel d - 1 carries memberships to device d. The next channel carries sums to the first consumer. Then one
 * channel per device carries centroids. The blocks are those of device 0, two for each consumer, and then one block
 * of each consumer. */
#ifndef KMN_DEV_H
#define KMN_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "exchange.dev.h"
#endif

enum { KMN_POINTS = 0, KMN_MEMBERS, KMN_SUMS, KMN_CENTROIDS };
enum { KMN_BLOCK = 0, KMN_BLOCKS, KMN_CONSUMERS };
enum { KMN_K = 8, KMN_DIM = 4 };

struct kmn_point {
	int32_t x[KMN_DIM];
};
struct kmn_sums {
	int64_t x[KMN_K][KMN_DIM];
	int64_t count[KMN_K];
};

LOOM_FN uint32_t kmn_nearest(const struct kmn_point *centroid, const struct kmn_point *p)
{
	uint32_t best = 0;
	int64_t least = INT64_MAX;
	for (uint32_t k = 0; k < KMN_K; k++) {
		int64_t distance = 0;
		for (uint32_t a = 0; a < KMN_DIM; a++) {
			int64_t d = p->x[a] - centroid[k].x[a];
			distance += d * d;
		}
		if (distance < least) {
			least = distance;
			best = k;
		}
	}
	return best;
}

LOOM_FN void kmn_centroids(struct kmn_point *centroid, const struct kmn_sums *sums)
{
	for (uint32_t k = 0; k < KMN_K; k++)
		for (uint32_t a = 0; sums->count[k] && a < KMN_DIM; a++)
			centroid[k].x[a] = (int32_t)(sums->x[k][a] / sums->count[k]);
}

LOOM_FN void kmn_add(struct kmn_sums *to, const struct kmn_sums *from)
{
	for (uint32_t k = 0; k < KMN_K; k++) {
		to->count[k] += from->count[k];
		for (uint32_t a = 0; a < KMN_DIM; a++)
			to->x[k][a] += from->x[k][a];
	}
}

/* Called by all lanes. Computes the memberships of a block. */
LOOM_FN void kmn_assign(const struct loom_ctx *c, uint64_t b, const void *centroids, uint8_t *members)
{
	uint64_t block = ex_head(c)->param[KMN_BLOCK];
	const struct kmn_point *points = (const struct kmn_point *)ex_at(c, KMN_POINTS) + b * block;
	EX_EACH(c, i, 0, block)
		members[i] = (uint8_t)kmn_nearest((const struct kmn_point *)centroids, &points[i]);
}

/* Called by lane 0. Adds the points of a block to the sums. */
LOOM_FN void kmn_count(const struct loom_ctx *c, uint64_t b, const uint8_t *members, struct kmn_sums *sums)
{
	uint64_t block = ex_head(c)->param[KMN_BLOCK];
	const struct kmn_point *points = (const struct kmn_point *)ex_at(c, KMN_POINTS) + b * block;
	for (uint64_t i = 0; c->lane == 0 && i < block; i++) {
		sums->count[members[i]]++;
		for (uint32_t a = 0; a < KMN_DIM; a++)
			sums->x[members[i]][a] += points[i].x[a];
	}
}

LOOM_FN int kmn_spread(struct loom_ctx *c, uint32_t t)
{
	int rc = 0;
	for (uint32_t d = 0; d < c->devices && !rc; d++)
		rc = ex_send(c, c->devices + d, t, ex_at(c, KMN_CENTROIDS), KMN_K * sizeof(struct kmn_point));
	return rc;
}

/* Returns the channel of the consumer that gets block b, which is b % consumers. *tag gets the block's tag in
 * iteration t. */
LOOM_FN uint32_t kmn_route(const struct loom_ctx *c, uint32_t t, uint32_t b, uint32_t *tag)
{
	const uint64_t *param = ex_head(c)->param;
	uint32_t consumer = b % (uint32_t)param[KMN_CONSUMERS], d = 0;
	while (consumer >= (uint32_t)param[8 + d])
		consumer -= (uint32_t)param[8 + d++];
	*tag = t * (uint32_t)param[KMN_BLOCKS] + b; /* each block has a slot of its own */
	return d;
}

LOOM_FN void kmn_produce(struct loom_ctx *c, uint32_t producers)
{
	const struct ex_head *h = ex_head(c);
	uint32_t block = (uint32_t)h->param[KMN_BLOCK], blocks = (uint32_t)h->param[KMN_BLOCKS];
	uint8_t *room = (uint8_t *)ex_at(c, KMN_MEMBERS) + (uint64_t)c->worker * block;
	for (uint32_t t = 0; t < h->iterations; t++) {
		const void *centroids;
		if (ex_recv(c, c->devices, t, &centroids))
			return;
		for (uint32_t b = c->worker; b < blocks; b += producers) {
			uint32_t tag, channel = kmn_route(c, t, b, &tag);
			kmn_assign(c, b, centroids, room);
			ex_work(c, h->work_p);
			if (ex_send(c, channel, tag, room, block))
				return;
			loom_barrier_lanes(c);
		}
		ex_release(c, c->devices, t);
	}
}

/* Called by the first consumer. Gathers all sums, and publishes the next centroids. */
LOOM_FN int kmn_update(struct loom_ctx *c, uint32_t t)
{
	const struct ex_head *h = ex_head(c);
	uint32_t consumers = (uint32_t)h->param[KMN_CONSUMERS];
	struct kmn_point *centroids = (struct kmn_point *)ex_at(c, KMN_CENTROIDS);
	struct kmn_sums *total = (struct kmn_sums *)ex_at(c, KMN_SUMS) + consumers;
	const struct kmn_sums none = {0};
	if (c->lane == 0)
		*total = none;
	for (uint32_t w = 0; w < consumers; w++) {
		const void *sums;
		int rc = ex_recv(c, c->devices - 1, t * consumers + w, &sums);
		if (rc)
			return rc;
		if (c->lane == 0)
			kmn_add(total, (const struct kmn_sums *)sums);
		ex_release(c, c->devices - 1, t * consumers + w);
	}
	if (c->lane == 0)
		kmn_centroids(centroids, total);
	if (t + 1 == h->iterations)
		return 0;
	return kmn_spread(c, t + 1);
}

LOOM_FN void kmn_consume(struct loom_ctx *c, uint32_t me)
{
	const struct ex_head *h = ex_head(c);
	uint32_t blocks = (uint32_t)h->param[KMN_BLOCKS], centroids_at = c->devices + c->device;
	uint8_t *room = (uint8_t *)ex_at(c, KMN_MEMBERS) + c->worker * h->param[KMN_BLOCK];
	uint32_t consumers = (uint32_t)h->param[KMN_CONSUMERS];
	struct kmn_sums *sums = (struct kmn_sums *)ex_at(c, KMN_SUMS) + me;
	const struct kmn_sums none = {0};
	if (me == 0 && kmn_spread(c, 0))
		return;
	for (uint32_t t = 0; t < h->iterations; t++) {
		const void *data;
		if (ex_recv(c, centroids_at, t, &data))
			return;
		kmn_assign(c, blocks + me, data, room);
		ex_release(c, centroids_at, t); /* also a barrier of the lanes, which completes `room` */
		if (c->lane == 0)
			*sums = none;
		kmn_count(c, blocks + me, room, sums);
		for (uint32_t b = me; b < blocks; b += consumers) {
			uint32_t tag, channel = kmn_route(c, t, b, &tag);
			ex_work(c, h->work_c);
			if (ex_recv(c, channel, tag, &data))
				return;
			kmn_count(c, b, (const uint8_t *)data, sums);
			ex_release(c, channel, tag);
		}
		if (ex_send(c, c->devices - 1, t * consumers + me, sums, sizeof(*sums)))
			return;
		if (me == 0 && kmn_update(c, t))
			return;
	}
}

LOOM_FN void workload_kmn_kernel(struct loom_ctx *c)
{
	uint32_t producers = c->workers - (uint32_t)ex_head(c)->param[KMN_CONSUMERS];
	ex_begin(c);
	if (c->device == 0)
		kmn_produce(c, producers);
	else
		kmn_consume(c, c->worker - producers);
	ex_end(c);
}

#endif
