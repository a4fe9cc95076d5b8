/* SPDX-License-Identifier: Apache-2.0 */
/* A ring allreduce in SimGrid: N hosts on one switch, each of which sends a chunk to the next host in 2 (N - 1) steps.
 *   ring_simgrid PLATFORM.xml RANKS BYTES
 * prints the simulated seconds and the CPU seconds. */
#include <simgrid/actor.h>
#include <simgrid/comm.h>
#include <simgrid/engine.h>
#include <simgrid/host.h>
#include <simgrid/mailbox.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int ranks;
static double bytes;

static sg_mailbox_t box_of(int rank)
{
	char name[32];
	snprintf(name, sizeof(name), "%d", rank);
	return sg_mailbox_by_name(name);
}

static void rank(int argc, char *argv[])
{
	static int chunk;
	int me = argc > 1 ? atoi(argv[1]) : 0;
	sg_mailbox_t own = box_of(me), next = box_of((me + 1) % ranks);
	for (int step = 0; step < 2 * (ranks - 1); step++) {
		sg_comm_t sent = sg_mailbox_put_async(next, &chunk, (uint64_t)bytes);
		(void)sg_mailbox_get(own);
		sg_comm_wait(sent);
	}
}

int main(int argc, char *argv[])
{
	struct timespec begin, end;
	simgrid_init(&argc, argv);
	if (argc != 4)
		return 2;
	ranks = atoi(argv[2]);
	bytes = atof(argv[3]);
	simgrid_load_platform(argv[1]);
	for (int r = 0; r < ranks; r++) {
		char host[32], number[32];
		snprintf(host, sizeof(host), "h%d", r);
		snprintf(number, sizeof(number), "%d", r);
		char *args[] = {"rank", number, NULL};
		sg_actor_create(number, sg_host_by_name(host), rank, 2, (char *const *)args);
	}
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
	simgrid_run();
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	printf("%.9g %.6g\n", simgrid_get_clock(),
	       (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9);
	return 0;
}
