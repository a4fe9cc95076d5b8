/* SPDX-License-Identifier: Apache-2.0 */
#include "peer_map.h"
#include "lib/peer.h"
#include "../trigger_common/segment_count.h"

#include <gpuloom/device.h>

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>

/* What each rank publishes about itself. */
struct peer_identity {
	struct peer process;
	uint64_t token;  /* peer_head.token of the rank's block */
	uint64_t on_gpu; /* 1: the rank's workers belong to a GPU */
	loom_ref block; /* reference of the rank's block; 0: other ranks cannot access it */
	struct peer_part part[PEER_PARTS];
};
/* What a rank publishes about a segment. Segments with the same file, or with the same key, are in the same memory. */
struct peer_segment {
	uint64_t device, file; /* device and inode of the file, from fstat() */
	uint64_t offset, bytes; /* place of the segment in the file or memory */
	int64_t fd; /* descriptor in the rank's process; -1: there is no file */
	struct loom_memory_key key; /* key of device memory; all zero: there is none */
};

#define MOST_BYTES (1ull << 56) /* largest segment, so that sums do not wrap */

struct mapping { /* mapped memory of another rank */
	uint64_t at, bytes; /* address; size of the file, or 0 for device memory */
};

struct peer_map {
	const struct loom_host *host;
	uint32_t segments, mappings; /* largest number of segments of a rank; number of mappings */
	struct peer_identity *identity; /* [ranks] */
	struct peer_segment *segment;   /* [ranks * segments] */
	struct peer_window *window; /* result of peer_windows() */
	struct mapping *mapping; /* [mappings], with room for ranks * segments */
	int on_gpu;	       /* 1: the workers belong to a GPU, and access only its memory and that of other GPUs */
	/* Copies from struct loom_segments, which open and close device memory. */
	void *ctx;
	int (*open)(void *ctx, uint32_t device, const struct loom_memory_key *key, uint64_t *at,
		    struct loom_error *err);
	void (*close)(void *ctx, uint32_t device, uint64_t at);
};

const struct peer_window *peer_windows(const struct peer_map *m)
{
	return m->window;
}

uint32_t peer_segments(const struct peer_map *m)
{
	return m->segments;
}

void peer_map_close(struct peer_map *m)
{
	if (!m)
		return;
	const struct loom_host *host = m->host;
	for (uint32_t i = 0; i < m->mappings; i++)
		if (m->mapping[i].bytes)
			munmap((void *)(uintptr_t)m->mapping[i].at, m->mapping[i].bytes);
		else
			m->close(m->ctx, 0, m->mapping[i].at);
	host->free(host, m->identity);
	host->free(host, m->segment);
	host->free(host, m->window);
	host->free(host, m->mapping);
	host->free(host, m);
}

/* ---- what this rank publishes ---------------------------------------------------------------------- */

static void identify(const struct loom_segments *s, struct peer_head *head, struct peer_identity *identity)
{
	peer_read(&identity->process);
	if (getrandom(&identity->token, sizeof(identity->token), 0) != sizeof(identity->token))
		identity->token = identity->process.pid ^ (uint64_t)(uintptr_t)identity;
	head->token = identity->token;
	for (uint32_t i = 1; i < s->count; i++) {
		char *at = s->at[i] ? s->at[i] : LOOM_HAS(s, image) ? s->image[i] : NULL;
		uint64_t offset = (uint64_t)((char *)head - at);
		if (at && (char *)head >= at && offset < s->bytes[i])
			identity->block = LOOM_REF(i, offset);
	}
}

/* Describes segment i of this rank for other ranks. If the workers are on a GPU, only segments in device memory that
 * the host cannot access are described. Otherwise only segments in files are described. */
static int describe_segment(const struct peer_map *m, const struct loom_segments *s, uint32_t i, struct peer_segment *p,
		    struct loom_error *err)
{
	struct stat file;
	*p = (struct peer_segment){.fd = -1, .bytes = s->bytes[i]};
	/* Memory without an image belongs to the program, or was released. Other ranks do not access it. */
	if (m->on_gpu && !s->at[i] && LOOM_HAS(s, image) && s->image[i] && LOOM_HAS(s, key)) {
		p->offset = s->offset[i];
		return m->host->ranks > 1 ? s->key(s->ctx, i, &p->key, err) : 0;
	}
	if (m->on_gpu || !s->at[i] || !LOOM_HAS(s, offset) || s->fd[i] < 0 || fstat(s->fd[i], &file))
		return 0;
	p->device = file.st_dev;
	p->file = file.st_ino;
	p->offset = s->offset[i];
	p->fd = s->fd[i];
	return 0;
}

/* ---- what other ranks have published ---------------------------------------------------------------- */

