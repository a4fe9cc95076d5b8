/* SPDX-License-Identifier: Apache-2.0 */
#include "peer_map.h"

#include <gpuloom/device.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* What a rank tells the others of itself ... */
struct card {
	char boot[40];	    /* of the kernel that it runs on */
	uint64_t processes; /* the namespace that its number is of */
	uint64_t pid, token;
	loom_ref block; /* where its head is; 0: not to be reached */
	uint64_t arrival_at, arrival_bytes;
};
/* ... and of each segment. The same file: one memory. */
struct place {
	uint64_t device, file; /* as fstat says */
	uint64_t offset, bytes;
	int64_t fd; /* -1: none */
};

struct region { /* a memory of another rank, here */
	void *at;
	uint64_t bytes;
};

struct peer_map {
	const struct loom_host *host;
	uint32_t segments, regions;
	struct card *card;   /* [ranks] */
	struct place *place; /* [ranks * segments] */
	struct peer_window *window;
	struct region *region; /* [ranks * segments] at most */
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
	for (uint32_t i = 0; i < m->regions; i++)
		munmap(m->region[i].at, m->region[i].bytes);
	host->free(host, m->card);
	host->free(host, m->place);
	host->free(host, m->window);
	host->free(host, m->region);
	host->free(host, m);
}

/* ---- what this rank tells -------------------------------------------------------------------------- */

static void introduce(const struct loom_segments *s, struct peer_head *head, struct card *card)
{
	struct stat ns;
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && read(fd, card->boot, sizeof(card->boot) - 1) < 0)
		card->boot[0] = 0;
	if (fd >= 0)
		close(fd);
	card->processes = stat("/proc/self/ns/pid", &ns) ? 0 : ns.st_ino;
	card->pid = (uint64_t)getpid();
	if (getrandom(&card->token, sizeof(card->token), 0) != sizeof(card->token))
		card->token = card->pid ^ (uint64_t)(uintptr_t)card;
	head->token = card->token;
	for (uint32_t i = 1; i < s->count; i++) {
		uint64_t offset = (uint64_t)((char *)head - (char *)s->at[i]);
		if (s->at[i] && (char *)head >= (char *)s->at[i] && offset < s->bytes[i])
			card->block = LOOM_REF(i, offset);
	}
}

static void describe(const struct loom_segments *s, uint32_t i, struct place *p)
{
	struct stat file;
	*p = (struct place){.fd = -1, .bytes = s->bytes[i]};
	if (!s->at[i] || !LOOM_HAS(s, offset) || s->fd[i] < 0 || fstat(s->fd[i], &file))
		return;
	*p = (struct place){.device = file.st_dev,
			    .file = file.st_ino,
			    .offset = s->offset[i],
			    .bytes = s->bytes[i],
			    .fd = s->fd[i]};
}

/* ---- what the others have told ---------------------------------------------------------------------- */

/* The file of a place, mapped whole. The path may name another process's by now: the file's number tells. */
static int map_file(struct peer_map *m, uint32_t rank, const struct place *p, char **at, struct loom_error *err)
{
	const struct loom_host *host = m->host;
	char path[64];
	struct stat file;
	snprintf(path, sizeof(path), "/proc/%llu/fd/%lld", (unsigned long long)m->card[rank].pid, (long long)p->fd);
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), code = errno;
	void *map = MAP_FAILED;
	if (fd >= 0 && (fstat(fd, &file) || file.st_dev != p->device || file.st_ino != p->file))
		code = ESTALE;
	else if (fd >= 0) {
		map = mmap(NULL, (size_t)file.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		code = errno;
	}
	if (fd >= 0)
		close(fd);
	if (map == MAP_FAILED)
		return LOOM_FAIL(host, err, LOOM_EUNAVAIL,
				 "trigger_peer: cannot map the memory of rank %u (%s: %s): run all ranks as one user on one "
				 "host, or choose another trigger, as in --set trigger.use=gputn",
				 rank, path, strerror(code));
	m->region[m->regions++] = (struct region){.at = map, .bytes = (uint64_t)file.st_size};
	*at = map;
	return 0;
}

