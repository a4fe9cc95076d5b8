/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the claims of a provider. Each rank puts 8 bytes and then 64 KiB to the next rank, with notification. The next
 * rank compares the data. Then each rank adds atomically to its own memory. Last, each rank adds to a word to which a
 * CPU adds at the same time. A provider that implements an add by a load and a store loses some adds. */
#include "fabric_ofi.h"

#include <gpuloom/dev/dev.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define TEST_NOTIFY 0x7e57u

struct test {
	struct fabric_ofi *f;
	uint64_t until;
	int done, arrived, status;
	uint32_t failed; /* first rank on which the test failed */
};

static void poll_once(struct test *t)
{
	struct fabric_event e[4];
	int n = fabric_ofi_ops.poll(&t->f->is, e, 4);
	for (int i = 0; i < n; i++) {
		if (e[i].what == FABRIC_ARRIVED)
			t->arrived += e[i].notify == TEST_NOTIFY;
		else if (e[i].what == FABRIC_DONE)
			t->done++;
		else
			t->status = e[i].status ? e[i].status : FI_EOTHER;
	}
	if (n < 0)
		t->status = FI_EIO;
	if (n == 0)
		loom_cpu_yield();
	if (t->f->is.host->now_ns(t->f->is.host) > t->until)
		t->status = FI_ETIMEDOUT;
}

static void pattern(char *at, uint64_t bytes, uint64_t from)
{
	for (uint64_t i = 0; i < bytes; i++)
		at[i] = (char)(i * 131 + (i >> 8) + from + bytes);
}

/* Returns 0 if the test succeeded on all ranks. Else returns LOOM_EAGAIN, with t->failed, or an error. */
static int agree(struct test *t, struct loom_error *err)
{
	/* An operation completes when its data are at the target. So the operations of this rank are done, and the
	 * operations that its neighbour sends to it have arrived. No rank needs further progress of this rank. */
	uint8_t ok = !t->status, all[256];
	const struct loom_host *host = t->f->is.host;
	uint8_t *list = host->ranks <= sizeof(all) ? all : host->alloc(host, host->ranks);
	if (!list)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "out of memory");
	int rc = host->allgather(host, &ok, list, 1, err);
	for (uint32_t r = 0; r < host->ranks && !rc; r++)
		if (!list[r]) {
			t->failed = r;
			rc = LOOM_EAGAIN;
		}
	if (list != all)
		host->free(host, list);
	return rc;
}

static int put_and_compare(struct test *t, uint64_t bytes, struct loom_error *err)
{
	struct fabric_ofi *f = t->f;
	const struct loom_host *host = f->is.host;
	uint32_t next = (host->rank + 1) % host->ranks, before = (host->rank + host->ranks - 1) % host->ranks;
	const struct fabric_remote *to = &f->scratch_remote[next];
	*t = (struct test){.f = f, .until = host->now_ns(host) + f->test_ns};
	pattern(f->scratch + FABRIC_SCRATCH_FROM, bytes, host->rank);
	ssize_t code;
	while ((code = fi_writedata(f->ep, f->scratch, bytes, fi_mr_desc(f->scratch_mr), TEST_NOTIFY,
				    f->peer[next], to->base + FABRIC_SCRATCH_TO, to->key, f->test)) ==
		       -FI_EAGAIN &&
	       !t->status)
		poll_once(t);
	if (code && !t->status)
		t->status = (int)-code;
	while (!t->status && !(t->done && t->arrived))
		poll_once(t);
	pattern(f->scratch + FABRIC_SCRATCH_FROM, bytes, before);
	if (!t->status && memcmp(f->scratch, f->scratch + FABRIC_SCRATCH_TO, bytes))
		t->status = FI_EIO;
	return agree(t, err);
}

/* Puts 8 bytes to each other rank, and receives 8 bytes from each. At the first operation, provider shm of libfabric
 * 1.17 connects to a peer by a buffer of that peer. If larger data come first, the peer may unmap the memory of a third
 * rank and crash. So all ranks connect first. */
