/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a rank whose launcher has ended: the hub, or the daemon of a launcher with PMIx. */
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "ranks/boot.h"

/* Uses write(), so that the line is whole beside those of other ranks. */
void loom__boot_say_lost(uint32_t rank)
{
	static int said;
	char line[120];
	int n = snprintf(line, sizeof(line), "gpuloom: error: rank %u ends: the launcher of the job has ended\n", rank);
	if (!__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED)) /* Relaxed: the word publishes no other data */
		(void)!write(STDERR_FILENO, line, (size_t)n);
}

void loom__boot_lost(uint32_t rank)
{
	loom__boot_say_lost(rank);
	/* The first SIGTERM ends the rank after its sample, the second SIGTERM ends it at once. */
	for (int i = 0; i < 2; i++) {
		nanosleep(&(struct timespec){.tv_nsec = 500000000}, NULL);
		kill(getpid(), SIGTERM);
	}
	sleep(2);
	_exit(1);
}
