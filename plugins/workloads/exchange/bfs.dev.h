/* SPDX-License-Identifier: Apache-2.0 */
/* G_BFS: breadth-first search by levels, on a graph whose vertices are distributed over the workers (model:
 * probabilistic, access: random). At each level a worker sends a bucket of vertices to another worker only if it has
 * found vertices that the other worker owns. First each worker sends worker 0 a manifest: the workers to which it
 * will send. Worker 0 distributes a table of all manifests, so that workers wait only for messages that exist. Device
 * code. */
#ifndef BFS_DEV_H
#define BFS_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "exchange.dev.h"
#endif

enum { BFS_ROWS = 0, BFS_COLUMNS, BFS_LEVEL, BFS_FRONTIER, BFS_NEXT, BFS_BUCKETS, BFS_MANIFEST, BFS_FIRST,
       BFS_USED, BFS_PLACES };
/* Parameters: number of vertices; upper limit on the vertices of a bucket; 64-bit words of a set of workers; first
 * channel of the manifests. */
enum { BFS_N = 0, BFS_ROOM, BFS_WORDS, BFS_GATHER };

/* Returns the bucket of this worker for worker `to`: the number of vertices, and the vertices. A bucket is sent on
 * the channel of the receiver's device, which has a slot for each sender and receiver. Sender and receiver count
 * their buckets (BFS_USED), because at most levels they exchange none. */
LOOM_FN uint32_t *bfs_bucket(const struct loom_ctx *c, uint32_t to)
{
	const struct ex_head *h = ex_head(c);
	return (uint32_t *)ex_at(c, BFS_BUCKETS) +
	       ((uint64_t)c->worker * c->workers + to) * (h->param[BFS_ROOM] + 2);
}

LOOM_FN uint32_t bfs_tag(const struct loom_ctx *c, uint32_t from, uint32_t to, uint32_t used)
{
	const struct ex_place *p = (const struct ex_place *)ex_at(c, BFS_PLACES) + to;
	return used * p->count * c->workers + p->place * c->workers + from;
}

