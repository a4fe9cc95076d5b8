/* SPDX-License-Identifier: Apache-2.0 */
/* The hub forwards exchanges between ranks. When one rank has ended, the hub soon ends the other ranks, too. */
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

#include "lib/child.h"
#include "ranks/boot.h"

#define LOOK_MS 50
/* After a failure, the hub sends SIGTERM to the remaining ranks after the first two of these times, and SIGKILL after
 * the third. */
#define ASK_NS  200000000ull
#define TELL_NS 700000000ull
#define KILL_NS 1200000000ull /* an overloaded machine needs seconds for the end, and all ranks must end within 5 s */

struct hub {
	struct loom__member *member;
	uint32_t n;
	loom__boot_say *say;
	void *arg;
	uint64_t failed_at; /* time at which the first rank failed; 0: none has */
	uint32_t turn;      /* number of exchanges so far */
	int asked;          /* number of signals that press() has sent to each rank, 0..3 */
	int stops;          /* number of signals that the hub has received */
	int stopped;        /* 1: a signal ends the job */
	int forced;         /* 1: a rank was killed by SIGKILL after the signal */
	char *all;          /* the data of the last exchange, which may not be fully sent yet */
	char reason[300];   /* the reason that ranks in an exchange receive */
};

int loom__boot_worse(int a, int b)
{
	/* The first status of this list wins. A failed verification (3) comes first, because it causes failures in
	 * other ranks. */
	static const int order[] = {3, 124, 130, 2, 4, 1, 6, 5};
	for (size_t i = 0; i < LOOM__COUNT(order); i++)
		if (a == order[i] || b == order[i])
			return order[i];
	return a ? a : b;
}

static void fail(struct hub *h, uint32_t rank, const char *what)
{
	if (h->failed_at)
		return; /* the first failure may have caused this one */
	snprintf(h->reason, sizeof(h->reason), "rank %u %s", rank, what);
	h->failed_at = loom__now_ns();
}

/* Records that a rank has ended without DONE. `first` is 1 if no earlier failure can have caused this failure. */
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

/* If another rank has failed before, the hub's own signals may have caused this failure. */
static void died(struct hub *h, uint32_t rank, const char *what)
{
	gone(h, rank, !h->failed_at, what);
}

static void hang_up(struct loom__member *m)
{
	loom__link_close(&m->link);
	m->given = 0;
}

/* Closes the connection of a rank to which the hub cannot send. This ends the rank's wait. */
static void unreachable(struct hub *h, uint32_t rank)
{
	struct loom__member *m = &h->member[rank];
	char text[200];
	snprintf(text, sizeof(text), "rank %u cannot be answered (%s): the job ends", rank, strerror(errno));
	hang_up(m);
	if (!h->failed_at && !m->ended)
		h->say(h->arg, text);
	fail(h, rank, "cannot be reached");
}

static void lost(struct hub *h, uint32_t r)
{
	struct loom__member *m = &h->member[r];
	int ended = errno == ECONNRESET;
	char text[200], why[100];
	snprintf(why, sizeof(why), " (%s)", strerror(errno));
	snprintf(text, sizeof(text), " %s%s: the job ends",
		 errno == EPROTO   ? "sent an invalid message"
		 : errno == ENOMEM ? "sent a message that exceeds the memory"
				   : "lost its connection",
		 errno == EPROTO || errno == ENOMEM ? "" : why);
	hang_up(m);
	if (!ended) /* else reap() reports the rank, with its wait status */
		died(h, r, text);
}

static void done(struct hub *h, uint32_t r)
{
	struct loom__member *m = &h->member[r];
	const struct loom__frame_head *f = &m->link.in;
	m->ended = 1;
	m->status = f->value <= 255 ? (int)f->value : 1; /* exit statuses are at most 255 */
	memcpy(m->text, m->link.in_body, f->bytes + 1);
	if ((h->asked || h->stopped) && m->status == 130) { /* the rank ended because the hub asked it to */
		m->status = 0;
		*m->text = 0;
	}
	if (m->status) {
		char what[64];
		snprintf(what, sizeof(what), "ended with status %d", m->status);
		fail(h, r, what);
	}
}

/* Handles data or the end of the connection from rank r while the rank should wait. It reads no data, because m->data
 * is in the buffer of the connection. */
static void take_early(struct hub *h, uint32_t r)
{
	char byte;
	ssize_t n = recv(h->member[r].link.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n >= 0)
		errno = n ? EPROTO : ECONNRESET;
	lost(h, r);
}

