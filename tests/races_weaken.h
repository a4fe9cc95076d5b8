/* SPDX-License-Identifier: Apache-2.0 */
/* Weakens the memory orders of device code that was compiled with races.h, one at a time, in a child process. */
#ifndef LOOM_TEST_RACES_WEAKEN_H
#define LOOM_TEST_RACES_WEAKEN_H

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "races.h"
#include "support.h"

/* An order that the schedules do not show to be necessary. bit: RACE_ACQUIRE, RACE_RELEASE or RACE_SC. */
struct races_known {
	const char *function, *what;
	int bit;
	enum { RACES_SUPERFLUOUS, RACES_OPEN, RACES_UNREACHED } reason; /* docs/races.md explains the reasons */
};

static uint64_t *races_schedules; /* number of schedules, also of children */

static const struct races_known *races_find(const struct races_known *known, size_t n, const struct race_site *s,
					    int bit)
{
	for (; n; n--, known++)
		if (!strcmp(known->function, s->function) && !strcmp(known->what, s->what) && known->bit == bit)
			return known;
	return NULL;
}

/* Returns whether both are the same place in the source. A file that several objects contain has several sites there.
 */
static int races_same(const struct race_site *a, const struct race_site *b)
{
	return a->line == b->line && !strcmp(a->what, b->what) && !strcmp(a->file, b->file);
}

/* Returns whether an earlier site is at the same place. */
static int races_repeats(const struct race_site *s)
{
	struct race_site *const *at = __start_race_sites;
	while (!races_same(*at, s))
		at++;
	return *at != s;
}

/* Returns 1 if a child finds a fault after it has taken away the bit. explore() exits with status 1 if it finds one. */
static int races_notices(const struct race_site *s, int bit, void (*explore)(void))
{
	int status = 0;
	pid_t child = fork();
	if (!child) {
		const struct rlimit seconds = {120, 120}; /* of processor time: then nothing was noticed */
		setrlimit(RLIMIT_CPU, &seconds);
		for (struct race_site *const *at = __start_race_sites; at < __stop_race_sites; at++)
			(*at)->dropped = races_same(*at, s) ? (uint8_t)bit : 0;
		explore();
		_exit(0);
	}
	waitpid(child, &status, 0);
	return WIFSIGNALED(status) ? WTERMSIG(status) != SIGXCPU && WTERMSIG(status) != SIGKILL : status != 0;
}

/* `make check` sets CHECK to nothing, and has time for some of the orders. `make check-rest` takes all, and so does the
 * program when it is started by hand. */
static int races_skips(uint32_t order)
{
	const char *check = getenv("CHECK");
	return check && !*check && order % 5;
}

/* Expects each order of the device code to be necessary, except for the known ones. With
 * RACES_SITES=TEXT, tries only the orders of files with this text in their names, but also known ones, and prints a
 * line for each. */
static void races_weaken(const struct races_known *known, size_t n, void (*explore)(void))
{
	uint32_t orders = 0, found = 0, listed = 0;
	const char *all = getenv("RACES_SITES");
	for (struct race_site *const *at = __start_race_sites; at < __stop_race_sites; at++)
		for (int bit = RACE_ACQUIRE; bit <= RACE_SC; bit <<= 1) {
			const struct race_site *s = *at;
			if (!(s->order & bit) || races_repeats(s) ||
			    (!strstr(s->file, ".dev.h") && !strstr(s->file, "/dev/collective.h") &&
			     !strstr(s->file, "/dev/after.h")) ||
			    (all && !strstr(s->file, all)))
				continue;
			const struct races_known *k = races_find(known, n, s, bit);
			const char *file = strrchr(s->file, '/') + 1, *name = bit == RACE_ACQUIRE   ? "acquire"
									      : bit == RACE_RELEASE ? "release"
												    : "seq_cst";
			if (races_skips(orders++))
				continue;
			listed += k != NULL;
			*races_schedules = 0;
			int noticed = (!k || all) && races_notices(s, bit, explore);
			found += noticed && !k;
			if (all)
				printf("%s:%u %s: %s without %s: %s, %llu schedules%s\n", file, s->line, s->function,
				       s->what, name, noticed ? "noticed" : "not noticed",
				       (unsigned long long)*races_schedules, k ? ", known" : "");
			fflush(stdout);
			CU_ASSERT(noticed || k);
			if (!noticed && !k)
				fprintf(stderr, "%s:%u: %s(): the %s without %s was not noticed\n", file, s->line,
					s->function, s->what, name);
		}
	printf("%u orders: %u noticed, %u known\n", orders, found, listed);
}

/* Sets race_site.blind: the call is a statement of its own. */
static void races_read_source(struct race_site *s)
{
	char line[300] = "", before[300] = "";
	uint32_t n = 0;
	FILE *f = strncmp(s->what, "fetch_add", 9) ? NULL : fopen(s->file, "re");
	while (f && n < s->line && strcpy(before, line) && fgets(line, sizeof(line), f))
		n++;
	if (!f || fclose(f) || n < s->line)
		return;
	const char *text = line + strspn(line, "\t ");
	before[strcspn(before, "\n")] = 0;
	size_t length = strlen(before);
	s->blind = (!strncmp(text, "loom_fetch_add", 14) || !strncmp(text, "LOOM_JOB(loom_fetch_add", 23) ||
		    !strncmp(text, "MGWS_QUEUE_OP(loom_fetch_add", 28)) &&
		   length && strchr(";{}/)e", before[length - 1]); /* e: else */
}

__attribute__((constructor)) static void races_open(void)
{
	for (struct race_site *const *at = __start_race_sites; at < __stop_race_sites; at++)
		races_read_source(*at);
	races_schedules =
	    mmap(NULL, sizeof(*races_schedules), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

static uint64_t races_wrong; /* number of wrong results of a schedule */
static __attribute__((unused)) void wrong(int is)
{
	if (is)
		__atomic_fetch_add(&races_wrong, 1, __ATOMIC_RELAXED);
}

/* Runs one schedule. Returns NULL, or the fault in words. */
static const char *races_run(uint32_t n, const uint8_t *device, void (*body)(uint32_t), uint64_t seed, uint64_t length)
{
	const char *text;
	races_wrong = 0;
	race_begin(n, device, loom__explore_now, seed, 1);
	int stuck = loom__explore(n, body, seed & 1 ? LOOM__EXPLORE_PCT : LOOM__EXPLORE_RANDOM, seed, length, 400000);
	uint64_t races = race_end(&text);
	++*races_schedules;
	return races ? text : stuck ? "stuck" : races_wrong ? "a wrong result" : NULL;
}

#endif
