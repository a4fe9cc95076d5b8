/* SPDX-License-Identifier: Apache-2.0 */
/* The hub: passes exchanges on, and sees to it that no rank outlives the others for long. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inspect/child.h"
#include "ranks/boot.h"

#define LOOK_MS 50
/* After a rank has failed the others are asked to stop, then told, then made to. */
#define ASK_NS 200000000ull
#define TELL_NS 700000000ull
#define KILL_NS 1200000000ull /* on a crowded machine what follows takes seconds, and all is to end within 5 */

/* Nobody starts with fewer ranks. The others wait for rank 0 half as long. */
#define JOIN_NS 60000000000ull

struct hub {
	struct loom__member *member;
	uint32_t n;
	int listener;
	loom__boot_say *say;
	void *arg;
	uint64_t begun;
	uint64_t failed_at; /* 0: nobody has */
	int asked;          /* how often the others were asked to stop */
	char reason[300];   /* what those who wait for an exchange are told */
};

int loom__boot_worse(int a, int b)
{
	/* A wrong result says more than what it made others do. */
	static const int order[] = {3, 124, 130, 2, 4, 1, 6, 5};
	for (size_t i = 0; i < LOOM__COUNT(order); i++)
		if (a == order[i] || b == order[i])
			return order[i];
	return a ? a : b;
}

static void fail(struct hub *h, uint32_t rank, const char *what)
{
	snprintf(h->reason, sizeof(h->reason), "rank %u %s", rank, what);
	if (!h->failed_at)
		h->failed_at = loom__now_ns();
}

/* `first`: it had no part in what failed before, if anything did. */
static void gone(struct hub *h, uint32_t rank, int first, const char *what)
{
	struct loom__member *m = &h->member[rank];
	if (m->ended)
		return;
	m->ended = 1;
	m->died = first;
	m->status = 1;
	if (first) {
		char text[400];
		snprintf(text, sizeof(text), "rank %u%s", rank, what);
		h->say(h->arg, text);
	}
	fail(h, rank, "died");
}

/* Those that follow a failure may be of our own making. */
static void died(struct hub *h, uint32_t rank, const char *what)
{
	gone(h, rank, !h->failed_at, what);
}

static void hang_up(struct loom__member *m)
{
	if (m->fd >= 0)
		close(m->fd);
	m->fd = -1;
}

/* A rank that cannot be told what it waits for is hung up on, which ends its wait. */
static void answer(struct hub *h, uint32_t rank, uint32_t kind, const void *data, uint64_t bytes)
{
	struct loom__member *m = &h->member[rank];
	m->given = 0;
	if (m->fd < 0 || !loom__frame_send(m->fd, kind, 0, data, bytes))
		return;
	char text[200];
	snprintf(text, sizeof(text), "rank %u cannot be answered (%s): the job ends", rank, strerror(errno));
	hang_up(m);
	if (!h->failed_at && !m->ended)
		h->say(h->arg, text);
	fail(h, rank, "cannot be reached");
}

/* A frame of rank r. */
static void take(struct hub *h, uint32_t r)
{
	struct loom__member *m = &h->member[r];
	struct loom__frame_head f;
	if (loom__read_all(m->fd, &f, sizeof(f))) {
		hang_up(m);
		if (!m->pid) /* another host's; how a child died its status tells */
			died(h, r, " lost its connection: the job ends");
		return;
	}
	if (f.kind == LOOM__FRAME_DONE) {
		m->ended = 1;
		m->status = (int)f.value;
		if (f.bytes >= sizeof(m->text) || loom__read_all(m->fd, m->text, f.bytes))
			*m->text = 0;
		if (h->asked && m->status == 130) { /* only did what it was asked to */
			m->status = 0;
			*m->text = 0;
		}
		if (m->status) {
			char what[64];
			snprintf(what, sizeof(what), "ended with status %d", m->status);
			fail(h, r, what);
		}
		return;
	}
	free(m->data);
	m->data = malloc(f.bytes + 1);
	m->bytes = f.bytes;
	if (f.kind != LOOM__FRAME_GIVE || !m->data || loom__read_all(m->fd, m->data, f.bytes)) {
		hang_up(m);
		died(h, r, f.kind == LOOM__FRAME_GIVE && !m->data ? " sent more than there is memory for: the job ends" :
								    " sent what is no message: the job ends");
		return;
	}
	m->given = 1;
}