/* Maps the file of a segment. */
static int map_file(struct peer_map *m, uint32_t rank, const struct peer_segment *p, uint64_t *at,
		    struct loom_error *err)
{
	char path[64];
	void *map;
	uint64_t bytes;
	int code = peer_map(&m->identity[rank].process, p->fd, p->device, p->file, path, &map, &bytes);
	if (code)
		return LOOM_FAIL(
		    m->host, err, LOOM_EUNAVAIL,
		    "trigger_peer: cannot map the memory of rank %u (%s: %s): run all ranks as one user on one "
		    "host, or choose another trigger, as in --set trigger.use=gputn",
		    rank, path, strerror(code));
	*at = (uint64_t)(uintptr_t)map;
	m->mapping[m->mappings++] = (struct mapping){.at = *at, .bytes = bytes};
	return 0;
}

static int open_key(struct peer_map *m, uint32_t rank, const struct peer_segment *p, uint64_t *at,
		    struct loom_error *err)
{
	struct loom_error why = {0};
	int rc = m->open(m->ctx, 0, &p->key, at, &why);
	if (rc)
		return LOOM_FAIL(
		    m->host, err, rc,
		    "trigger_peer: the memory of rank %u is unreachable: %s; or choose another trigger, as in --set "
		    "trigger.use=gputn",
		    rank, why.text);
	m->mapping[m->mappings++] = (struct mapping){.at = *at};
	return 0;
}

static int is_shared(const struct peer_segment *p)
{
	return p->fd >= 0 || *p->key.maker;
}

static int is_same(const struct peer_segment *a, const struct peer_segment *b)
{
	if (!is_shared(a) || (a->fd >= 0) != (b->fd >= 0))
		return 0;
	return a->fd >= 0 ? a->device == b->device && a->file == b->file : !memcmp(&a->key, &b->key, sizeof(a->key));
}

/* Returns 1 if `head` is the block of the rank that published `token`. On a GPU no check is needed, because a key opens
 * no other memory. */
static int is_block(const struct peer_map *m, const struct peer_head *head, uint64_t token)
{
	return m->on_gpu || __atomic_load_n(&head->token, __ATOMIC_RELAXED) == token;
}

/* Checks what a rank has published, before it is used as an index or an address. */
static int check_card(const struct peer_map *m, uint32_t rank, struct loom_error *err)
{
	const struct peer_identity *identity = &m->identity[rank];
	const struct peer_segment *peer_segment = &m->segment[(uint64_t)rank * m->segments];
	uint32_t block = LOOM_REF_SEGMENT(identity->block);
	uint64_t head = LOOM_REF_OFFSET(identity->block), bytes = block < m->segments ? peer_segment[block].bytes : 0;
	int good = identity->process.pid - 1 < INT_MAX;
	for (uint32_t i = 1; good && i < m->segments; i++)
		good = peer_segment[i].fd >= -1 && peer_segment[i].fd <= INT_MAX &&
		       peer_segment[i].bytes < MOST_BYTES && peer_segment[i].offset < MOST_BYTES &&
		       memchr(peer_segment[i].key.maker, 0, sizeof(peer_segment[i].key.maker));
	if (good && identity->block)
		good = block < m->segments && head % sizeof(uint64_t) == 0 && bytes >= sizeof(struct peer_head) &&
		       head <= bytes - sizeof(struct peer_head);
	for (uint32_t i = 0; good && identity->block && i < PEER_PARTS; i++)
		good = identity->part[i].at % (2 * sizeof(uint64_t)) == 0 && identity->part[i].at <= bytes - head &&
		       identity->part[i].bytes <= bytes - head - identity->part[i].at;
	return good ? 0
		    : LOOM_FAIL(m->host, err, LOOM_EINVAL, "trigger_peer: rank %u describes impossible memory", rank);
}

static int map_rank(struct peer_map *m, uint32_t rank, struct loom_error *err)
{
	const struct loom_host *host = m->host;
	const struct peer_identity *identity = &m->identity[rank], *mine = &m->identity[host->rank];
	const struct peer_segment *peer_segment = &m->segment[(uint64_t)rank * m->segments];
	struct peer_window *window = &m->window[(uint64_t)rank * PEER_WINDOWS(m->segments)];
	uint64_t base[LOOM_MAX_SEGMENTS + 1], size[LOOM_MAX_SEGMENTS + 1];
	int rc = check_card(m, rank, err);
	if (rc)
		return rc;
	if (!peer_is_near(&mine->process, &identity->process))
		return LOOM_FAIL(
		    host, err, LOOM_ENOTSUP,
		    "trigger_peer: rank %u is on another host than rank %u, or in another container, but workers store "
		    "only into memory of their own host: choose another trigger, as in --set trigger.use=gputn",
		    rank, host->rank);
	if (identity->on_gpu != mine->on_gpu)
		return LOOM_FAIL(host, err, LOOM_ENOTSUP,
				 "trigger_peer: rank %u and rank %u: one uses a GPU, the other a CPU: use the same "
				 "kind of device in "
				 "all ranks, or another trigger, as in --set trigger.use=gputn",
				 rank, host->rank);
	for (uint32_t i = 1; i < m->segments; i++) {
		uint32_t same = 1;
		if (!is_shared(&peer_segment[i]))
			continue;
		while (!is_same(&peer_segment[same], &peer_segment[i]))
			same++;
		rc = same < i	     ? 0 :
		     peer_segment[i].fd < 0 ? open_key(m, rank, &peer_segment[i], &base[i], err) :
				       map_file(m, rank, &peer_segment[i], &base[i], err);
		if (rc)
			return rc;
		if (same == i)
			size[i] = m->mapping[m->mappings - 1].bytes;
		base[i] = base[same];
		size[i] = size[same];
		if (peer_segment[i].fd >= 0 && peer_segment[i].offset + peer_segment[i].bytes > size[i])
			return LOOM_FAIL(host, err, LOOM_EINVAL,
					 "trigger_peer: segment %u of rank %u is longer than its file", i, rank);
		window[i].at = base[i] + peer_segment[i].offset;
	}
	uint64_t block = identity->block ? window[LOOM_REF_SEGMENT(identity->block)].at : 0;
	struct peer_head *head = (struct peer_head *)(uintptr_t)(block + LOOM_REF_OFFSET(identity->block));
	if (!block || !is_block(m, head, identity->token))
		return LOOM_FAIL(host, err, LOOM_ENOTSUP,
				 "trigger_peer: the memory of rank %u has no %s: choose transport %s, or another "
				 "trigger, as in --set "
				 "trigger.use=gputn",
				 rank,
				 m->on_gpu ? "place that GPUs of other ranks reach" : "file that other ranks could map",
				 m->on_gpu ? "p2p" : "host");
	for (uint32_t i = 0; i < PEER_PARTS; i++)
		window[m->segments + i] = (struct peer_window){.at = (uint64_t)(uintptr_t)head + identity->part[i].at,
							       .bytes = identity->part[i].bytes};
	return 0;
}

