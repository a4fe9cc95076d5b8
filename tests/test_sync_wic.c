/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the parts of sync_wic: the segment tree, and userfaultfd. */
#include <errno.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "../plugins/sync_wic/pcm.c"
#include "../plugins/sync_wic/uffd.c"
#include "../plugins/sync_wic/wic.h"
#include "sync_rig.h"

static struct sync_rig rig;

static int open_rig(const char *sync, uint32_t workers, const struct loom_channel *k,
		    void (*run)(struct loom_ctx *c))
{
	char settings[96];
	snprintf(settings, sizeof(settings), "workers=%u oversubscribe=yes pin=no", workers);
	int rc = sync_rig_open(&rig, sync, 2, settings, k, 1, run);
	if (!rc)
		rc = sync_rig_launch(&rig);
	if (rc)
		printf("  %s: %s\n", sync, rig.r.err.text);
	sync_rig_clear(&rig);
	return rc;
}

/* ---- segment tree, against a plain list */

TEST(segment_tree)
{
	enum { PAGES = 1024 };
	static struct pcm_node tree[2 * PAGES];
	static char used[PAGES];
	static struct {
		uint32_t first, k;
	} held[PAGES];
	uint32_t n = 0, refused = 0;
	uint64_t x = 42;
	pcm_init(tree, PAGES);
	for (int step = 0; step < 20000; step++) {
		x = x * 6364136223846793005ull + 1442695040888963407ull;
		uint32_t k = 1 + (uint32_t)(x >> 33) % 40, parts = 1u << ((x >> 20) % 3);
		uint32_t part = (uint32_t)(x >> 50) % parts;
		if (n && (x >> 60) < 8) {
			uint32_t i = (uint32_t)(x >> 40) % n;
			pcm_free(tree, PAGES, held[i].first, held[i].k);
			memset(used + held[i].first, 0, held[i].k);
			held[i] = held[--n];
			continue;
		}
		uint32_t first = pcm_alloc(tree, PAGES, parts, part, k), run = 0, best = 0;
		uint32_t from = part * (PAGES / parts), to = from + PAGES / parts;
		for (uint32_t i = from; i < to; i++) {
			run = used[i] ? 0 : run + 1;
			best = run > best ? run : best;
		}
		CU_ASSERT_EQUAL(first == PCM_NONE, best < k); /* a range of k free pages is found if and only if one exists */
		if (first == PCM_NONE) {
			refused++;
			continue;
		}
		CU_ASSERT_FATAL(first >= from && first + k <= to);
		for (uint32_t i = first; i < first + k; i++)
			CU_ASSERT_EQUAL(used[i], 0);
		memset(used + first, 1, k);
		held[n].first = first;
		held[n++].k = k;
		uint32_t left = 0;
		for (uint32_t i = 0; i < PAGES; i++)
			left += !used[i];
		CU_ASSERT_EQUAL(tree[1].sum, left);
	}
	CU_ASSERT(refused > 100);
}

/* ---- two consumers that stall on one page, and signals during the stall */

static uint32_t signals;
static void on_signal(int signo)
{
	(void)signo;
	__atomic_fetch_add(&signals, 1, __ATOMIC_RELAXED);
}

