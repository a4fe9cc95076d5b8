/* SPDX-License-Identifier: Apache-2.0 */
/* Emulates a slow cable that loses frames, for kernels without netem. This process moves the frames between two TAP
 * devices.
 *   netns_wire NEAR FAR NETNS DELAY_US LOST_OF_1000
 * The program creates the device FAR in the network namespace NETNS. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define FRAMES 4096u /* maximum frames in transit in one direction; further frames are lost, as in a switch */
#define BYTES 2048u

struct frame {
	uint64_t due_ns;
	ssize_t bytes;
	char at[BYTES];
};
struct direction {
	int from, to;
	uint64_t head, tail;
	struct frame *frame; /* an array of FRAMES frames */
};

static void must(const char *what, long rc)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static int tap(const char *name)
{
	int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	must("/dev/net/tun", fd);
	struct ifreq r = {.ifr_flags = IFF_TAP | IFF_NO_PI};
	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", name);
	must(name, ioctl(fd, TUNSETIFF, &r));
	return fd;
}

static uint64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int lost(unsigned of_1000)
{
	static uint64_t x = 88172645463325252ull;
	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return (x >> 20) % 1000 < of_1000;
}

static void take(struct direction *d, uint64_t delay_ns, unsigned of_1000)
{
	for (;;) {
		struct frame spill, *f = d->head - d->tail < FRAMES ? &d->frame[d->head % FRAMES] : &spill;
		f->bytes = read(d->from, f->at, BYTES);
		if (f->bytes <= 0)
			return;
		f->due_ns = now() + delay_ns;
		if (f != &spill && !lost(of_1000))
			d->head++;
	}
}

static void give(struct direction *d)
{
	for (uint64_t time = now(); d->tail != d->head && d->frame[d->tail % FRAMES].due_ns <= time; d->tail++)
		if (write(d->to, d->frame[d->tail % FRAMES].at, (size_t)d->frame[d->tail % FRAMES].bytes) < 0)
			continue; /* the other end is down or full, so the frame is lost */
}

int main(int argc, char **argv)
{
	if (argc != 6)
		return 2;
	int inner = tap(argv[1]), netns = open(argv[3], O_RDONLY | O_CLOEXEC);
	must(argv[3], netns);
	must("setns", setns(netns, CLONE_NEWNET));
	int outer = tap(argv[2]);
	struct direction d[2] = {{.from = inner, .to = outer}, {.from = outer, .to = inner}};
	for (int i = 0; i < 2; i++)
		if (!(d[i].frame = malloc(FRAMES * sizeof(struct frame))))
			return 1;
	puts("ready");
	fflush(stdout);
	for (;;) {
		struct pollfd fds[2] = {{.fd = inner, .events = POLLIN}, {.fd = outer, .events = POLLIN}};
		int waits = d[0].head != d[0].tail || d[1].head != d[1].tail;
		poll(fds, 2, waits ? 1 : 1000);
		for (int i = 0; i < 2; i++) {
			take(&d[i], strtoull(argv[4], NULL, 10) * 1000, (unsigned)atoi(argv[5]));
			give(&d[i]);
		}
	}
}