/* Reads available data of rank r. */
static void take(struct hub *h, uint32_t r)
{
	struct loom__member *m = &h->member[r];
	const struct loom__frame_head *f = &m->link.in;
	if (m->given)
		return take_early(h, r);
	int rc = loom__link_read(&m->link);
	if (rc == 1 && (m->link.out || m->ended || (f->kind == LOOM__FRAME_GIVE && f->value != h->turn))) {
		errno = EPROTO; /* the rank sent a frame while it should wait, or is in another exchange */
		rc = -1;
	}
	if (rc < 0) {
		lost(h, r);
	} else if (rc && f->kind == LOOM__FRAME_DONE) {
		done(h, r);
	} else if (rc) {
		m->given = 1;
		m->data = m->link.in_body; /* stays valid until the next read, which follows the answer */
		m->bytes = f->bytes;
	}
}

/* Removes the shared memory that a killed process has left. Trigger plug-ins name it gpuloom-NAMESPACE-PROCESS-... */
static void sweep(int pid)
{
	struct stat space;
	alignas(struct dirent64) char room[4096]; /* opendir() would allocate a buffer */
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

/* to_forward: a signal to pass on to the ranks, 0: none; signals: number of signals received */
static volatile sig_atomic_t to_forward, signals;
static void on_signal(int number, siginfo_t *info, void *context)
{
	(void)context;
	signals++;
	if (info->si_code != SI_KERNEL) /* a signal from the terminal has already reached all processes */
		to_forward = number;
}

static void stop(struct hub *h)
{
	snprintf(h->reason, sizeof(h->reason), "the job was stopped");
	h->stopped = 1;
	h->failed_at = h->failed_at ? h->failed_at : loom__now_ns();
}

static void reap(struct hub *h)
{
	for (uint32_t r = 0; r < h->n; r++) {
		struct loom__member *m = &h->member[r];
		struct child child = {.pid = m->pid, .fd = -1};
		if (m->pid <= 0 || !child_ended(&child, 0))
			continue;
		char how[120], text[200];
		int status = child_wait(&child, NULL);
		child_end_text(status, how, sizeof(how));
		snprintf(text, sizeof(text), " (pid %d) %s: the job ends", m->pid, how);
		sweep(m->pid);
		m->pid = -1;
		h->forced |= h->stopped && status != CHILD_LOST && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
		/* The last message of the rank may still be in the socket. */
		while (m->link.fd >= 0 && !m->ended &&
		       poll(&(struct pollfd){.fd = m->link.fd, .events = POLLIN}, 1, 0) == 1)
			take(h, r);
		/* A signal that arrives while a rank is set up ends the rank by force after a second
		 * (lab/cli/base/session.c). */
		if (signals && !m->ended && status != CHILD_LOST && WIFEXITED(status) && WEXITSTATUS(status) == 130) {
			m->ended = 1;
			m->status = 130;
			stop(h);
		}
		/* This kill may have caused a failure that the hub noticed first. So the kill also counts as a first
		 * failure, if the hub cannot have sent the signal. The hub may send SIGTERM at any time, but SIGKILL
		 * only at the end (asked == 3). */
		gone(h, r,
		     !h->failed_at ||
			 (status != CHILD_LOST && WIFSIGNALED(status) && WTERMSIG(status) != SIGTERM && h->asked < 3),
		     text);
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
	char *all = realloc(h->all, h->n * bytes + 1); /* all ranks have received the previous data */
	if (!all) {                                    /* release() reports the lack of memory to the ranks */
		snprintf(h->reason, sizeof(h->reason), "out of memory for an exchange of all ranks");
		h->failed_at = h->failed_at ? h->failed_at : loom__now_ns();
		return;
	}
	h->all = all;
	h->turn++;
	for (uint32_t r = 0; r < h->n; r++)
		memcpy(all + r * bytes, h->member[r].data, bytes);
	for (uint32_t r = 0; r < h->n; r++) {
		struct loom__member *m = &h->member[r];
		m->given = 0;
		if (loom__link_give(&m->link, LOOM__FRAME_ALL, all, h->n * bytes) < 0)
			unreachable(h, r);
	}
}

/* If a rank has ended or failed, the exchange in progress cannot complete. Sends this failure to the ranks that wait in
 * the exchange. */
static void release(struct hub *h)
{
	int some = h->failed_at != 0;
	for (uint32_t r = 0; r < h->n; r++) {
		some |= h->member[r].ended;
		if (h->member[r].ended && !*h->reason)
			snprintf(h->reason, sizeof(h->reason), "rank %u has ended", r);
	}
	for (uint32_t r = 0; r < h->n && some; r++) {
		struct loom__member *m = &h->member[r];
		if (!m->given)
			continue;
		m->given = 0;
		if (loom__link_tell(&m->link, LOOM__FRAME_END, h->reason) < 0)
			unreachable(h, r);
	}
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
		}
}

static int over(const struct hub *h)
{
	for (uint32_t r = 0; r < h->n; r++)
		if (!h->member[r].ended || h->member[r].pid > 0)
			return 0;
	return 1;
}

/* Prints why ranks failed, each reason once. Rank 0 prints its own reason itself. If no rank gave a reason, prints
 * which rank failed first. */
static void tell(struct hub *h)
{
	char line[4200];
	int reasons = 0;
	for (uint32_t r = 0; r < h->n; r++)
		reasons += h->member[r].died || *h->member[r].text;
	if (h->failed_at && !reasons && !h->stopped)
		h->say(h->arg, h->reason);
	if (h->forced)
		h->say(h->arg, "interrupted again before the ranks had ended: they were ended by force");
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

/* The first signal asks the ranks to end after their sample. The second signal asks them to end at once, and press()
 * kills them after KILL_NS. The third signal kills them at once. */
static void obey(struct hub *h)
{
	int number = to_forward, before = h->stops;
	to_forward = 0;
	h->stops = signals;
	for (uint32_t r = 0; number && r < h->n; r++)
		if (h->member[r].pid > 0)
			kill(h->member[r].pid, number);
	if (before < 2 && h->stops >= 2 && !h->failed_at) {
		stop(h);
		h->asked = 2; /* press() need not send SIGTERM, because the ranks have received both signals */
	}
	if (before < 3 && h->stops >= 3) {
		stop(h);
		h->asked = 3;
	}
	for (uint32_t r = 0; before < 3 && h->stops >= 3 && r < h->n; r++) {
		if (h->member[r].pid > 0)
			kill(h->member[r].pid, SIGKILL);
	}
}

static void wait_for_some(struct hub *h, struct pollfd *on)
{
	for (uint32_t r = 0; r < h->n; r++) {
		const struct loom__link *l = &h->member[r].link;
		on[r] = (struct pollfd){.fd = l->fd, .events = (short)(POLLIN | (l->out ? POLLOUT : 0))};
	}
	if (poll(on, h->n, LOOK_MS) >= 0)
		return;
	int failed = errno != EINTR; /* a sandbox refuses poll(), or memory ran out */
	if (failed)
		usleep(LOOK_MS * 1000);
	for (uint32_t r = 0; r < h->n; r++)
		on[r].revents = failed ? on[r].events : 0; /* links do not block, so they are tried */
}

void loom__hub_signals(int how)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGALRM);
	sigprocmask(how, &set, NULL);
}