static void two_on_a_page(struct loom_ctx *c)
{
	uint64_t value = 7;
	const void *data;
	if (c->device == 0) {
		if (c->worker != 0)
			return;
		for (uint32_t w = 2; w < 4; w++)
			while (!__atomic_load_n(&sync_row(c)[w].id, __ATOMIC_ACQUIRE))
				usleep(100);
		for (int i = 0; i < 20; i++) { /* each signal ends the stall, which then starts again */
			usleep(1000);
			syscall(SYS_tgkill, getpid(), sync_row(c)[2].id, SIGUSR1);
#ifndef __SANITIZE_THREAD__ /* ThreadSanitizer delivers signals only after the stall */
			while (__atomic_load_n(&signals, __ATOMIC_RELAXED) <= (uint32_t)i && !loom_stopped(c))
				usleep(100);
#endif
		}
		sync_row(c)->code = LOOM_CALL(sync, publish, c, 0, 0, &value, 8, 0);
		return;
	}
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	__atomic_store_n(&sync_row(c)->id, (int64_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	int rc = LOOM_CALL(sync, wait, c, 0, 0, 0, &data);
	sync_row(c)->code = rc;
	sync_row(c)->wrong = rc || *(const uint64_t *)data != 7;
	LOOM_CALL(sync, release, c, 0, 0);
}

TEST(signal_and_shared_page)
{
	static const char *const kinds[] = {"sync_wic mode=copy", "sync_wic", "sync_wic eager=no",
					    "sync_wic activate=monitor mode=copy"};
	struct loom_channel k = {.slots = 1, .readers = 2, .from = 0, .to = 1, .item_bytes = 8};
	struct sigaction act = {.sa_handler = on_signal}, old;
	sigaction(SIGUSR1, &act, &old);
	for (int i = 0; i < 4; i++) {
		signals = 0;
		CU_ASSERT_EQUAL_FATAL(open_rig(kinds[i], 2, &k, two_on_a_page), 0);
		CU_ASSERT_EQUAL_FATAL(sync_rig_sample(&rig), 0);
		for (uint32_t w = 0; w < 4; w++) {
			CU_ASSERT_EQUAL(sync_rig_rows(&rig)[w].code, 0);
			CU_ASSERT_EQUAL(sync_rig_rows(&rig)[w].wrong, 0);
		}
#ifndef __SANITIZE_THREAD__
		CU_ASSERT_EQUAL(signals, 20);
#endif
		CU_ASSERT_EQUAL(sync_rig_metric(&rig, "sync_eager"), 0); /* no item was published before its consumer waited */
		sync_rig_end(&rig);
	}
	sigaction(SIGUSR1, &old, NULL);
}

/* ---- recycling: more rounds than companion pages, so that pages are used again */

static void rounds(struct loom_ctx *c)
{
	uint64_t value[600];
	const void *data;
	int rc = 0;
	if (c->worker != c->first)
		return;
	for (uint32_t tag = 0; tag < 200 && !rc; tag++) {
		if (c->device == 0) {
			for (uint32_t i = 0; i < 600; i++)
				value[i] = tag * 1000 + i;
			rc = LOOM_CALL(sync, publish, c, 0, tag, value, 8 * (1 + tag * 3 % 600), 0);
			continue;
		}
		rc = LOOM_CALL(sync, wait, c, 0, tag, 0, &data);
		for (uint32_t i = 0; !rc && i < 1 + tag * 3 % 600; i++)
			sync_row(c)->wrong += ((const uint64_t *)data)[i] != tag * 1000 + i;
		LOOM_CALL(sync, release, c, 0, tag);
	}
	sync_row(c)->code = rc;
}

TEST(recycle)
{
	struct loom_channel k = {.slots = 3, .readers = 1, .from = 0, .to = 1, .item_bytes = 4800};
	static const char *const kinds[] = {"sync_wic companions=2 mode=copy", "sync_wic companions=4",
					    "sync_wic companions=2 mode=copy eager=no"};
	for (int i = 0; i < 3; i++) {
		CU_ASSERT_EQUAL_FATAL(open_rig(kinds[i], 1, &k, rounds), 0);
		CU_ASSERT_EQUAL_FATAL(sync_rig_sample(&rig), 0);
		CU_ASSERT_EQUAL(sync_rig_rows(&rig)[0].code, 0);
		CU_ASSERT_EQUAL(sync_rig_rows(&rig)[1].code, 0);
		CU_ASSERT_EQUAL(sync_rig_rows(&rig)[1].wrong, 0);
		/* A stall uses up a page. With eager=no the consumer always stalls. */
		if (i == 2)
			CU_ASSERT(sync_rig_metric(&rig, "sync_recycles") > 300);
		sync_rig_end(&rig);
	}
}

/* ---- a lock whose holder was killed: no other thread takes it, and the next launch does not wait for it */

TEST(lost_lock)
{
	struct loom_channel k = {.slots = 3, .readers = 1, .from = 0, .to = 1, .item_bytes = 4800};
	struct loom_ctl ctl = {.stop = 1};
	uint32_t lock = 1;
	CU_ASSERT_EQUAL(wic_lock(&ctl, &lock), LOOM_EINTR);
	CU_ASSERT_EQUAL(lock, 1);
	CU_ASSERT_EQUAL_FATAL(open_rig("sync_wic", 1, &k, rounds), 0);
	struct sync_head *head = rig.view.global;
	CU_ASSERT_EQUAL_FATAL(sync_rig_sample(&rig), 0);
	struct wic_device *device = (struct wic_device *)((char *)head + 64ull * head->setting[0]);
	device[1].lock = 1;
	CU_ASSERT_EQUAL_FATAL(sync_rig_sample(&rig), 0);
	CU_ASSERT_EQUAL(sync_rig_rows(&rig)[1].code, 0);
	sync_rig_end(&rig);
}

/* ---- the descriptors that devices have sent and not yet received: no more than files may be open */

TEST(descriptors_under_way)
{
	enum { DEVICES = 8 };
	struct loom_channel k = {.slots = 4, .readers = 1, .from = 0, .to = 1, .item_bytes = 8};
	struct loom_device_shape shape[DEVICES] = {{.workers = 0}};
	struct loom_layout layout = {
	    .size = sizeof(layout), .devices = DEVICES, .workers = 250 * DEVICES, .device = shape};
	const struct loom_sync_ops *ops = fake_load("sync_wic")->ops;
	struct loom_need need = {.size = sizeof(need)};
	struct loom_error err = {0};
	struct rlimit files, few;
	void *self = NULL;
	for (uint32_t d = 0; d < DEVICES; d++)
		shape[d] = (struct loom_device_shape){
		    .workers = 250, .lanes = 1, .first_worker = 250 * d, .kind = LOOM_ON_CPU};
	getrlimit(RLIMIT_NOFILE, &files);
	few = files;
	few.rlim_cur = 1024;
	setrlimit(RLIMIT_NOFILE, &few);
	CU_ASSERT_EQUAL_FATAL(ops->create(&fake_host, fake_settings(fake_load("sync_wic"), ""), &self, &err), 0);
	CU_ASSERT_EQUAL(ops->channels(self, &layout, &k, 1, &err), 0);
	CU_ASSERT_EQUAL(ops->need(self, &layout, &need, &err), 0);
	CU_ASSERT(((struct wic *)self)->shards[0] * DEVICES * (DEVICES - 1) <= few.rlim_cur);
	ops->destroy(self);
	setrlimit(RLIMIT_NOFILE, &files);
}

/* ---- data that are published early do not stall their consumer */

static void early(struct loom_ctx *c)
{
	uint64_t value = 3;
	const void *data;
	if (c->worker == 0) {
		sync_row(c)->code = LOOM_CALL(sync, publish, c, 0, 0, &value, 8, 0);
		__atomic_store_n(&sync_row(c)->done, 1, __ATOMIC_RELEASE);
	}
	if (c->worker != c->first || c->device == 0)
		return;
	while (!__atomic_load_n(&sync_row(c)[-1].done, __ATOMIC_ACQUIRE) && !loom_stopped(c))
		usleep(100);
	sync_row(c)->code = LOOM_CALL(sync, wait, c, 0, 0, 0, &data);
	sync_row(c)->wrong = *(const uint64_t *)data != 3;
}

TEST(early)
{
	struct loom_channel k = {.slots = 1, .readers = 1, .from = 0, .to = 1, .item_bytes = 8};
	for (int eager = 0; eager < 2; eager++) {
		CU_ASSERT_EQUAL_FATAL(open_rig(eager ? "sync_wic" : "sync_wic eager=no", 1, &k, early), 0);
		CU_ASSERT_EQUAL_FATAL(sync_rig_sample(&rig), 0);
		CU_ASSERT_EQUAL(sync_rig_rows(&rig)[1].code, 0);
		CU_ASSERT_EQUAL(sync_rig_rows(&rig)[1].wrong, 0);
		CU_ASSERT_EQUAL(sync_rig_metric(&rig, "sync_faults"), !eager);
		sync_rig_end(&rig);
	}
}

/* ---- a fork in mid-sample: the child reads its parent's data, or dies; it never reads zeroes */

static void fork_in_sample(struct loom_ctx *c)
{
	uint64_t value = 5;
	const void *data;
	if (c->worker == 0)
		sync_row(c)->code = LOOM_CALL(sync, publish, c, 0, 0, &value, 8, 0);
	if (c->worker != c->first || c->device == 0)
		return;
	sync_row(c)->code = LOOM_CALL(sync, wait, c, 0, 0, 0, &data);
	pid_t child = fork();
	if (child == 0) {
		signal(SIGSEGV, SIG_DFL);
		_exit(*(const volatile uint64_t *)data == 5 ? 5 : 0);
	}
	int status = 0;
	waitpid(child, &status, 0);
	int died = WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
	sync_row(c)->done = (uint64_t)(died ? 1 : WEXITSTATUS(status));
	sync_row(c)->wrong = *(const uint64_t *)data != 5; /* the parent keeps the item */
}

TEST(fork)
{
	struct loom_channel k = {.slots = 1, .readers = 1, .from = 0, .to = 1, .item_bytes = 8};
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	return; /* the sanitizer would handle the signal that ends the child */
#endif
	for (int copy = 0; copy < 2; copy++) {
		/* With eager=no the consumer stalls even if the item is there. */
		const char *kind = copy ? "sync_wic mode=copy eager=no" : "sync_wic eager=no";
		CU_ASSERT_EQUAL_FATAL(open_rig(kind, 1, &k, fork_in_sample), 0);
		CU_ASSERT_EQUAL_FATAL(sync_rig_sample(&rig), 0);
		CU_ASSERT_EQUAL(sync_rig_metric(&rig, "sync_faults"), 1);
		CU_ASSERT_EQUAL(sync_rig_rows(&rig)[1].code, 0);
		/* The child shares the pages of a file (in place), but not the private pages of mode=copy, on which it
		 * dies. */
		CU_ASSERT_EQUAL(sync_rig_rows(&rig)[1].done, copy ? 1 : 5);
		CU_ASSERT_EQUAL(sync_rig_rows(&rig)[1].wrong, 0);
		sync_rig_end(&rig);
	}
}

/* ---- a conf with too few pages is rejected before a run */

static void nothing(struct loom_ctx *c)
{
	(void)c;
}

TEST(refusals)
{
	struct loom_channel k = {.slots = 100, .readers = 1, .from = 0, .to = 1, .item_bytes = 8};
	REFUSED(sync_rig_open(&rig, "sync_wic pages=64", 2, "workers=1 oversubscribe=yes", &k, 1, nothing), LOOM_EINVAL,
		rig.r.err, "raise pages");
	sync_rig_close(&rig);
	struct loom_error err;
	const struct loom_plugin *p = fake_load("sync_wic");
	CU_ASSERT_EQUAL(p->check(&fake_host, fake_settings(p, "companions=3"), &err), LOOM_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(uffd_advice(EPERM), "seccomp"));
}

/* ---- the behaviour of the kernel on which sync_wic depends, tested with uffd.c alone */

struct toucher {
	pthread_t thread;
	volatile char *at;
	uint32_t done;
	char value;
};
static void *touch(void *arg)
{
	struct toucher *t = arg;
	t->value = *t->at;
	__atomic_store_n(&t->done, 1u, __ATOMIC_RELEASE);
	return NULL;
}
/* Starts a thread, and returns when the thread stalls. */
static void begin_touch(int fd, struct toucher *t, volatile char *at)
{
	struct uffd_msg m;
	*t = (struct toucher){.at = at};
	pthread_create(&t->thread, NULL, touch, t);
	while (read(fd, &m, sizeof(m)) != sizeof(m))
		usleep(100);
	CU_ASSERT_EQUAL(__atomic_load_n(&t->done, __ATOMIC_ACQUIRE), 0);
}

TEST(kernel)
{
	enum { PAGES = 16, BYTES = PAGES * 4096 };
	static char data[BYTES];
	struct toucher t[2];
	memset(data, 9, sizeof(data));
	int fd = uffd_open(UFFD_MISSING);
	CU_ASSERT_FATAL(fd >= 0);
	char *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(p, BYTES, MADV_NOHUGEPAGE);
	CU_ASSERT_EQUAL(uffd_register(fd, p, BYTES, UFFD_MISSING), 0);
	uint64_t at = (uintptr_t)p;
	/* One copy resumes both threads. A second copy fails, because the page is placed. */
	begin_touch(fd, &t[0], p);
	begin_touch(fd, &t[1], p);
	CU_ASSERT_EQUAL(uffd_copy(fd, at, data, 4096, 1), 0);
	for (int i = 0; i < 2; i++) {
		pthread_join(t[i].thread, NULL);
		CU_ASSERT_EQUAL(t[i].value, 9);
	}
	CU_ASSERT_EQUAL(uffd_copy(fd, at, data, 4096, 1), -EEXIST);
	/* The range contains a page that is already placed. The call places the pages before it, and then fails. */
	CU_ASSERT_EQUAL(uffd_copy(fd, at + 4 * 4096, data, 4096, 1), 0);
	CU_ASSERT_EQUAL(uffd_copy(fd, at + 4096, data, 8 * 4096, 1), -EEXIST);
	CU_ASSERT_EQUAL(p[3 * 4096], 9);
	/* After the page is removed, a load stalls again. */
	madvise(p, 4096, MADV_DONTNEED);
	begin_touch(fd, &t[0], p);
	CU_ASSERT_EQUAL(uffd_copy(fd, at, data, 4096, 0), 0); /* the copy does not wake the thread */
	usleep(20000);
	CU_ASSERT_EQUAL(__atomic_load_n(&t[0].done, __ATOMIC_ACQUIRE), 0);
	CU_ASSERT_EQUAL(uffd_wake(fd, at, 4096), 0); /* the wake call ends the stall */
	pthread_join(t[0].thread, NULL);
	CU_ASSERT_EQUAL(t[0].value, 9);
	/* A system call on a missing page fails instead of stalling. Therefore sync.h forbids such calls. */
	int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	CU_ASSERT(read(zero, p + 9 * 4096, 16) < 0 && errno == EFAULT);
	close(zero);
	/* If the descriptor is closed while a thread stalls, the thread continues with zeroes, which are wrong data.
	 * Therefore sync_wic closes it only after the workers have left. */
	begin_touch(fd, &t[0], p + 10 * 4096);
	close(fd);
	pthread_join(t[0].thread, NULL);
	CU_ASSERT_EQUAL(t[0].value, 0);
	munmap(p, BYTES);
}

int main(int argc, char **argv)
{
	int fd = uffd_open(UFFD_MISSING);
	if (fd < 0)
		test_skip("userfaultfd is refused here");
	close(fd);
	return test_main(argc, argv, "sync_wic", 60);
}
