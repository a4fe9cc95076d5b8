/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a rank whose launcher has ended: the hub, or the daemon of a launcher with PMIx. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "ranks/boot.h"

/* Uses write(), so that the line is whole beside those of other ranks. A second thread waits until the line is written:
 * the main thread ends the process after this call, and would otherwise end it before watch() has written. */
void loom__boot_say_lost(uint32_t rank)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static int said;
	char line[120];
	int n = snprintf(line, sizeof(line), "gpuloom: error: rank %u ends: the launcher of the job has ended\n", rank);
	pthread_mutex_lock(&lock);
	if (!said)
		(void)!write(STDERR_FILENO, line, (size_t)n);
	said = 1;
	pthread_mutex_unlock(&lock);
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
