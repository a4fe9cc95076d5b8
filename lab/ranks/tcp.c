/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "ranks/boot.h"

static int write_all(int fd, const void *from, uint64_t bytes)
{
	const char *at = from;
	while (bytes) {
		ssize_t n = send(fd, at, bytes, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		at += n;
		bytes -= (uint64_t)n;
	}
	return 0;
}

int loom__read_all(int fd, void *to, uint64_t bytes)
{
	char *at = to;
	while (bytes) {
		ssize_t n = recv(fd, at, bytes, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0)
			errno = ECONNRESET;
		if (n <= 0)
			return -1;
		at += n;
		bytes -= (uint64_t)n;
	}
	return 0;
}

int loom__frame_send(int fd, uint32_t kind, uint32_t value, const void *data, uint64_t bytes)
{
	struct loom__frame_head f = {.kind = kind, .value = value, .bytes = bytes};
	return write_all(fd, &f, sizeof(f)) || (bytes && write_all(fd, data, bytes)) ? -1 : 0;
}

static struct addrinfo *resolve(const char *root, int passive, struct loom_error *err, int *code)
{
	char host[256];
	const char *colon = strrchr(root, ':');
	snprintf(host, sizeof(host), "%.*s", (int)(colon - root), root);
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = passive ? AI_PASSIVE : 0}, *list = NULL;
	int failed = getaddrinfo(*host ? host : NULL, colon + 1, &hints, &list);
	*code = failed ? LOOM__FAIL(err, LOOM_EINVAL, "GPULOOM_ROOT=%s: %s", root, gai_strerror(failed)) : 0;
	return failed ? NULL : list;
}

int loom__tcp_listen(const char *root, struct loom_error *err)
{
	int code, one = 1;
	struct addrinfo *a = resolve(root, 1, err, &code);
	if (!a)
		return code;
	int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (fd < 0 || bind(fd, a->ai_addr, a->ai_addrlen) || listen(fd, 128)) {
		code = LOOM__FAIL(err, LOOM_EUNAVAIL, "cannot listen at GPULOOM_ROOT=%s: %s", root, strerror(errno));
		if (fd >= 0)
			close(fd);
	}
	freeaddrinfo(a);
	return code ? code : fd;
}

#define CONNECT_NS 30000000000ull

int loom__tcp_connect(const char *root, uint32_t rank, struct loom_error *err)
{
	int code, failed = 0;
	struct addrinfo *a = resolve(root, 0, err, &code);
	uint64_t until = loom__now_ns() + CONNECT_NS;
	if (!a)
		return code;
	for (;;) { /* rank 0 may be slower than we are */
		int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd >= 0 && !connect(fd, a->ai_addr, a->ai_addrlen) &&
		    !loom__frame_send(fd, LOOM__FRAME_HELLO, rank, NULL, 0)) {
			freeaddrinfo(a);
			return fd;
		}
		failed = errno;
		if (fd >= 0)
			close(fd);
		if (loom__now_ns() > until)
			break;
		nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
	}
	freeaddrinfo(a);
	return LOOM__FAIL(err, LOOM_EUNAVAIL, "rank 0 does not answer at GPULOOM_ROOT=%s: %s", root,
			  strerror(failed));
}
