/* SPDX-License-Identifier: Apache-2.0 */
/* Victims with a name: programs, and two victims that are built in. This file chooses the work of each program so
 * that it takes about a second on any number of cores. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "lib/thread.h"
#include "lib/random.h"
#include "requests.h"

#define SECOND 1000000000u

/* In a command, %u is replaced by the number of cores that the program may use. */
static const struct known {
	const char *name, *command;
	const char *package; /* of Debian; "": the victim needs none */
	const char *header;  /* the start of the program's standard input; text follows */
	uint32_t input_mib;  /* size of this text */
	enum request_built_in built_in;
} known[] = {
    /* Both programs of PARSEC that Debian has: a video of 640 x 360 dots is coded, a picture is sharpened. */
    {"@x264", "x264 --quiet --threads %u --demuxer raw --input-res 640x360 --fps 25 -o /dev/null -", "x264", "", 8, 0},
    {"@vips", "vips --vips-concurrency=%u sharpen stdin .pgm", "libvips-tools", "P5 4096 2048 255\n", 8, 0},
    {"@openssl", "openssl speed -elapsed -seconds 1 -bytes 8192 -multi %u -evp sha256", "openssl", "", 0, 0},
    {"@gzip", "gzip -6 -c", "gzip", "", 16, 0},
    {"@memory", "@memory", "", "", 0, REQUEST_MEMORY},
    {"@barrier", "@barrier", "", "", 0, REQUEST_BARRIER},
    {"@idle", "", "", "", 0, 0},
};
#define KNOWN (sizeof(known) / sizeof(known[0]))

static const struct known *find(const char *victim)
{
	for (size_t i = 0; i < KNOWN; i++)
		if (!strcmp(known[i].name, victim))
			return &known[i];
	return NULL;
}

int request_victim_check(const struct loom_host *host, const char *victim, struct loom_error *err)
{
	if (*victim != '@' || find(victim))
		return 0;
	char all[200] = "";
	for (size_t i = 0; i < KNOWN; i++)
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s", i ? ", " : "", known[i].name);
	return LOOM_REFUSE(host, err, "victim", "no victim '%s': there are %s, and commands", victim, all);
}

void request_victim_set(const char *victim, uint32_t cores, uint64_t duration, struct request_victim *out)
{
	const struct known *k = find(victim);
	*out = (struct request_victim){
	    .cores = cores, .built_in_ns = duration ? duration : SECOND, .package = "", .header = ""};
	if (!k) {
		snprintf(out->command, sizeof(out->command), "%s", victim);
		return;
	}
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(out->command, sizeof(out->command), k->command, cores);
#pragma GCC diagnostic pop
	out->package = k->package;
	out->header = k->header;
	out->input_mib = k->input_mib;
	out->built_in = k->built_in;
}

int request_victim_input(const char *header, uint32_t mib)
{
	int fd = memfd_create("input", MFD_CLOEXEC);
	uint64_t state = 1;
	char line[4096];
	if (fd >= 0 && write(fd, header, strlen(header)) < 0) {
		close(fd);
		return -1;
	}
	for (size_t at = 0; fd >= 0 && at < (size_t)mib << 20; at += sizeof(line)) {
		for (size_t i = 0; i < sizeof(line); i++) /* only 16 letters, so that compression can halve the text */
			line[i] = (char)('a' + loom__random(&state) % 16);
		if (write(fd, line, sizeof(line)) != (ssize_t)sizeof(line)) {
			close(fd);
			return -1;
		}
	}
	if (fd >= 0)
		lseek(fd, 0, SEEK_SET);
	return fd;
}

/* ---- built in --------------------------------------------------------------------------------------- */

#define MOST	 256u
#define WORDS	 (4u << 20) /* words of 8 bytes per thread: more than the thread's share of any cache */
#define STEPS	 2000 /* steps of work between two barriers: some microseconds */

struct built_in {
	uint32_t threads;
	enum request_built_in kind;
	uint64_t until;
	/* only for @barrier */
	uint32_t waiting, round;
	struct built_in_thread {
		struct built_in *of;
		uint32_t number;
		uint64_t done, *word;
		pthread_t id;
	} thread[MOST];
};

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

/* Loads the thread's words in an order that no prefetcher predicts, so that each step takes the time of a cache
 * miss. */
static void walk(struct built_in_thread *t)
{
	uint64_t at = t->number;
	while (now_ns() < t->of->until) {
		for (int i = 0; i < 1000; i++)
			at = (t->word[at % WORDS] + at * 6364136223846793005u + 1442695040888963407u) >> 16;
		t->done++;
	}
	t->word[0] = at;
}

/* Runs rounds that end with a barrier. Each round lasts as long as its slowest thread, so a core that serves requests
 * delays all threads. The last thread to arrive decides for all threads whether this was the last round. So no thread
 * waits for one that has left. */
static void rounds(struct built_in_thread *t)
{
	struct built_in *v = t->of;
	volatile uint64_t x = t->number;
	for (int over = 0; !over;) {
		for (int i = 0; i < STEPS; i++)
			x = x * 6364136223846793005u + 1442695040888963407u;
		uint32_t round = __atomic_load_n(&v->round, __ATOMIC_RELAXED);
		/* Acquire and release: pairs with the additions of the other threads. Only the last thread to arrive
		 * checks `until`. */
		if (__atomic_add_fetch(&v->waiting, 1, __ATOMIC_ACQ_REL) == v->threads) {
			__atomic_store_n(&v->waiting, 0, __ATOMIC_RELAXED);
			t->done++;
			/* The highest bit says that this was the last round. Release: pairs with the acquire below. */
			__atomic_store_n(&v->round, (round + 1) | (now_ns() >= v->until ? 1u << 31 : 0),
					 __ATOMIC_RELEASE);
		} else {
			while (__atomic_load_n(&v->round, __ATOMIC_ACQUIRE) == round)
				sched_yield();
		}
		over = (int)(__atomic_load_n(&v->round, __ATOMIC_RELAXED) >> 31);
	}
}

static void *work(void *arg)
{
	struct built_in_thread *t = arg;
	if (t->of->kind == REQUEST_MEMORY)
		walk(t);
	else
		rounds(t);
	return NULL;
}

/* Runs in the child process. Returns 0 or an errno. If a thread cannot be created, the victim ends, because its speed
 * would have no meaning. */
int request_victim_run_built_in(const struct request_victim *v, double *rate)
{
	static struct built_in b;
	uint64_t begin, done = 0;
	b = (struct built_in){.threads = v->cores < MOST ? v->cores : MOST, .kind = v->built_in};
	for (uint32_t i = 0; i < b.threads; i++) {
		struct built_in_thread *t = &b.thread[i];
		t->of = &b;
		t->number = i;
		if (b.kind == REQUEST_MEMORY) {
			t->word = malloc(WORDS * sizeof(*t->word));
			if (!t->word)
				return ENOMEM;
			for (uint64_t w = 0; w < WORDS; w++)
				t->word[w] = loom__mix64(w);
		}
	}
	begin = now_ns();
	b.until = begin + v->built_in_ns;
	for (uint32_t i = 1; i < b.threads; i++) {
		int code = thread_create(&b.thread[i].id, work, &b.thread[i]);
		if (code)
			return code;
	}
	work(&b.thread[0]);
	for (uint32_t i = 1; i < b.threads; i++)
		pthread_join(b.thread[i].id, NULL);
	for (uint32_t i = 0; i < b.threads; i++) {
		done += b.thread[i].done;
		free(b.thread[i].word);
	}
	*rate = (double)done / ((double)(now_ns() - begin) / SECOND);
	return 0;
}
