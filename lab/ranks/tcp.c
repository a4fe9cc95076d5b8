/* SPDX-License-Identifier: Apache-2.0 */
/* Connects ranks of several hosts to rank 0. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "ranks/boot.h"

#define CONNECT_NS 30000000000ull
#define ONE_MS 5000 /* time limit per address, in ms */
#define BACKLOG 128

void loom__tcp_keep(int fd)
{
	int one = 1, idle = LOOM__TCP_SECONDS / 2, every = LOOM__TCP_SECONDS / 4, probes = 2;
	unsigned unanswered = LOOM__TCP_SECONDS * 1000;
	/* Failures are ignored: without these options, a lost peer is only detected later. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof(every));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unanswered, sizeof(unanswered));
}

static int resolve(const struct loom__root *root, int flags, struct addrinfo **list, struct loom_error *err)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = flags | AI_NUMERICSERV};
	int failed = getaddrinfo(root->host, root->port, &hints, list);
	return failed ? LOOM__FAIL(err, LOOM_EINVAL, "GPULOOM_ROOT=%s: %s", root->text, gai_strerror(failed)) : 0;
}

/* ---- rank 0 ------------------------------------------------------------------------------------------ */

static int listen_at(const struct addrinfo *a)
{
	int one = 1, fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), number;
	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (a->ai_family == AF_INET6) /* the list also contains the IPv4 addresses */
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
	if (!bind(fd, a->ai_addr, a->ai_addrlen) && !listen(fd, BACKLOG))
		return fd;
	number = errno;
	close(fd);
	errno = number;
	return -1;
}

int loom__tcp_listen(const struct loom__root *root, struct loom__listener *listener, struct loom_error *err)
{
	struct addrinfo *list;
	int failed = 0, rc = resolve(root, AI_PASSIVE, &list, err);
	if (rc)
		return rc;
	/* Ranks may connect to any address of the host. So it is an error if another job uses this port on any address
	 * of the host. */
	for (const struct addrinfo *a = list; a && listener->listeners < LOOM__LISTENER_SOCKETS && failed != EADDRINUSE;
	     a = a->ai_next) {
		int fd = listen_at(a);
		if (fd >= 0)
			listener->listener[listener->listeners++] = fd;
		else
			failed = errno;
	}
	freeaddrinfo(list);
	if (listener->listeners && failed != EADDRINUSE)
		return 0;
	loom__listener_close(listener);
	return LOOM__FAIL(err, LOOM_EUNAVAIL, "cannot listen at GPULOOM_ROOT=%s: %s%s", root->text, strerror(failed),
			  failed == EADDRINUSE
			      ? ": another job or program has this port; choose another one for all ranks"
			  : failed == EADDRNOTAVAIL ? ": start rank 0 on the host that GPULOOM_ROOT names"
						    : "");
}

/* ---- ranks of other hosts --------------------------------------------------------------------- */

/* Returns 1 when fd is ready, 0 at the time `until`, -1 after a signal. */
static int await(int fd, short what, uint64_t until)
{
	uint64_t now = loom__now_ns();
	struct pollfd on = {.fd = fd, .events = what};
	int n = now < until ? poll(&on, 1, (int)((until - now) / 1000000 + 1)) : 0;
	return n < 0 && errno == EINTR ? -1 : n > 0;
}

/* Waits for the hub's answer to HELLO. Returns 0 or a negative error. LOOM_EAGAIN, with an errno, means that the caller
 * may try the next address, or later this address a second time. */
static int await_welcome(struct loom__link *l, const struct loom__boot_plan *plan, uint64_t until,
			 struct loom_error *err)
{
	struct loom__frame f;
	int rc = 0, ready = 1;
	while (!rc && (ready = await(l->fd, POLLIN, until)) > 0)
		rc = loom__link_read(l, &f);
	if (rc == 1 && f.head.kind == LOOM__FRAME_WELCOME)
		return 0;
	if (rc == 1)
		return LOOM__FAIL(err, LOOM_EUNAVAIL, "rank %u is rejected at GPULOOM_ROOT=%s: %s", plan->rank,
				  plan->root.text, f.body);
	if (!ready)
		errno = ETIMEDOUT;
	return ready < 0 ? LOOM_EINTR : LOOM_EAGAIN;
}

static int connect_to(const struct addrinfo *a, const struct loom__boot_plan *plan, uint64_t until, int *out,
		      struct loom_error *err)
{
	struct loom__hello hello = {.ranks = plan->ranks, .version = LOOM__HELLO_VERSION};
	struct loom__link l = {
	    .in = {.kinds = LOOM__FRAME_BIT(LOOM__FRAME_WELCOME) | LOOM__FRAME_BIT(LOOM__FRAME_END)}};
	uint64_t soon = loom__now_ns() + ONE_MS * 1000000ull;
	int failed = 0, rc = LOOM_EAGAIN, ready = 1;
	socklen_t size = sizeof(failed);
	memcpy(hello.token, plan->token, sizeof(hello.token));
	l.fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l.fd >= 0 && connect(l.fd, a->ai_addr, a->ai_addrlen)) {
		failed = errno;
		if (failed == EINPROGRESS && (ready = await(l.fd, POLLOUT, soon < until ? soon : until)) > 0)
			getsockopt(l.fd, SOL_SOCKET, SO_ERROR, &failed, &size);
		failed = failed == EINPROGRESS ? ETIMEDOUT : failed;
	}
	if (l.fd >= 0 && !failed && !loom__frame_send(l.fd, LOOM__FRAME_HELLO, plan->rank, &hello, sizeof(hello)))
		rc = await_welcome(&l, plan, until, err);
	failed = failed ? failed : errno;
	if (!rc) {
		*out = l.fd;
		l.fd = -1;
		(void)fcntl(*out, F_SETFL, 0); /* blocking from here on: a rank has nothing else to do */
		loom__tcp_keep(*out);
	}
	loom__link_close(&l);
	errno = failed;
	return ready < 0 ? LOOM_EINTR : rc;
}

int loom__tcp_connect(const struct loom__boot_plan *plan, struct loom_error *err)
{
	struct addrinfo *list;
	uint64_t until = loom__now_ns() + CONNECT_NS;
	int fd = -1, failed = 0, rc = resolve(&plan->root, 0, &list, err);
	if (rc)
		return rc;
	do { /* repeats, because rank 0 may start later */
		rc = LOOM_EAGAIN;
		for (const struct addrinfo *a = list; a && rc == LOOM_EAGAIN; a = a->ai_next) {
			rc = connect_to(a, plan, until, &fd, err);
			failed = errno;
		}
	} while (rc == LOOM_EAGAIN && loom__now_ns() < until &&
		 (!nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL) || (rc = LOOM_EINTR, 0)));
	freeaddrinfo(list);
	if (!rc)
		return fd;
	if (rc == LOOM_EINTR)
		return LOOM__FAIL(err, rc, "stopped before rank 0 answered at GPULOOM_ROOT=%s", plan->root.text);
	return rc != LOOM_EAGAIN ? rc
				 : LOOM__FAIL(err, LOOM_EUNAVAIL,
					      "rank 0 does not answer at GPULOOM_ROOT=%s: %s. It must be running, and "
					      "its job must not be complete "
					      "without this rank",
					      plan->root.text, strerror(failed));
}
