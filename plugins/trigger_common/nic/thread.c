/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the engine in a thread that polls, waits and sleeps, or in an agent under virtual time. */
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "lib/cpu_list.h"
#include "lib/poll.h"
#include "lib/thread.h"
#include "nic.h"

uint64_t nic_thread_cpu_ns(const struct nic *nic)
{
	clockid_t clock;
	struct timespec t = {0};
	if (!nic->running || pthread_getcpuclockid(nic->thread, &clock) || clock_gettime(clock, &t))
		return 0;
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- the cores of the thread ----------------------------------------------------------------------- */

/* A worker that is bound to one core needs that core all the time. So the NIC's thread keeps off such cores, if it has
 * other cores. If they shared a core, the kernel might leave both on it for seconds, because neither sleeps. */
static void avoid_bound_cores(const struct nic *nic)
{
	cpu_set_t mine, one, bound;
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *task;
	CPU_ZERO(&bound);
	while (tasks && (task = readdir(tasks)))
		if (atoi(task->d_name) > 0 && !sched_getaffinity(atoi(task->d_name), sizeof(one), &one) &&
		    CPU_COUNT(&one) == 1)
			CPU_OR(&bound, &bound, &one);
	if (tasks)
		closedir(tasks);
	if (pthread_getaffinity_np(nic->thread, sizeof(mine), &mine))
		return;
	CPU_AND(&bound, &bound, &mine);
	CPU_XOR(&one, &mine, &bound);
	if (CPU_COUNT(&one) && CPU_COUNT(&bound))
		(void)pthread_setaffinity_np(nic->thread, sizeof(one), &one); /* a failure is harmless */
}

void nic_place_thread(struct nic *nic)
{
	if (nic->running && !nic->placed && !*nic->opts->core)
		avoid_bound_cores(nic);
	nic->placed = 1;
}

static void pin(const struct nic *nic)
{
	cpu_set_t set;
	int failed = loom__cpu_list(nic->opts->core, &set, sizeof(set))
			 ? EINVAL
			 : pthread_setaffinity_np(nic->thread, sizeof(set), &set);
	if (failed)
		LOOM_LOG(nic->host, LOOM_LOG_WARN, nic->ops->name, "the NIC's thread is not pinned to %s: %s",
			 nic->opts->core, strerror(failed));
}

/* ---- waiting ----------------------------------------------------------------------------------------- */

/* If workers access the memory of other ranks, these workers and the other ranks wait for this thread. So it sleeps at
 * most RMA_NAP_MS, and a worker that rings or a network event wakes it earlier. If the network cannot wake it, it
 * sleeps at most RMA_NAP_NS. */
#define RMA_NAP_NS 100000u
#define RMA_NAP_MS 2
#define HELPED_NS                                                                                                      \
	2000000u /* longest sleep of the thread while workers take its steps, in case the workers stop taking them */

static int is_helped(const struct nic *nic)
{
	return __atomic_load_n(&nic->helps, __ATOMIC_RELAXED) != __atomic_load_n(&nic->helped, __ATOMIC_RELAXED);
}

static int may_sleep(const struct nic *nic)
{
	return nic->fabric->fd >= 0 && nic->fabric->ops->may_sleep(nic->fabric);
}

static void nap(struct nic *nic, uint64_t waited_ns)
{
	struct nic_bell *bell = (struct nic_bell *)(nic->base + nic->shape.rma_at);
	uint64_t ns = waited_ns / 4 < RMA_NAP_NS ? waited_ns / 4 : RMA_NAP_NS;
	struct pollfd on[] = {{.fd = nic->fabric->fd, .events = POLLIN}, {.fd = nic_rma_bell(nic), .events = POLLIN}};
	uint32_t rings;
	int sleeps, helped, until_woken = on[0].fd >= 0 && on[1].fd >= 0;
	pthread_mutex_lock(&nic->lock);
	helped = is_helped(nic);
	if (helped) {
		ns = HELPED_NS;
		until_woken = 0;
	}
	__atomic_store_n(&nic->helped, nic->helps, __ATOMIC_RELAXED);
	/* Pairs with nic_ring_bell(). Either the code below sees the worker's operation, or the worker sees that this
	 * thread is about to sleep. */
	rings = eventcount_enter_single(&bell->rings, &bell->asleep);
	/* If nothing can wake this thread, it does not sleep at first while an operation is in flight, because the
	 * operation may soon complete. */
	sleeps = helped || (!nic_rma_pending(nic) &&
			    (until_woken ? may_sleep(nic) : waited_ns >= RMA_NAP_NS || !nic->rma_ops->busy(nic)));
	pthread_mutex_unlock(&nic->lock);
	if (!sleeps) /* does not yield, because a worker that gets the core keeps it for a time slice of milliseconds */
		loom_relax();
	else if (!until_woken)
		loom_sleep_on(NULL, &bell->rings, rings, ns < nic->opts->nap ? nic->opts->nap : ns);
	else if (poll_or_nap(on, 2, &(struct timespec){.tv_nsec = RMA_NAP_MS * 1000000}) > 0 && on[1].revents)
		nic_rma_drain_bell(nic);
	pthread_mutex_lock(&nic->lock);
	eventcount_leave_single(&bell->asleep);
	pthread_mutex_unlock(&nic->lock);
}

static void rest(struct nic *nic, uint32_t *idle, uint64_t *since)
{
	*idle += *idle < UINT32_MAX;
	if ((*idle <= nic->opts->polls && !is_helped(nic)) || nic->opts->wait == NIC_SPIN) {
		loom_relax();
	} else if (nic->opts->wait == NIC_YIELD) {
		loom_cpu_yield();
	} else {
		uint64_t now = loom_clock_ns(NULL);
		*since = *idle <= nic->opts->polls + 1 ? now : *since;
		if (nic->rma)
			nap(nic, now - *since);
		else
			loom_nap(now - *since, nic->opts->nap);
	}
}

/* ---- the thread ---------------------------------------------------------------------------------------- */

/* From Linux 6.12 on, a thread with a short time slice runs as soon as it is woken, even if a worker occupies its
 * core. */
#define SLICE_NS 100000u
static void set_short_slice(void)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} how = {.size = sizeof(how), .nice = getpriority(PRIO_PROCESS, 0), .runtime = SLICE_NS};
	if (sched_getscheduler(0) == SCHED_OTHER)
		(void)syscall(SYS_sched_setattr, 0, &how, 0); /* a failure is harmless */
}