int loom__hub_run(struct loom__member *member, struct pollfd *on, uint32_t n, loom__boot_say *say, void *arg)
{
	struct hub h = {.member = member, .n = n, .say = say, .arg = arg};
	struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	signal(SIGALRM, SIG_IGN); /* the hub outlives its ranks, so no alarm of the command may end it */
	loom__hub_signals(SIG_UNBLOCK);
	while (!over(&h)) {
		wait_for_some(&h, on);
		for (uint32_t r = 0; r < n; r++) {
			if (on[r].revents & POLLOUT && member[r].link.fd >= 0 && loom__link_flush(&member[r].link) < 0)
				unreachable(&h, r);
			if (on[r].revents & ~POLLOUT && member[r].link.fd >= 0)
				take(&h, r);
		}
		reap(&h);
		exchange(&h);
		release(&h);
		obey(&h);
		if (h.failed_at)
			press(&h);
	}
	int status = h.stopped ? 130 : 0, dead = 0;
	tell(&h);
	for (uint32_t r = 0; r < n; r++) {
		dead |= member[r].died;
		status = loom__boot_worse(status, member[r].status);
		hang_up(&member[r]);
	}
	free(h.all);
	if (h.stopped && !dead && status != 3)
		return 130;
	return dead && status != 3 ? 1 : status; /* 1, because a rank's death caused the other statuses */
}
