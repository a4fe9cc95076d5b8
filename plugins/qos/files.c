/* SPDX-License-Identifier: Apache-2.0 */
/* Reads through io_uring. Consecutive reads of a round are submitted together. A request that is no read waits for these
 * reads (qos_files_flush()), because it may use or change the data that they read.
 *
 * If the kernel cannot do a read at once, because a page is not cached or the file is in tmpfs, it passes the read to threads
 * of its own. These threads belong to this process, and their CPU time is also charged to the path. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "service.h"
#include "lib/fd.h"

#ifdef QOS_URING
#include <liburing.h>

#define SEEN_MOST 1024u
#define RESCAN_NS 50000000u
#define SUBMIT_NAP_NS 100000u
#define SUBMIT_TRIES 1000u
#define REAP_NS 10000000000u

/* A thread of this process that find_threads() has found. */
struct seen {
	int tid;
	int kernel; /* 1: a thread of io_uring */
	uint64_t ns; /* CPU time of the thread at the last charge, in ns */
};

struct qos_files {
	struct io_uring ring;
	struct qos_call *call[QOS_BATCH_MAX];
	uint32_t n;
	int broken; /* 1: the ring has failed, so files are read by pread */
	struct seen seen[SEEN_MOST];
	uint32_t seen_count;
	uint64_t scanned_ns;
};

int qos_files_open(struct service *s, struct loom_error *err)
{
	s->files = s->host->alloc(s->host, sizeof(*s->files));
	if (!s->files)
		return LOOM_FAIL(s->host, err, LOOM_ENOMEM, "%s: out of memory", s->name);
	/* IORING_SETUP_COOP_TASKRUN: completions need not interrupt this thread, which enters the kernel to wait for them. */
	unsigned held = loom_fd_hold();
	int rc = io_uring_queue_init(QOS_BATCH_MAX, &s->files->ring, IORING_SETUP_COOP_TASKRUN);
	loom_fd_release(held);
	/* Two threads of each type are enough. The worker thread waits for the reads, so more threads would only take more CPU
	 * time. */
	unsigned most[2] = {2, 2};
	if (!rc && io_uring_register_iowq_max_workers(&s->files->ring, most))
		LOOM_LOG(s->host, LOOM_LOG_DEBUG, s->name, "io_uring's threads are not limited");
	if (!rc)
		return 0;
	s->host->free(s->host, s->files);
	s->files = NULL;
	return LOOM_FAIL(s->host, err, LOOM_EUNAVAIL,
			 "%s: the system rejects io_uring (%s): set 'files = pread' in [qos]",
			 s->name, strerror(-rc));
}

void qos_files_close(struct service *s)
{
	if (!s->files)
		return;
	io_uring_queue_exit(&s->files->ring);
	s->host->free(s->host, s->files);
	s->files = NULL;
}

int qos_files_add(struct service *s, struct qos_call *call)
{
	struct qos_files *f = s->files;
	if (!f || f->broken || !qos_is_read(call))
		return 0;
	struct io_uring_sqe *e = f->n < QOS_BATCH_MAX ? io_uring_get_sqe(&f->ring) : NULL;
	if (!e)
		return 0;
	io_uring_prep_read(e, call->fd, call->at, call->bytes, call->argument);
	io_uring_sqe_set_data64(e, f->n);
	f->call[f->n++] = call;
	return 1;
}

/* Called if the kernel accepts no more calls or completions cannot be awaited. The ring is not used again, because calls that
 * the kernel has not accepted stay in it. */
static void give_up(struct service *s, const char *what, int rc)
{
	if (!s->files->broken)
		LOOM_LOG(s->host, LOOM_LOG_WARN, s->name, "io_uring %s: %s; files are read by pread from now on", what,
			 strerror(-rc));
	s->files->broken = 1;
}

/* Submits n calls and waits for them. Returns how many of them the kernel has accepted. */
static uint32_t submit(struct service *s, uint32_t n)
{
	struct timespec nap = {.tv_nsec = SUBMIT_NAP_NS};
	uint32_t taken = 0, tries = 0;
	while (taken < n) {
		int rc = io_uring_submit_and_wait(&s->files->ring, n - taken);
		int again = rc == -EAGAIN || rc == -EBUSY;
		if (rc > 0) {
			taken += (uint32_t)rc;
		} else if (again && tries++ < SUBMIT_TRIES) {
			nanosleep(&nap, NULL);
		} else if (rc != -EINTR) {
			give_up(s, "accepts no calls", rc ? rc : -EIO);
			break;
		}
	}
	return taken;
}