/* What a rank that was killed left in shared memory: trigger plug-ins call it gpuloom-NAMESPACE-PROCESS-... */
static void sweep(int pid)
{
	struct stat space;
	alignas(struct dirent64) char room[4096]; /* opendir() would need memory */
	int n = 0, d = stat("/proc/self/ns/pid", &space) ? -1 : open("/dev/shm", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	while (d >= 0 && (n = (int)syscall(SYS_getdents64, d, room, sizeof(room))) > 0)
		for (int at = 0; at < n;) {
			const struct dirent64 *e = (const struct dirent64 *)(const void *)(room + at);
			unsigned long long in, of;
			if (sscanf(e->d_name, "gpuloom-%llu-%llu-", &in, &of) == 2 && in == space.st_ino &&
			    of == (unsigned)pid)
				unlinkat(d, e->d_name, 0);
			at += e->d_reclen;
		}
	if (d >= 0)
		close(d);
}

static void reap(struct hub *h)
{
	for (uint32_t r = 0; r < h->n; r++) {
		struct loom__member *m = &h->member[r];
		int status = m->pid > 0 ? loom__child_wait(m->pid, WNOHANG) : LOOM__CHILD_RUNS;
		if (status == LOOM__CHILD_RUNS)
			continue;
		char text[200];
		if (status == LOOM__CHILD_LOST)
			snprintf(text, sizeof(text), " (pid %d) has ended, and how is not known: the job ends", m->pid);
		else if (WIFSIGNALED(status))
			snprintf(text, sizeof(text), " (pid %d) was killed by signal %d (%s): the job ends", m->pid,
				 WTERMSIG(status), strsignal(WTERMSIG(status)));
		else
			snprintf(text, sizeof(text), " (pid %d) ended by itself with status %d: the job ends", m->pid,
				 WEXITSTATUS(status));
		sweep(m->pid);
		m->pid = -1;
		/* What it said last may still be under way. */
		while (m->fd >= 0 && !m->ended && poll(&(struct pollfd){.fd = m->fd, .events = POLLIN}, 1, 0) == 1)
			take(h, r);
		/* Another rank may have noticed first that one was killed, and failed. The hub kills last of all. */
		gone(h, r, !h->failed_at || (status != LOOM__CHILD_LOST && WIFSIGNALED(status) && WTERMSIG(status) != SIGTERM && h->asked < 3), text);
		hang_up(m);
	}
}

static void exchange(struct hub *h)
{
	uint64_t bytes = h->member[0].bytes;
	for (uint32_t r = 0; r < h->n; r++) {
		if (!h->member[r].given)
			return;
		if (h->member[r].bytes != bytes)
			return died(h, r, " is not in step with rank 0: do all run the same conf?");
	}
	char *all = malloc(h->n * bytes + 1);
	if (!all) { /* release() tells them */
		snprintf(h->reason, sizeof(h->reason), "out of memory for an exchange of all ranks");
		h->failed_at = h->failed_at ? h->failed_at : loom__now_ns();
		return;
	}
	for (uint32_t r = 0; r < h->n; r++)
		memcpy(all + r * bytes, h->member[r].data, bytes);
	for (uint32_t r = 0; r < h->n; r++)
		answer(h, r, LOOM__FRAME_ALL, all, h->n * bytes);
	free(all);
}

/* Those who wait for somebody that will never come. */
static void release(struct hub *h)
{
	int some = h->failed_at != 0;
	for (uint32_t r = 0; r < h->n; r++) {
		some |= h->member[r].ended;
		if (h->member[r].ended && !*h->reason)
			snprintf(h->reason, sizeof(h->reason),
				 "rank %u has ended: if it was started by hand, start all with the same conf and the same --samples", r);
	}
	for (uint32_t r = 0; r < h->n && some; r++)
		if (h->member[r].given)
			answer(h, r, LOOM__FRAME_END, h->reason, strlen(h->reason));
}

static void press(struct hub *h)
{
	uint64_t since = loom__now_ns() - h->failed_at;
	int stage = since > KILL_NS ? 3 : since > TELL_NS ? 2 : since > ASK_NS ? 1 : 0;
	for (; h->asked < stage; h->asked++)
		for (uint32_t r = 0; r < h->n; r++) {
			struct loom__member *m = &h->member[r];
			if (m->pid > 0 && (!m->ended || h->asked == 2))
				kill(m->pid, h->asked == 2 ? SIGKILL : SIGTERM);
			else if (!m->pid && !m->ended && h->asked == 2)
				hang_up(m), died(h, r, " does not end");
		}
}

static void welcome(struct hub *h)
{
	struct loom__frame_head f;
	int fd = accept4(h->listener, NULL, NULL, SOCK_CLOEXEC);
	struct timeval limit = {.tv_sec = 2};
	if (fd < 0)
		return;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)); /* a stranger says nothing */
	if (loom__read_all(fd, &f, sizeof(f)) || f.kind != LOOM__FRAME_HELLO || f.value >= h->n ||
	    h->member[f.value].fd >= 0 || h->member[f.value].ended) {
		close(fd);
		return;
	}
	limit.tv_sec = 0;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	h->member[f.value].fd = fd;
}