static int connect_all(struct test *t, struct loom_error *err)
{
	struct fabric_ofi *f = t->f;
	const struct loom_host *host = f->is.host;
	int others = (int)host->ranks - 1, sent = 0;
	*t = (struct test){.f = f, .until = host->now_ns(host) + f->test_ns};
	while (!t->status && (sent < others || t->done < others || t->arrived < others)) {
		uint32_t to = (host->rank + 1 + (uint32_t)sent) % host->ranks;
		const struct fabric_remote *there = &f->scratch_remote[to];
		ssize_t code = sent == others
				   ? -FI_EAGAIN
				   : fi_writedata(f->ep, f->scratch, 8, fi_mr_desc(f->scratch_mr), TEST_NOTIFY,
						  f->peer[to], there->base + FABRIC_SCRATCH_TO, there->key, f->test);
		if (!code)
			sent++;
		else if (code != -FI_EAGAIN)
			t->status = (int)-code;
		poll_once(t);
	}
	return agree(t, err);
}

#define ADDS ((int)FABRIC_TESTS)

static int add_one(struct test *t, uint64_t *from, struct fabric_context *context)
{
	struct fabric_ofi *f = t->f;
	uint32_t rank = f->is.host->rank;
	const struct fabric_remote *to = &f->scratch_remote[rank];
	ssize_t code;
	while ((code = fi_atomic(f->ep, from, 1, fi_mr_desc(f->scratch_mr), f->peer[rank],
				 to->base + FABRIC_SCRATCH_TO, to->key, FI_UINT64, FI_SUM, context)) ==
		       -FI_EAGAIN &&
	       !t->status)
		poll_once(t);
	return code ? (int)-code : 0;
}

/* Adds several times to this rank's memory. at_once: 1 if all adds may be in flight together, 0 if each waits for the
 * one before. */
static int add_and_compare(struct test *t, int at_once, struct loom_error *err)
{
	struct fabric_ofi *f = t->f;
	uint64_t *from = (uint64_t *)f->scratch, *sum = (uint64_t *)(f->scratch + FABRIC_SCRATCH_TO);
	*t = (struct test){.f = f, .until = f->is.host->now_ns(f->is.host) + f->test_ns};
	*sum = 5;
	for (int i = 0; i < ADDS && !t->status; i++) {
		from[8 * i] = 1ull << 8 * i;
		int code = add_one(t, &from[8 * i], &f->test[i]);
		t->status = t->status ? t->status : code;
		while (!t->status && !at_once && t->done <= i)
			poll_once(t);
	}
	while (!t->status && t->done < ADDS)
		poll_once(t);
	if (!t->status && __atomic_load_n(sum, __ATOMIC_RELAXED) != 0x0101010101010106ull)
		t->status = FI_EIO;
	return agree(t, err);
}

static int test_adds(struct test *t, struct loom_error *err)
{
	struct fabric_ofi *f = t->f;
	int rc = f->add_alone ? LOOM_EAGAIN : add_and_compare(t, 1, err);
	if (rc == LOOM_EAGAIN) {
		rc = add_and_compare(t, 0, err);
		f->add_alone = 1;
	}
	if (rc != LOOM_EAGAIN)
		return rc;
	LOOM_LOG(f->is.host, LOOM_LOG_INFO, "fabric", "%s claims atomics that do not work: %s", f->is.name,
		 t->status ? fi_strerror(t->status) : "on another rank");
	f->most_add[LOOM_NET_U64] = f->most_add[LOOM_NET_F32] = 0;
	return 0;
}

#define FETCHES 64
#define FETCH_NS 50000000ull

/* A thread that adds to the upper half of a word. */
struct competitor {
	uint64_t *word, added;
	uint32_t stop;
};