static void *run(void *arg)
{
	struct nic *nic = arg;
	uint32_t idle = 0;
	uint64_t since = 0;
	pthread_setname_np(pthread_self(), "loom-nic");
	if (nic->rma) {
		prctl(PR_SET_TIMERSLACK, 1000ul); /* the kernel adds the timer slack to every nap */
		set_short_slice();
	}
	while (!__atomic_load_n(&nic->stop, __ATOMIC_RELAXED)) {
		if (__atomic_load_n(&nic->waiters, __ATOMIC_RELAXED)) {
			loom_cpu_yield();
			continue;
		}
		pthread_mutex_lock(&nic->lock);
		uint32_t work = nic_step(nic);
		pthread_mutex_unlock(&nic->lock);
		if (work)
			idle = 0;
		else
			rest(nic, &idle, &since);
	}
	return NULL;
}

int nic_start_thread(struct nic *nic, struct loom_error *err)
{
	sigset_t all, old;
	nic->stop = 0;
	sigfillset(&all); /* blocks all signals in the thread, because other threads of the host handle them */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int failed = thread_start(&nic->thread, run, nic);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (failed)
		return LOOM_FAIL(nic->host, err, LOOM_EUNAVAIL, "%s: cannot start its thread: %s", nic->ops->name,
				 strerror(failed));
	nic->running = 1;
	nic->placed = 0;
	if (*nic->opts->core)
		pin(nic);
	return 0;
}

/* ---- virtual time --------------------------------------------------------------------------------------- */

static uint64_t step(void *arg, uint64_t now_ns)
{
	struct nic *nic = arg;
	const struct fabric *f = nic->fabric;
	nic->steps = 1;
	while (nic_step(nic))
		if (!nic->rma && !nic_backlog(nic) && nic->first_notify == LIST_NONE &&
		    nic->ops->poll == nic_poll_fifo && nic_drained_fifo(nic) && f->ops->due(f) > now_ns)
			break; /* the next step would do nothing */
	return f->ops->due(f);
}

int nic_start_agent(struct nic *nic, const struct loom_layout *layout, struct loom_error *err)
{
	const struct loom_clock *time = layout->clock;
	if (!nic_is_simulated(nic))
		return LOOM_FAIL(nic->host, err, LOOM_ENOTSUP,
				 "%s: provider %s takes real time, which cannot be combined with virtual time: choose "
				 "provider = sim",
				 nic->ops->name, nic->fabric->name);
	int code = time->start(time, nic->ops->name, step, nic, &nic->agent);
	if (!code)
		code = time->watch(time, nic->agent, nic->base, nic->bytes, nic->opts->net.sim_trigger);
	if (code)
		return LOOM_FAIL(nic->host, err, code, "%s: out of memory", nic->ops->name);
	nic->clock = time;
	nic->fabric->ops->attach(nic->fabric, time, nic->agent);
	return 0;
}

void nic_policy_stop(void *self)
{
	struct nic *nic = self;
	if (nic->agent) {
		nic->fabric->ops->attach(nic->fabric, NULL, NULL);
		nic->clock->stop(nic->clock, nic->agent);
		nic->agent = NULL;
		nic->clock = NULL;
	}
	if (!nic->running)
		return;
	__atomic_store_n(&nic->stop, 1, __ATOMIC_RELAXED); /* relaxed: pthread_join() orders memory */
	pthread_join(nic->thread, NULL);
	nic->running = 0;
}