static int map_rank(struct peer_map *m, uint32_t rank, struct loom_error *err)
{
	const struct loom_host *host = m->host;
	const struct card *its = &m->card[rank], *mine = &m->card[host->rank];
	const struct place *place = &m->place[(uint64_t)rank * m->segments];
	struct peer_window *window = &m->window[(uint64_t)rank * (m->segments + 1)];
	char *base[LOOM_MAX_SEGMENTS + 1];
	if (!its->boot[0] || strcmp(its->boot, mine->boot) || its->processes != mine->processes)
		return LOOM_FAIL(host, err, LOOM_ENOTSUP,
				 "trigger_peer: rank %u is on another host than rank %u, or in another container: workers store "
				 "into memory of their own host alone: choose another trigger, as in --set trigger.use=gputn",
				 rank, host->rank);
	for (uint32_t i = 1; i < m->segments; i++) {
		uint32_t same = 1;
		if (place[i].fd < 0)
			continue;
		while (place[same].fd < 0 || place[same].device != place[i].device || place[same].file != place[i].file)
			same++;
		int rc = same < i ? 0 : map_file(m, rank, &place[i], &base[i], err);
		if (rc)
			return rc;
		base[i] = base[same];
		window[i].at = (uint64_t)(uintptr_t)(base[i] + place[i].offset);
	}
	uint64_t block = its->block ? window[LOOM_REF_SEGMENT(its->block)].at : 0;
	struct peer_head *head = (struct peer_head *)(uintptr_t)(block + LOOM_REF_OFFSET(its->block));
	if (!block || __atomic_load_n(&head->token, __ATOMIC_RELAXED) != its->token)
		return LOOM_FAIL(host, err, LOOM_ENOTSUP,
				 "trigger_peer: the memory of rank %u has no file that other ranks could map: choose transport "
				 "host, or another trigger, as in --set trigger.use=gputn",
				 rank);
	window[m->segments] = (struct peer_window){.at = (uint64_t)(uintptr_t)head + its->arrival_at,
						   .bytes = its->arrival_bytes};
	return 0;
}

/* ---- together ---------------------------------------------------------------------------------------- */

static int exchange(struct peer_map *m, const struct loom_segments *s, const struct card *mine,
		    struct loom_error *err)
{
	const struct loom_host *host = m->host;
	uint32_t n = s->count, ranks = host->ranks;
	uint32_t *counts = host->alloc(host, ranks * sizeof(*counts));
	int rc = counts ? host->allgather(host, &n, counts, sizeof(n), err) :
			  LOOM_FAIL(host, err, LOOM_ENOMEM, "out of memory");
	for (uint32_t r = 0; !rc && r < ranks; r++)
		m->segments = counts[r] > m->segments ? counts[r] : m->segments;
	host->free(host, counts);
	if (rc)
		return rc;
	uint64_t places = (uint64_t)ranks * m->segments;
	m->card = host->alloc(host, ranks * sizeof(*m->card));
	m->place = host->alloc(host, places * sizeof(*m->place));
	m->window = host->alloc(host, (places + ranks) * sizeof(*m->window));
	m->region = host->alloc(host, places * sizeof(*m->region));
	struct place *own = host->alloc(host, m->segments * sizeof(*own));
	if (!m->card || !m->place || !m->window || !m->region || !own)
		rc = LOOM_FAIL(host, err, LOOM_ENOMEM, "out of memory");
	for (uint32_t i = 0; !rc && i < m->segments; i++)
		if (i > 0 && i < n)
			describe(s, i, &own[i]);
		else
			own[i].fd = -1;
	if (!rc)
		rc = host->allgather(host, mine, m->card, sizeof(*mine), err);
	if (!rc)
		rc = host->allgather(host, own, m->place, m->segments * sizeof(*own), err);
	host->free(host, own);
	return rc;
}

int peer_map_open(const struct loom_host *host, const struct loom_segments *segments, struct peer_head *head,
		  uint64_t arrival_at, uint32_t arrivals, struct peer_map **map, struct loom_error *err)
{
	struct card mine = {.arrival_at = arrival_at, .arrival_bytes = arrivals * sizeof(struct nic_arrival)};
	struct peer_map *m = host->alloc(host, sizeof(*m));
	if (!m)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "out of memory");
	m->host = host;
	introduce(segments, head, &mine);
	int rc = exchange(m, segments, &mine, err);
	for (uint64_t i = 0; !rc && i < (uint64_t)host->ranks * m->segments; i++)
		m->window[i + i / m->segments].bytes = m->place[i].bytes;
	for (uint32_t r = 0; !rc && r < host->ranks; r++)
		if (r == host->rank)
			m->window[(uint64_t)r * (m->segments + 1) + m->segments].bytes = mine.arrival_bytes;
		else
			rc = map_rank(m, r, err);
	/* None goes on, and clears its block, before all have seen the tokens. */
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