/* ---- opening ----------------------------------------------------------------------------------------- */

static int exchange(struct peer_map *m, const struct loom_segments *s, const struct peer_identity *mine,
		    struct loom_error *err)
{
	const struct loom_host *host = m->host;
	uint32_t n = s->count, ranks = host->ranks;
	int rc = segment_count_most(host, n, &m->segments, err);
	if (rc)
		return rc;
	uint64_t places = (uint64_t)ranks * m->segments;
	m->identity = host->alloc(host, ranks * sizeof(*m->identity));
	m->segment = host->alloc(host, places * sizeof(*m->segment));
	m->window = host->alloc(host, (places + (uint64_t)PEER_PARTS * ranks) * sizeof(*m->window));
	m->mapping = host->alloc(host, places * sizeof(*m->mapping));
	struct peer_segment *own = host->alloc(host, m->segments * sizeof(*own));
	if (!m->identity || !m->segment || !m->window || !m->mapping || !own)
		rc = LOOM_FAIL(host, err, LOOM_ENOMEM, "out of memory");
	for (uint32_t i = 0; !rc && i < m->segments; i++)
		if (i > 0 && i < n)
			rc = describe_segment(m, s, i, &own[i], err);
		else
			own[i].fd = -1;
	if (!rc)
		rc = host->allgather(host, mine, m->identity, sizeof(*mine), err);
	if (!rc)
		rc = host->allgather(host, own, m->segment, m->segments * sizeof(*own), err);
	host->free(host, own);
	return rc;
}

int peer_map_open(const struct loom_host *host, const struct loom_segments *segments, int on_gpu,
		  struct peer_head *head, const struct peer_part *parts, struct peer_map **map,
		  struct loom_error *err)
{
	struct peer_identity mine = {.on_gpu = on_gpu != 0};
	struct peer_map *m = host->alloc(host, sizeof(*m));
	if (!m)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "out of memory");
	m->host = host;
	m->on_gpu = on_gpu;
	if (LOOM_HAS(segments, close)) {
		m->ctx = segments->ctx;
		m->open = segments->open;
		m->close = segments->close;
	}
	memcpy(mine.part, parts, sizeof(mine.part));
	identify(segments, head, &mine);
	int rc = exchange(m, segments, &mine, err);
	for (uint64_t i = 0; !rc && i < (uint64_t)host->ranks * m->segments; i++)
		m->window[i / m->segments * PEER_WINDOWS(m->segments) + i % m->segments].bytes = m->segment[i].bytes;
	for (uint32_t r = 0; !rc && r < host->ranks; r++)
		for (uint32_t i = 0; r == host->rank && i < PEER_PARTS; i++)
			m->window[(uint64_t)r * PEER_WINDOWS(m->segments) + m->segments + i].bytes = parts[i].bytes;
	for (uint32_t r = 0; !rc && r < host->ranks; r++)
		if (r != host->rank)
			rc = map_rank(m, r, err);
	/* A barrier. A rank clears its block when it continues, so all ranks must have read the tokens before any rank
	 * continues. */
	uint32_t done = 1, *all = rc ? NULL : host->alloc(host, host->ranks * sizeof(*all));
	if (!rc)
		rc = all ? host->allgather(host, &done, all, sizeof(done), err) :
			   LOOM_FAIL(host, err, LOOM_ENOMEM, "out of memory");
	host->free(host, all);
	if (rc) {
		peer_map_close(m);
		return rc;
	}
	*map = m;
	return 0;
}