static void *competitor(void *arg)
{
	struct competitor *r = arg;
	while (!__atomic_load_n(&r->stop, __ATOMIC_RELAXED)) {
		__atomic_fetch_add(r->word, 1ull << 32, __ATOMIC_RELAXED);
		r->added++;
	}
	return NULL;
}

/* Fetches and adds to the lower half of the same word. Only one operation is in flight, so the result of each is known
 * in advance. Returns the number of operations. */
static int fetch_beside(struct test *t)
{
	struct fabric_ofi *f = t->f;
	uint64_t *from = (uint64_t *)f->scratch, begin = f->is.host->now_ns(f->is.host);
	uint32_t rank = f->is.host->rank;
	int n = 0;
	for (; n < FETCHES && !t->status && f->is.host->now_ns(f->is.host) - begin < FETCH_NS; n++) {
		ssize_t code;
		from[0] = 1;
		while ((code = fi_fetch_atomic(
			    f->ep, from, 1, fi_mr_desc(f->scratch_mr), from + 1, fi_mr_desc(f->scratch_mr),
			    f->peer[rank], f->scratch_remote[rank].base + FABRIC_SCRATCH_TO,
			    f->scratch_remote[rank].key, FI_UINT64, FI_SUM, f->test)) == -FI_EAGAIN &&
		       !t->status)
			poll_once(t);
		t->status = t->status ? t->status : (int)-code;
		while (!t->status && t->done <= n)
			poll_once(t);
		if (!t->status && (uint32_t)from[1] != (uint32_t)n)
			t->status = FI_EIO;
	}
	return n;
}

/* Sets `fetches` to 1 if no addition was lost on any rank. */
static int test_fetches(struct test *t, struct loom_error *err)
{
	struct fabric_ofi *f = t->f;
	struct competitor r = {.word = (uint64_t *)(f->scratch + FABRIC_SCRATCH_TO)};
	pthread_t thread;
	size_t count = 0;
	int n = 0;
	*t = (struct test){.f = f, .until = f->is.host->now_ns(f->is.host) + f->test_ns};
	*r.word = 0;
	if (fi_fetch_atomicvalid(f->ep, FI_UINT64, FI_SUM, &count) || !count ||
	    pthread_create(&thread, NULL, competitor, &r)) {
		t->status = FI_ENOSYS;
	} else {
		n = fetch_beside(t);
		__atomic_store_n(&r.stop, 1u, __ATOMIC_RELAXED);
		pthread_join(thread, NULL);
		if (!t->status && *r.word != (r.added << 32) + (uint64_t)n)
			t->status = FI_EIO;
	}
	int rc = agree(t, err);
	f->is.fetches = !rc;
	LOOM_LOG(f->is.host, LOOM_LOG_INFO, "fabric", "%s: its atomics are %s beside those of CPUs", f->is.name,
		 rc ? "not safe" : "safe");
	return rc == LOOM_EAGAIN ? 0 : rc;
}

int fabric_test(struct fabric_ofi *f, char *why, size_t size, struct loom_error *err)
{
	struct test t = {.f = f};
	static const uint64_t bytes[] = {8, FABRIC_TEST_BYTES};
	int rc = strcmp(f->is.name, "shm") ? 0 : connect_all(&t, err);
	if (rc)
		snprintf(why, size, "rank %u cannot put 8 bytes to each of the others", t.failed);
	for (size_t i = 0; !rc && i < 2; i++) {
		rc = put_and_compare(&t, bytes[i], err);
		if (rc)
			snprintf(why, size, "a put of %llu bytes with notification fails its test on rank %u%s%s",
				 (unsigned long long)bytes[i], t.failed, t.status ? ": " : "",
				 t.status ? fi_strerror(t.status) : "");
	}
	if (!rc && f->most_add[LOOM_NET_U64])
		rc = test_adds(&t, err);
	if (!rc && f->most_add[LOOM_NET_U64] && !f->add_alone)
		rc = test_fetches(&t, err);
	f->tested = 1;
	return rc;
}
