/* SPDX-License-Identifier: Apache-2.0 */
/* The listener of the hub. A port scanner, a web browser or a rank of another job may also connect. The listener closes
 * connections that do not send the token of the job. No connection can block the hub. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ranks/boot.h"

#define STRANGER_NS 5000000000ull /* time limit for the first frame */
#define CROWDED_NS 1000000000ull  /* if all slots are used, a new connection replaces one of at least this age */

static void refuse(struct loom__listener *d, struct loom__pending *s, const char *why)
{
	d->refused++;
	/* cannot block, because the text fits into the buffer of a new connection */
	(void)loom__link_tell(&s->link, LOOM__FRAME_END, why);
	loom__link_close(&s->link);
}

/* Answers the first frame of a connection. The token is checked first: without it, the reply reveals nothing about the
 * job. */
static void greet(struct loom__listener *d, struct loom__pending *s, const struct loom__frame *f,
		  loom__listener_join *join, void *arg)
{
	struct loom__hello hello;
	char why[200];
	memcpy(&hello, f->body, sizeof(hello));
	if (!loom__token_is(hello.token, d->token)) {
		refuse(d, s,
		       "its token is not that of the job: give all ranks the same GPULOOM_TOKEN_FILE or GPULOOM_TOKEN");
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

static void hear(struct loom__listener *d, struct loom__pending *s, loom__listener_join *join, void *arg)
{
	struct loom__frame f;
	int rc = loom__link_read(&s->link, &f);
	if (rc < 0)
		loom__link_close(&s->link);
	else if (rc)
		greet(d, s, &f, join, arg);
}

/* Returns the index of the slot for the next connection: a free slot or, if there is none, the slot of the oldest
 * pending connection. Returns LOOM__LISTENER_PENDING if the oldest connection is too new to be replaced. */
static uint32_t find_place(const struct loom__listener *d, uint64_t now)
{
	uint32_t oldest = 0;
	for (uint32_t i = 0; i < LOOM__LISTENER_PENDING; i++) {
		if (d->pending[i].link.fd < 0)
			return i;
		oldest = d->pending[i].since < d->pending[oldest].since ? i : oldest;
	}
	return now - d->pending[oldest].since < CROWDED_NS ? LOOM__LISTENER_PENDING : oldest;
}

void loom__listener_prepare(const struct loom__listener *d, uint64_t now, struct pollfd on[LOOM__LISTENER_FDS])
{
	uint32_t listeners = find_place(d, now) < LOOM__LISTENER_PENDING ? d->listeners : 0;
	for (uint32_t i = 0; i < LOOM__LISTENER_SOCKETS; i++)
		on[i] = (struct pollfd){.fd = i < listeners ? d->listener[i] : -1, .events = POLLIN};
	for (uint32_t i = 0; i < LOOM__LISTENER_PENDING; i++)
		on[LOOM__LISTENER_SOCKETS + i] =
		    (struct pollfd){.fd = d->listeners ? d->pending[i].link.fd : -1, .events = POLLIN};
}

static void let_in(struct loom__listener *d, int listener, uint64_t now, loom__listener_join *join, void *arg)
{
	uint32_t place = find_place(d, now);
	int fd = place < LOOM__LISTENER_PENDING ? accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK) : -1;
	struct loom__pending *s = &d->pending[place];
	if (fd < 0)
		return;
	loom__link_close(&s->link);
	s->link = (struct loom__link){.fd = fd, .in = {.kinds = LOOM__FRAME_BIT(LOOM__FRAME_HELLO)}};
	s->since = now;
	hear(d, s, join, arg); /* a rank sends its first frame immediately */
}

void loom__listener_serve(struct loom__listener *d, const struct pollfd on[LOOM__LISTENER_FDS], uint64_t now,
			  loom__listener_join *join, void *arg)
{
	for (uint32_t i = 0; i < LOOM__LISTENER_PENDING && d->listeners; i++) {
		struct loom__pending *s = &d->pending[i];
		if (s->link.fd >= 0 && on[LOOM__LISTENER_SOCKETS + i].revents)
			hear(d, s, join, arg);
		if (s->link.fd >= 0 && now - s->since > STRANGER_NS)
			loom__link_close(&s->link);
	}
	for (uint32_t i = 0; i < d->listeners; i++)
		if (on[i].revents)
			let_in(d, d->listener[i], now, join, arg);
}

void loom__listener_close(struct loom__listener *d)
{
	for (uint32_t i = 0; i < d->listeners; i++)
		close(d->listener[i]);
	for (uint32_t i = 0; i < LOOM__LISTENER_PENDING && d->listeners; i++)
		loom__link_close(&d->pending[i].link);
	d->listeners = 0;
}