/* Waits for the next completion, and sets *c to it. Returns 0, or an error if none came. */
static int next(struct service *s, struct io_uring_cqe **c)
{
	struct timespec nap = {.tv_nsec = SUBMIT_NAP_NS};
	struct qos_files *f = s->files;
	uint64_t begin = qos_now();
	int rc;
	while ((rc = f->broken ? io_uring_peek_cqe(&f->ring, c) : io_uring_wait_cqe(&f->ring, c)) != 0) {
		if (!f->broken && (rc == -EINTR || rc == -EAGAIN))
			continue;
		give_up(s, "cannot be waited for", rc);
		/* Waits up to REAP_NS, because the kernel still executes the accepted calls, which use the requests' memory. */
		if (qos_now() - begin > REAP_NS)
			return rc;
		nanosleep(&nap, NULL);
	}
	return 0;
}

void qos_files_flush(struct service *s, struct qos_tenant *tenant)
{
	struct qos_files *f = s->files;
	uint32_t n = f ? f->n : 0, taken = n ? submit(s, n) : 0;
	struct io_uring_cqe *c;
	for (uint32_t left = taken; left && !next(s, &c); left--) {
		uint64_t i = io_uring_cqe_get_data64(c);
		qos_complete(s, tenant, f->call[i], c->res, qos_now());
		f->call[i] = NULL;
		io_uring_cqe_seen(&f->ring, c);
	}
	for (uint32_t i = 0; i < n; i++)
		if (f->call[i]) /* the kernel has not accepted the call, or gave no completion */
			qos_complete(s, tenant, f->call[i], i < taken ? -EIO : qos_execute(s, f->call[i]), qos_now());
	if (f)
		f->n = 0;
}

/* ---- threads of io_uring ---- */

static int is_io_uring_thread(const char *tid)
{
	char path[64], comm[32] = "";
	snprintf(path, sizeof(path), "/proc/self/task/%.16s/comm", tid);
	FILE *f = fopen(path, "re");
	if (!f)
		return 0;
	if (!fgets(comm, sizeof(comm), f))
		*comm = 0;
	fclose(f);
	return !strncmp(comm, "iou-", 4);
}

static void find_threads(struct qos_files *f)
{
	DIR *d = opendir("/proc/self/task");
	for (const struct dirent *e; d && (e = readdir(d));) {
		int tid = atoi(e->d_name);
		uint32_t i = 0;
		while (i < f->seen_count && f->seen[i].tid != tid)
			i++;
		if (tid <= 0 || i < f->seen_count || i == SEEN_MOST)
			continue;
		f->seen[f->seen_count++] = (struct seen){.tid = tid, .kernel = is_io_uring_thread(e->d_name)};
	}
	if (d)
		closedir(d);
}

/* Returns the CPU clock of the thread with this id, in the kernel's encoding. */
static clockid_t clock_of(int tid)
{
	return (clockid_t)((~(unsigned)tid << 3) | 6u);
}

uint64_t qos_files_charge(struct service *s, int all)
{
	struct qos_files *f = s->files;
	uint64_t spent = 0;
	if (!f)
		return 0;
	uint64_t now = qos_now();
	if (all || now - f->scanned_ns >= RESCAN_NS) {
		find_threads(f);
		f->scanned_ns = now;
	}
	for (uint32_t i = 0; i < f->seen_count; i++) {
		struct seen *t = &f->seen[i];
		struct timespec clock;
		if (!t->kernel)
			continue;
		if (clock_gettime(clock_of(t->tid), &clock)) { /* the thread has exited */
			*t = f->seen[--f->seen_count];
			i--;
			continue;
		}
		uint64_t ns = (uint64_t)clock.tv_sec * 1000000000u + (uint64_t)clock.tv_nsec;
		spent += ns > t->ns ? ns - t->ns : 0;
		t->ns = ns;
	}
	__atomic_fetch_add(&s->stage_ns[QOS_KERNEL], spent, __ATOMIC_RELAXED);
	return spent;
}

#else

uint64_t qos_files_charge(struct service *s, int all)
{
	(void)s, (void)all;
	return 0;
}

int qos_files_open(struct service *s, struct loom_error *err)
{
	return LOOM_FAIL(s->host, err, LOOM_EUNAVAIL,
			 "%s: built without liburing: set 'files = pread' in [qos], "
			 "or install liburing-dev and build again",
			 s->name);
}
void qos_files_close(struct service *s)
{
	(void)s;
}
int qos_files_add(struct service *s, struct qos_call *call)
{
	(void)s, (void)call;
	return 0;
}
void qos_files_flush(struct service *s, struct qos_tenant *tenant)
{
	(void)s, (void)tenant;
}
#endif
