/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ranks/boot.h"

#define TURN (1u << 20) /* number of bytes that one connection may transfer before the next connection is served */

/* ---- without blocking ------------------------------------------------------------------------------ */

/* Makes room for the body of the frame whose head has arrived. */
static int begin_body(struct loom__link *l)
{
	uint64_t most = l->in.kind == LOOM__FRAME_GIVE ? LOOM__GIVE_MOST : LOOM__TEXT_MOST;
	if ((l->in.kind != LOOM__FRAME_GIVE && l->in.kind != LOOM__FRAME_DONE) || l->in.bytes > most) {
		errno = EPROTO;
		return -1;
	}
	free(l->in_body);
	l->in_body = malloc(l->in.bytes + 1);
	return l->in_body ? 0 : -1;
}

int loom__link_read(struct loom__link *l)
{
	const size_t head = sizeof(l->in);
	for (size_t turn = 0; turn < TURN;) {
		char *to = l->have < head ? (char *)&l->in + l->have : l->in_body + (l->have - head);
		uint64_t end = l->have < head ? head : head + l->in.bytes;
		ssize_t n = recv(l->fd, to, end - l->have, MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -1;
		if (!n) {
			errno = ECONNRESET;
			return -1;
		}
		turn += (size_t)n;
		l->have += (uint64_t)n;
		if (l->have == head && begin_body(l))
			return -1;
		if (l->have >= head && l->have == head + l->in.bytes) {
			l->in_body[l->in.bytes] = 0;
			l->have = 0;
			return 1;
		}
	}
	return 0;
}

int loom__link_flush(struct loom__link *l)
{
	while (l->sent < l->out) {
		size_t of_head = l->sent < sizeof(l->head) ? (size_t)l->sent : sizeof(l->head);
		struct iovec part[] = {
		    {(char *)&l->head + of_head, sizeof(l->head) - of_head},
		    {(char *)(uintptr_t)l->body + (l->sent - of_head), l->out - sizeof(l->head) - (l->sent - of_head)}};
		struct msghdr m = {.msg_iov = part, .msg_iovlen = part[1].iov_len ? 2 : 1};
		ssize_t n = sendmsg(l->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN || errno == EWOULDBLOCK ? 1 : -1;
		l->sent += (uint64_t)n;
	}
	l->sent = l->out = 0;
	l->body = NULL;
	return 0;
}

int loom__link_give(struct loom__link *l, uint32_t kind, const void *body, uint64_t bytes)
{
	l->head = (struct loom__frame_head){.kind = kind, .bytes = bytes};
	l->body = bytes ? body : ""; /* never NULL, which allows pointer arithmetic */
	l->out = sizeof(l->head) + bytes;
	l->sent = 0;
	return loom__link_flush(l);
}

int loom__link_tell(struct loom__link *l, uint32_t kind, const char *text)
{
	size_t length = strnlen(text, LOOM__TEXT_MOST);
	memcpy(l->text, text, length);
	return loom__link_give(l, kind, l->text, length);
}

void loom__link_close(struct loom__link *l)
{
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
	l->out = l->sent = l->have = 0;
	free(l->in_body);
	l->in_body = NULL;
}

/* ---- blocking -------------------------------------------------------------------------------------- */

static int send_all(int fd, const void *from, uint64_t bytes)
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

int loom__frame_send(int fd, uint32_t kind, uint32_t value, const void *data, uint64_t bytes)
{
	struct loom__frame_head f = {.kind = kind, .value = value, .bytes = bytes};
	return send_all(fd, &f, sizeof(f)) || (bytes && send_all(fd, data, bytes)) ? -1 : 0;
}