/* Ranks that are started by hand, and have not come. Nobody waits for them after a signal. */
static void miss(struct hub *h, int stop)
{
	for (uint32_t r = 0; r < h->n && !h->failed_at; r++)
		if (!h->member[r].pid && h->member[r].fd < 0 && (stop || loom__now_ns() - h->begun > JOIN_NS))
			died(h, r, stop ? " has not come, and the job was stopped" :
					  " has not come within 60 s: start it with GPULOOM_RANK and GPULOOM_ROOT of this job");
}

static int over(const struct hub *h)
{
	for (uint32_t r = 0; r < h->n; r++)
		if (!h->member[r].ended || h->member[r].pid > 0)
			return 0;
	return 1;
}

/* A signal that only this process got is meant for all of them. */
static volatile sig_atomic_t to_forward;
static void on_signal(int number, siginfo_t *info, void *context)
{
	(void)context;
	if (info->si_code != SI_KERNEL) /* from a terminal all have it already */
		to_forward = number;
}

/* Why ranks failed: each reason once. Rank 0 has said its own. At the least who failed first, and how. */
static void tell(struct hub *h)
{
	char line[4200];
	int reasons = 0;
	for (uint32_t r = 0; r < h->n; r++)
		reasons += h->member[r].died || *h->member[r].text;
	if (h->failed_at && !reasons)
		h->say(h->arg, h->reason);
	for (uint32_t r = 1; r < h->n; r++) {
		const char *text = h->member[r].text;
		int said = !*text;
		for (uint32_t k = 0; k < r && !said; k++)
			said = !strcmp(h->member[k].text, text);
		if (said)
			continue;
		snprintf(line, sizeof(line), "rank %u: %s", r, text);
		h->say(h->arg, line);
	}
}

int loom__hub_run(struct loom__member *member, struct pollfd *on, uint32_t n, int listener, loom__boot_say *say,
		  void *arg)
{
	struct hub h = {.member = member, .n = n, .listener = listener, .say = say, .arg = arg, .begun = loom__now_ns()};
	struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	while (!over(&h)) {
		for (uint32_t r = 0; r < n; r++)
			on[r] = (struct pollfd){.fd = member[r].fd, .events = POLLIN};
		on[n] = (struct pollfd){.fd = listener, .events = POLLIN};
		if (poll(on, n + 1, LOOK_MS) < 0)
			memset(on, 0, (n + 1) * sizeof(*on));
		for (uint32_t r = 0; r < n; r++)
			if (on[r].revents && member[r].fd >= 0)
				take(&h, r);
		if (on[n].revents)
			welcome(&h);
		reap(&h);
		exchange(&h);
		release(&h);
		if (h.failed_at)
			press(&h);
		int signal_number = to_forward;
		to_forward = 0;
		miss(&h, signal_number != 0);
		for (uint32_t r = 0; signal_number && r < n; r++)
			if (member[r].pid > 0)
				kill(member[r].pid, signal_number);
	}
	int status = 0, dead = 0;
	tell(&h);
	for (uint32_t r = 0; r < n; r++) {
		dead |= member[r].died;
		status = loom__boot_worse(status, member[r].status);
		hang_up(&member[r]);
		free(member[r].data);
	}
	return dead && status != 3 ? 1 : status; /* that others were stopped is its doing */
}