LOOM_FN uint32_t bfs_owner(const struct loom_ctx *c, uint32_t vertex)
{
	const uint64_t *first = (const uint64_t *)ex_at(c, BFS_FIRST);
	uint32_t low = 0, high = c->workers;
	while (high - low > 1) {
		uint32_t middle = (low + high) / 2;
		if (first[middle] <= vertex)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* Called by lane 0. Visits one of the worker's vertices. */
LOOM_FN void bfs_visit(uint32_t *level, uint32_t *next, uint32_t *count, uint32_t vertex, uint32_t depth)
{
	if (level[vertex] != UINT32_MAX)
		return;
	level[vertex] = depth;
	next[(*count)++] = vertex;
}

/* Called by lane 0. Follows the edges of the frontier. Visits the worker's own vertices, and puts other vertices into
 * the buckets for their owners. */
LOOM_FN void bfs_expand(struct loom_ctx *c, const uint32_t *frontier, uint32_t n, uint32_t *next,
			uint32_t *count, uint32_t depth, uint64_t *manifest)
{
	const uint64_t *row = (const uint64_t *)ex_at(c, BFS_ROWS);
	const uint32_t *column = (const uint32_t *)ex_at(c, BFS_COLUMNS);
	const uint64_t *first = (const uint64_t *)ex_at(c, BFS_FIRST);
	uint32_t *level = (uint32_t *)ex_at(c, BFS_LEVEL);
	uint64_t room = ex_head(c)->param[BFS_ROOM];
	for (uint32_t i = 0; i < n; i++)
		for (uint64_t e = row[frontier[i]]; e < row[frontier[i] + 1]; e++) {
			uint32_t v = column[e];
			if (v >= first[c->worker] && v < first[c->worker + 1]) {
				bfs_visit(level, next, count, v, depth);
				continue;
			}
			uint32_t to = bfs_owner(c, v);
			uint32_t *bucket = bfs_bucket(c, to);
			/* A bucket has room for all edges between the two workers. */
			if (bucket[0] < room)
				bucket[1 + bucket[0]++] = v;
			manifest[to / 64] |= 1ull << to % 64;
		}
}

/* Sends this worker's manifest to worker 0: a set of receivers, and the number of visited vertices. Receives the
 * result: a set of senders for each worker, and the total number of messages and vertices. If this total is 0, the
 * search has ended. */
LOOM_FN int bfs_gather_manifests(struct loom_ctx *c, uint32_t round, const uint64_t *mine, const uint64_t **all)
{
	const struct ex_head *h = ex_head(c);
	uint64_t words = h->param[BFS_WORDS];
	uint32_t gather = (uint32_t)h->param[BFS_GATHER];
	uint64_t *table = (uint64_t *)ex_at(c, BFS_MANIFEST) + c->workers * (words + 1);
	const void *data;
	int rc = ex_send(c, gather, round * c->workers + c->worker, mine, 8 * (words + 1));
	if (c->worker == 0) {
		EX_EACH(c, i, 0, c->workers * words + 1)
			table[i] = 0;
		loom_barrier_lanes(c);
		for (uint32_t w = 0; w < c->workers && !rc; w++) {
			rc = ex_recv(c, gather, round * c->workers + w, &data);
			if (rc)
				break;
			const uint64_t *m = (const uint64_t *)data;
			for (uint32_t to = 0; c->lane == 0 && to < c->workers; to++)
				if (m[to / 64] >> to % 64 & 1) {
					table[to * words + w / 64] |= 1ull << w % 64;
					table[c->workers * words]++;
				}
			if (c->lane == 0)
				table[c->workers * words] += m[words];
			ex_release(c, gather, round * c->workers + w);
		}
		/* This device comes last, because a worker that the item resumes may take this core. */
		for (uint32_t d = c->devices; d-- > 0 && !rc;)
			rc = ex_send(c, gather + 1 + d, round, table, 8 * (c->workers * words + 1));
	}
	if (!rc)
		rc = ex_recv(c, gather + 1 + c->device, round, &data);
	*all = (const uint64_t *)data;
	return rc;
}

/* Sends this worker's buckets, and receives the buckets that `senders` announces. */
LOOM_FN int bfs_exchange(struct loom_ctx *c, const uint64_t *senders, uint32_t *next, uint32_t *count,
		     uint32_t depth, uint64_t *manifest)
{
	const struct ex_place *place = (const struct ex_place *)ex_at(c, BFS_PLACES);
	uint32_t *sent = (uint32_t *)ex_at(c, BFS_USED) + 2ull * c->worker * c->workers;
	uint32_t *got = sent + c->workers, *level = (uint32_t *)ex_at(c, BFS_LEVEL);
	for (uint32_t to = 0; to < c->workers; to++) {
		uint32_t *bucket = bfs_bucket(c, to);
		if (!(manifest[to / 64] >> to % 64 & 1))
			continue;
		int rc = ex_send(c, place[to].device, bfs_tag(c, c->worker, to, sent[to]), bucket,
				 4 * (1 + (uint64_t)bucket[0]));
		if (rc)
			return rc;
		if (c->lane == 0) {
			sent[to]++;
			bucket[0] = 0;
		}
	}
	for (uint32_t from = 0; from < c->workers; from++) {
		const void *data;
		if (!(senders[from / 64] >> from % 64 & 1))
			continue;
		uint32_t tag = bfs_tag(c, from, c->worker, got[from]);
		int rc = ex_recv(c, c->device, tag, &data);
		if (rc)
			return rc;
		const uint32_t *bucket = (const uint32_t *)data;
		for (uint32_t i = 0; c->lane == 0 && i < bucket[0]; i++)
			bfs_visit(level, next, count, bucket[1 + i], depth);
		if (c->lane == 0)
			got[from]++;
		ex_release(c, c->device, tag);
	}
	return 0;
}

LOOM_FN void workload_bfs_kernel(struct loom_ctx *c)
{
	const struct ex_head *h = ex_head(c);
	const uint64_t *first = (const uint64_t *)ex_at(c, BFS_FIRST);
	uint64_t words = h->param[BFS_WORDS];
	uint32_t *now = (uint32_t *)ex_at(c, BFS_FRONTIER) + first[c->worker];
	uint32_t *next = (uint32_t *)ex_at(c, BFS_NEXT) + first[c->worker];
	uint64_t *manifest = (uint64_t *)ex_at(c, BFS_MANIFEST) + c->worker * (words + 1);
	uint32_t gather = (uint32_t)h->param[BFS_GATHER], n = 0, depth = 0;
	ex_begin(c);
	if (first[c->worker] == 0 && first[c->worker + 1] > 0) { /* vertex 0 is the source */
		n = 1;
		if (c->lane == 0) {
			now[0] = 0;
			((uint32_t *)ex_at(c, BFS_LEVEL))[0] = 0;
		}
		loom_barrier_lanes(c);
	}
	for (;;) {
		uint32_t count = 0;
		const uint64_t *all;
		depth++;
		if (c->lane == 0) {
			for (uint64_t i = 0; i <= words; i++)
				manifest[i] = 0;
			bfs_expand(c, now, n, next, &count, depth, manifest);
			manifest[words] = count;
		}
		ex_work(c, h->work_p);
		if (bfs_gather_manifests(c, depth - 1, manifest, &all))
			break;
		int over = all[c->workers * words] == 0;
		const uint64_t *senders = all + c->worker * words;
		int rc = over ? 0 : bfs_exchange(c, senders, next, &count, depth, manifest);
		ex_release(c, gather + 1 + c->device, depth - 1);
		if (rc || over)
			break;
		ex_work(c, h->work_c);
		n = (uint32_t)loom_from_lane0(c, count);
		uint32_t *swap = now;
		now = next;
		next = swap;
	}
	ex_end(c);
}

#endif
