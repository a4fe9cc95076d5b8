/* SPDX-License-Identifier: Apache-2.0 */
/* The door of the hub. A port scanner, a web browser or a rank of another job may connect: who says nothing, or anything but
 * the job's token, is let go, and nobody waits for it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ranks/boot.h"

#define STRANGER_NS 5000000000ull /* until it has said who it is */
#define CROWDED_NS 1000000000ull  /* until it makes room for the next, where all places are taken */

static void refuse(struct loom__door *d, struct loom__stranger *s, const char *why)
{
	d->refused++;
	(void)loom__link_tell(&s->link, LOOM__FRAME_END, why); /* a new connection has room for it */
	loom__link_close(&s->link);
}

/* The token first: without it nothing of the job is told. */
static void greet(struct loom__door *d, struct loom__stranger *s, const struct loom__frame *f, loom__door_join *join, void *arg)
{
	struct loom__hello hello;
	char why[200];
	memcpy(&hello, f->body, sizeof(hello));
	if (!loom__token_is(hello.token, d->token)) {
		refuse(d, s, "its token is not that of the job: give all ranks the same GPULOOM_TOKEN_FILE or GPULOOM_TOKEN");
	} else if (hello.version != LOOM__HELLO_VERSION) {
		refuse(d, s, "it is another version of gpuloom than rank 0");
	} else if (hello.ranks != d->ranks) {
		snprintf(why, sizeof(why), "its GPULOOM_RANKS is %u, that of rank 0 is %u", hello.ranks, d->ranks);
		refuse(d, s, why);
	} else {
		const char *cannot = join(arg, f->head.value, s->link.fd);
		if (cannot) {
			refuse(d, s, cannot);
		} else {
			s->link.fd = -1;
			loom__link_close(&s->link);
		}
	}
}

static void hear(struct loom__door *d, struct loom__stranger *s, loom__door_join *join, void *arg)
{
	struct loom__frame f;
	int rc = loom__link_read(&s->link, &f);
	if (rc < 0)
		loom__link_close(&s->link);
	else if (rc)
		greet(d, s, &f, join, arg);
}

/* A place for the next one: a free one, or that of who has been silent for long. */
static uint32_t find_place(const struct loom__door *d, uint64_t now)
{
	uint32_t oldest = 0;
	for (uint32_t i = 0; i < LOOM__DOOR_STRANGERS; i++) {
		if (d->stranger[i].link.fd < 0)
			return i;
		oldest = d->stranger[i].since < d->stranger[oldest].since ? i : oldest;
	}
	return now - d->stranger[oldest].since < CROWDED_NS ? LOOM__DOOR_STRANGERS : oldest;
}

void loom__door_wait(const struct loom__door *d, uint64_t now, struct pollfd on[LOOM__DOOR_FDS])
{
	uint32_t listeners = find_place(d, now) < LOOM__DOOR_STRANGERS ? d->listeners : 0;
	for (uint32_t i = 0; i < LOOM__DOOR_LISTENERS; i++)
		on[i] = (struct pollfd){.fd = i < listeners ? d->listener[i] : -1, .events = POLLIN};
	for (uint32_t i = 0; i < LOOM__DOOR_STRANGERS; i++)
		on[LOOM__DOOR_LISTENERS + i] = (struct pollfd){.fd = d->listeners ? d->stranger[i].link.fd : -1, .events = POLLIN};
}

static void let_in(struct loom__door *d, int listener, uint64_t now, loom__door_join *join, void *arg)
{
	uint32_t place = find_place(d, now);
	int fd = place < LOOM__DOOR_STRANGERS ? accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK) : -1;
	struct loom__stranger *s = &d->stranger[place];
	if (fd < 0)
		return;
	loom__link_close(&s->link);
	s->link = (struct loom__link){.fd = fd, .in = {.kinds = LOOM__FRAME_BIT(LOOM__FRAME_HELLO)}};
	s->since = now;
	hear(d, s, join, arg); /* a rank says it at once */
}

void loom__door_serve(struct loom__door *d, const struct pollfd on[LOOM__DOOR_FDS], uint64_t now, loom__door_join *join, void *arg)
{
	for (uint32_t i = 0; i < LOOM__DOOR_STRANGERS && d->listeners; i++) {
		struct loom__stranger *s = &d->stranger[i];
		if (s->link.fd >= 0 && on[LOOM__DOOR_LISTENERS + i].revents)
			hear(d, s, join, arg);
		if (s->link.fd >= 0 && now - s->since > STRANGER_NS)
			loom__link_close(&s->link);
	}
	for (uint32_t i = 0; i < d->listeners; i++)
		if (on[i].revents)
			let_in(d, d->listener[i], now, join, arg);
}

void loom__door_shut(struct loom__door *d)
{
	for (uint32_t i = 0; i < d->listeners; i++)
		close(d->listener[i]);
	for (uint32_t i = 0; i < LOOM__DOOR_STRANGERS && d->listeners; i++)
		loom__link_close(&d->stranger[i].link);
	d->listeners = 0;
}
