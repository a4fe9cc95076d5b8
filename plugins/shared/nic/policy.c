/* SPDX-License-Identifier: Apache-2.0 */
/* The host half that all trigger plug-ins share. */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../child/thread.h"
#include "nic.h"

#define RECORDED 1024u
const char *const nic_waits[] = {"spin", "yield", "nap", NULL};
const char *const nic_countings[] = {"nic", "device", NULL};
const char *const nic_memories[] = {"host", "device", NULL};

static int open_fabric(struct nic *nic, int asks, struct loom_error *err)
{
	/* Ranks that are threads of one process have simulated devices. */
	int sim = LOOM_HAS(nic->host, job) && !strcmp(nic->opts->provider, "auto");
	struct fabric_want want = {.provider = sim ? "sim" : nic->opts->provider,
				   .address = nic->opts->address,
				   .trigger = (uint32_t)nic->way->needs_trigger,
				   .devices = nic->opts->memory == NIC_DEVICE_MEMORY,
				   .rma = (uint32_t)asks,
				   .sleep = nic->opts->wait == NIC_SLEEP,
				   .net = &nic->opts->net};
	return fabric_open(nic->host, &want, &nic->fabric, err);
}

int nic_policy_create(const struct loom_host *host, const void *opts, const struct nic_way *way,
		      void **self, struct loom_error *err)
{
	if (!LOOM_HAS(host, allgather))
		return LOOM_FAIL(host, err, LOOM_EABI, "%s needs a gpuloom that knows ranks", way->name);
	if (((const struct nic_opts *)opts)->counting == NIC_DEVICE_COUNTS && way->counter)
		return LOOM_FAIL(host, err, LOOM_ENOTSUP,
				 "%s: counting = device: %s: say counting = nic, or choose trigger gputn", way->name, way->counter);
	if (((const struct nic_opts *)opts)->memory == NIC_DEVICE_MEMORY && way->needs_trigger)
		return LOOM_FAIL(host, err, LOOM_ENOTSUP,
				 "%s: memory = device: the provider starts operations by itself, and nobody copies for it: say "
				 "memory = host, or choose trigger gputn", way->name);
	struct nic *nic = host->alloc(host, sizeof(*nic));
	if (!nic)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "%s: out of memory", way->name);
	int rc = nic_open(nic, host, opts, way, err);
	if (!rc) {
		rc = open_fabric(nic, 0, err);
		if (rc)
			nic_close(nic);
	}
	if (rc) {
		host->free(host, nic);
		return rc;
	}
	*self = nic;
	return 0;
}

void nic_policy_destroy(void *self)
{
	struct nic *nic = self;
	if (!nic)
		return;
	const struct loom_host *host = nic->host;
	nic_policy_stop(nic);
	nic_close(nic);
	asks_close(nic);
	host->free(host, nic);
}

/* ---- memory ---------------------------------------------------------------------------------------- */

static uint64_t lines(uint64_t bytes)
{
	return (bytes + 63) & ~63ull;
}

/* Each worker of a GPU may have a FIFO of its own, and look for itself, as long as they are so few. */
#define FEW 16u

static enum nic_far far_of(const struct nic *nic, const struct loom_device_shape *device)
{
	return device->kind != LOOM_ON_GPU		       ? NIC_NEAR :
	       device->workers > FEW || !nic->way->has_fifo ? NIC_MANY :
								 NIC_FEW;
}

static uint32_t rings_of(const struct nic *nic, const struct loom_device_shape *device)
{
	return far_of(nic, device) == NIC_FEW ? device->workers : 1;
}

static int shares(const struct loom_layout *layout)
{
	return LOOM_HAS(layout, ranks) && layout->ranks > 1;
}

static struct nic_shape shape_of(const struct nic *nic, const struct loom_layout *layout, uint64_t *bytes)
{
	struct nic_shape s = {.entries = nic->fifo,
			      .slots = nic->table.slots,
			      .arrivals = nic->table.arrivals,
			      .recorded = nic->way->has_record ? RECORDED : 0};
	uint64_t at = 0, words = nic->way->has_fifo ? 2ull * s.entries : 0;
	s.tallies = nic->opts->counting == NIC_DEVICE_COUNTS ? (uint64_t)nic->list.mask + 1 : 0;
	s.slot_at = at;
	at += (uint64_t)s.slots * sizeof(struct nic_slot);
	s.arrival_at = at;
	at += (uint64_t)s.arrivals * sizeof(struct nic_arrival);
	s.gate_at = at;
	at += (uint64_t)layout->devices * sizeof(struct nic_gate);
	s.fifo_at = at;
	s.fifo_bytes = lines(sizeof(struct nic_fifo) + words * sizeof(uint64_t));
	for (uint32_t d = 0; d < layout->devices; d++)
		at += rings_of(nic, &layout->device[d]) * s.fifo_bytes;
	s.extra_at = at;
	if (nic->way->extra)
		at += nic->way->extra(nic, &s.extra);
	at = lines(at);
	s.ask_at = shares(layout) ? at : 0;
	if (shares(layout))
		at += asks_bytes(nic, layout->ranks, layout->workers);
	*bytes = at;
	return s;
}

/* The block of a device: where its tallies stand, and all. */
static uint64_t tally_at(const struct nic *nic, const struct loom_device_shape *device)
{
	uint64_t words = (uint64_t)nic->table.slots + nic->table.arrivals;
	return lines(sizeof(struct nic_device) + sizeof(struct nic_ring) +
		     (far_of(nic, device) == NIC_MANY ? words * sizeof(struct nic_seen) : 0));
}

static uint64_t device_bytes(const struct nic *nic, const struct loom_device_shape *device, const struct nic_shape *shape)
{
	return tally_at(nic, device) + shape->tallies * sizeof(struct nic_tally);
}

int nic_policy_need(void *self, const struct loom_layout *layout, struct loom_need *need,
		    struct loom_error *err)
{
	struct nic *nic = self;
	if (layout->noncoherent && nic->way->adds && layout->devices > 1)
		return LOOM_FAIL(nic->host, err, LOOM_ENOTSUP,
				 "%s: these devices cannot add to the same word: use another trigger, or one device",
				 nic->way->name);
	if (shares(layout) && !strcmp(nic->opts->provider, "auto") && !strcmp(fabric_name(nic->fabric), "shm")) {
		fabric_close(nic->fabric);
		nic->fabric = NULL;
		int rc = open_fabric(nic, 1, err);
		if (rc)
			return rc;
	}
	nic->devices = layout->devices;
	if (!nic->base && nic_size(nic, layout))
		return LOOM_FAIL(nic->host, err, LOOM_ENOMEM, "%s: out of memory", nic->way->name);
	struct nic_shape shape = shape_of(nic, layout, &need->global);
	if (shape.tallies && layout->devices > 1)
		return LOOM_FAIL(nic->host, err, LOOM_ENOTSUP,
				 "%s: counting = device: what %u devices fire adds up at the NIC alone: say counting = nic, or take "
				 "one device a rank",
				 nic->way->name, layout->devices);
	for (uint32_t d = 0; d < layout->devices; d++) {
		uint64_t bytes = device_bytes(nic, &layout->device[d], &shape);
		need->device = bytes > need->device ? bytes : need->device;
	}
	need->global_place = LOOM_PLACE_HOST;
	need->device_place = LOOM_PLACE_DEVICE;
	need->local = sizeof(struct nic_ring);
	if (nic->way->has_record)
		need->worker = sizeof(struct nic_record) + RECORDED * sizeof(uint64_t);
	need->worker_place = LOOM_PLACE_HOST;
	return 0;
}

/* What the NIC's thread has used since it started. */
static uint64_t thread_cpu_ns(const struct nic *nic)
{
	clockid_t clock;
	struct timespec t = {0};
	if (!nic->running || pthread_getcpuclockid(nic->thread, &clock) || clock_gettime(clock, &t))
		return 0;
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* A thread that is bound to one core, as a worker is, needs it for itself: the NIC's thread runs on the others, if there are
 * any. Else the kernel may leave both on one core for seconds, as neither sleeps. */
static void keep_off(const struct nic *nic)
{
	cpu_set_t mine, one, bound;
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *task;
	CPU_ZERO(&bound);
	while (tasks && (task = readdir(tasks)))
		if (atoi(task->d_name) > 0 && !sched_getaffinity(atoi(task->d_name), sizeof(one), &one) && CPU_COUNT(&one) == 1)
			CPU_OR(&bound, &bound, &one);
	if (tasks)
		closedir(tasks);
	if (pthread_getaffinity_np(nic->thread, sizeof(mine), &mine))
		return;
	CPU_AND(&bound, &bound, &mine);
	CPU_XOR(&one, &mine, &bound);
	if (CPU_COUNT(&one) && CPU_COUNT(&bound))
		(void)pthread_setaffinity_np(nic->thread, sizeof(one), &one); /* a wish: without it it still runs */
}

/* The blocks of a fresh sample; the provider may still hold receives of the one before. */
int nic_policy_init(void *self, const struct loom_layout *layout, const struct loom_view *view,
		    struct loom_error *err)
{
	struct nic *nic = self;
	(void)err;
	nic_lock(nic);
	for (uint32_t i = 0; i < nic->opts->flights; i++)
		if (nic->flight[i].state && nic->flight[i].io.op == LOOM_NET_RECV)
			fabric_cancel(nic->fabric, &nic->flight[i].context);
	fabric_begin(nic->fabric);
	nic->epoch++;
	nic->receiving = nic->flying; /* those of before: they only give their places back */
	list_clear(&nic->list);
	nic->holding = 0;
	nic->status = 0;
	nic->preparer = pthread_self();
	nic->fires = nic->runs = nic->arrivals = 0;
	nic->counts_arrivals = 0;
	nic->first_ns = nic->last_ns = 0;
	nic->cpu_ns = thread_cpu_ns(nic);
	struct nic_shape shape = nic->shape;
	memset(nic->base, 0, nic->bytes);
	for (uint32_t d = 0; d < layout->devices; d++) {
		const struct loom_device_shape *has = &layout->device[d];
		struct nic_device *device = view->device[d];
		memset(device, 0, device_bytes(nic, has, &shape));
		shape.far = far_of(nic, has);
		shape.tally_at = tally_at(nic, has);
		nic->tally = shape.tallies ? (struct nic_tally *)((char *)device + shape.tally_at) : NULL;
		device->shape = shape;
		device->launch_ns = has->launch_ns;
		device->teardown_ns = has->teardown_ns;
		shape.fifo_at += rings_of(nic, has) * shape.fifo_bytes;
	}
	memset(nic->cursor, 0, nic->rings * sizeof(*nic->cursor));
	for (uint32_t w = 0; nic->way->has_record && w < layout->workers; w++)
		((struct nic_record *)view->worker[w])->fires = 0;
	if (nic->way->reset)
		nic->way->reset(nic);
	if (nic->rma)
		asks_begin(nic);
	nic_unlock(nic);
	if (nic->running && !nic->placed && !*nic->opts->core)
		keep_off(nic); /* workers are there by now */
	nic->placed = 1;
	return 0;
}

int nic_policy_collect(void *self, const struct loom_layout *layout, const struct loom_view *view,
		       struct loom_report *report, struct loom_error *err)
{
	struct nic *nic = self;
	const struct loom_host *host = nic->host;
	(void)layout, (void)view, (void)err;
	nic_lock(nic);
	uint64_t fires = nic->fires, runs = nic->runs, arrivals = nic->arrivals;
	double seconds = (double)(nic->last_ns - nic->first_ns) / 1e9;
	uint64_t cpu = thread_cpu_ns(nic) - nic->cpu_ns;
	nic_unlock(nic);
	/* Between the first and the last look that found some, so what the first one found does not count. */
	if (seconds > 0)
		host->metric(host, report, "trigger.taken_per_s", "triggers/s", LOOM_BETTER_MORE,
			     (double)(fires - nic->first_fires) / seconds);
	host->metric(host, report, "trigger.fires", "", LOOM_BETTER_NONE, (double)fires);
	host->metric(host, report, "trigger.operations", "", LOOM_BETTER_NONE, (double)runs);
	host->metric(host, report, "trigger.arrivals", "", LOOM_BETTER_NONE, (double)arrivals);
	/* A NIC in hardware takes none of it: the host's share of what this one costs. */
	if (!nic->clock)
		host->metric(host, report, "trigger.cpu_ns", "ns", LOOM_BETTER_LESS, (double)cpu);
	return 0;
}

/* ---- the thread ------------------------------------------------------------------------------------ */

/* Where workers ask, they and other ranks' wait for this thread. It sleeps until one of its own workers rings or the
 * network has something, and not for long; where the network cannot wake it, for a moment. */
#define ASKED_NS 100000u
#define ASKED_MS 2
#define HELPED_NS 2000000u /* where a worker has looked in its place: in case that it does not go on */

static int is_helped(const struct nic *nic)
{
	return __atomic_load_n(&nic->helps, __ATOMIC_RELAXED) != __atomic_load_n(&nic->helped, __ATOMIC_RELAXED);
}

static void nap(struct nic *nic, uint64_t waited_ns)
{
	struct nic_bell *bell = (struct nic_bell *)(nic->base + nic->shape.ask_at);
	uint64_t ns = waited_ns / 4 < ASKED_NS ? waited_ns / 4 : ASKED_NS;
	struct pollfd on[] = {{.fd = nic->fabric->fd, .events = POLLIN}, {.fd = asks_bell(nic), .events = POLLIN}};
	uint32_t rings;
	int sleeps, helped, until_woken = on[0].fd >= 0 && on[1].fd >= 0;
	pthread_mutex_lock(&nic->lock);
	helped = is_helped(nic);
	if (helped) {
		ns = HELPED_NS;
		until_woken = 0;
	}
	__atomic_store_n(&nic->helped, nic->helps, __ATOMIC_RELAXED);
	rings = loom_load_relaxed_sys(&bell->rings);
	loom_store_relaxed_sys(&bell->asleep, 1u);
	/* Either the worker that asks sees that this thread sleeps, or its wish is seen here; pairs with nic_do_ask(). */
	loom_fence_seq_cst_sys();
	/* Where nobody wakes it, not while it is about to be answered. */
	sleeps = helped || (!asks_wait(nic) && (until_woken ? fabric_may_sleep(nic->fabric) : waited_ns >= ASKED_NS || !nic->asker->busy(nic)));
	pthread_mutex_unlock(&nic->lock);
	if (!sleeps) /* who yields to a worker comes on again when that has used up its slice: milliseconds */
		loom_relax();
	else if (!until_woken)
		loom_sleep_on(NULL, &bell->rings, rings, ns < nic->opts->nap ? nic->opts->nap : ns);
	else if (poll(on, 2, ASKED_MS) > 0 && on[1].revents)
		asks_heard(nic);
	pthread_mutex_lock(&nic->lock);
	loom_store_relaxed_sys(&bell->asleep, 0u);
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

/* Linux 6.12 and later: a thread that wants short slices comes on as soon as it is woken, also where a worker has the core. */
#define SLICE_NS 100000u
static void want_short_slices(void)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} how = {.size = sizeof(how), .nice = getpriority(PRIO_PROCESS, 0), .runtime = SLICE_NS};
	if (sched_getscheduler(0) == SCHED_OTHER)
		(void)syscall(SYS_sched_setattr, 0, &how, 0); /* a wish */
}

static void *engine(void *arg)
{
	struct nic *nic = arg;
	uint32_t idle = 0;
	uint64_t since = 0;
	pthread_setname_np(pthread_self(), "loom-nic");
	if (nic->rma) {
		prctl(PR_SET_TIMERSLACK, 1000ul); /* naps are short, and longer by this */
		want_short_slices();
	}
	while (!__atomic_load_n(&nic->stop, __ATOMIC_RELAXED)) {
		if (__atomic_load_n(&nic->want, __ATOMIC_RELAXED)) {
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

/* "0-3,8" as the option's type has checked it. */
static void pin(const struct nic *nic)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	for (const char *at = nic->opts->core; *at;) {
		char *end;
		long first = strtol(at, &end, 10), last = first;
		if (*end == '-')
			last = strtol(end + 1, &end, 10);
		for (long i = first; i <= last && i < CPU_SETSIZE; i++)
			CPU_SET(i, &set);
		at = *end == ',' ? end + 1 : end;
	}
	int failed = pthread_setaffinity_np(nic->thread, sizeof(set), &set);
	if (failed)
		LOOM_LOG(nic->host, LOOM_LOG_WARN, nic->way->name, "its thread is not pinned to %s: %s",
			 nic->opts->core, strerror(failed));
}

static int take_blocks(struct nic *nic, const struct loom_layout *layout, const struct loom_view *view,
		       struct loom_error *err)
{
	const struct loom_host *host = nic->host;
	nic->devices = layout->devices;
	nic->workers = layout->workers;
	for (uint32_t d = 0; d < layout->devices; d++)
		nic->first_worker[d] = layout->device[d].first_worker;
	nic->first_worker[layout->devices] = layout->workers;
	for (uint32_t d = 0; d < layout->devices; d++)
		nic->rings += rings_of(nic, &layout->device[d]);
	nic->fifos = host->alloc(host, nic->rings * sizeof(*nic->fifos));
	nic->cursor = host->alloc(host, nic->rings * sizeof(*nic->cursor));
	nic->record = host->alloc(host, layout->workers * sizeof(*nic->record));
	if (!nic->fifos || !nic->cursor || !nic->record)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "%s: out of memory", nic->way->name);
	nic->shape = shape_of(nic, layout, &nic->bytes);
	nic->base = view->global;
	for (uint32_t r = 0; r < nic->rings; r++)
		nic->fifos[r] = (struct nic_fifo *)(nic->base + nic->shape.fifo_at + r * nic->shape.fifo_bytes);
	for (uint32_t w = 0; nic->way->has_record && w < layout->workers; w++)
		nic->record[w] = view->worker[w];
	return 0;
}

/* The same as an agent: all that there is to do now. */
static uint64_t step(void *arg, uint64_t now_ns)
{
	struct nic *nic = arg;
	while (nic_step(nic))
		if (!nic->rma && !nic_backlog(nic) && nic->first_notify == LIST_NONE && nic->way->poll == nic_poll_fifo &&
		    nic_drained_fifo(nic) && fabric_due(nic->fabric) > now_ns)
			break; /* it would find nothing */
	return fabric_due(nic->fabric);
}

static int start_agent(struct nic *nic, const struct loom_layout *layout, struct loom_error *err)
{
	const struct loom_clock *time = layout->clock;
	if (strcmp(fabric_name(nic->fabric), "sim") != 0)
		return LOOM_FAIL(nic->host, err, LOOM_ENOTSUP,
				 "%s: provider %s takes real time, which virtual time does not mix with: choose provider = sim",
				 nic->way->name, fabric_name(nic->fabric));
	int code = time->start(time, nic->way->name, step, nic, &nic->agent);
	if (!code)
		code = time->watch(time, nic->agent, nic->base, nic->bytes, nic->opts->net.sim_trigger);
	if (code)
		return LOOM_FAIL(nic->host, err, code, "%s: out of memory", nic->way->name);
	nic->clock = time;
	fabric_attach(nic->fabric, time, nic->agent);
	return 0;
}

int nic_policy_start(void *self, const struct loom_layout *layout, const struct loom_view *view,
		     const struct loom_segments *segments, struct loom_error *err)
{
	struct nic *nic = self;
	int rc = nic->base ? 0 : take_blocks(nic, layout, view, err);
	if (!rc && !nic->shared)
		rc = fabric_share(nic->fabric, segments, err);
	if (rc)
		return rc;
	nic->shared = 1;
	if (nic->shape.ask_at && !nic->rma)
		rc = asks_start(nic, segments, err);
	if (!rc && nic->way->start)
		rc = nic->way->start(nic, err);
	if (rc)
		return rc;
	if (LOOM_HAS(layout, clock))
		return start_agent(nic, layout, err);
	if (!strcmp(fabric_name(nic->fabric), "sim"))
		return LOOM_FAIL(nic->host, err, LOOM_ENOTSUP,
				 "%s: provider = sim: the network is simulated together with the devices: choose devices = sim:0",
				 nic->way->name);
	nic->stop = 0;
	sigset_t all, old;
	sigfillset(&all); /* signals are the host's */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int failed = thread_create(&nic->thread, engine, nic);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (failed)
		return LOOM_FAIL(nic->host, err, LOOM_EUNAVAIL, "%s: cannot start its thread: %s",
				 nic->way->name, strerror(failed));
	nic->running = 1;
	nic->placed = 0;
	if (*nic->opts->core)
		pin(nic);
	return 0;
}

void nic_policy_stop(void *self)
{
	struct nic *nic = self;
	if (nic->agent) {
		fabric_attach(nic->fabric, NULL, NULL);
		nic->clock->stop(nic->clock, nic->agent);
		nic->agent = NULL;
		nic->clock = NULL;
	}
	if (!nic->running)
		return;
	__atomic_store_n(&nic->stop, 1, __ATOMIC_RELAXED); /* join orders */
	pthread_join(nic->thread, NULL);
	nic->running = 0;
}

/* ---- what workloads call --------------------------------------------------------------------------- */

int nic_policy_check(void *self, const struct loom_trigger_post *post, struct loom_error *err)
{
	return nic_check(self, post, err);
}

int nic_policy_post(void *self, const struct loom_trigger_post *post, uint64_t *id,
		    struct loom_error *err)
{
	struct nic *nic = self;
	int rc = nic_check(nic, post, err), taken = 0;
	if (rc)
		return rc;
	nic_lock(nic);
	if (post->tag > LOOM_TAG_MAX)
		nic_count_arrivals(nic);
	if (nic->tally)
		rc = nic_tally_post(nic, post, err);
	if (!rc && nic->way->post)
		rc = nic->way->post(nic, post, id, &taken, err);
	if (!rc && !taken) {
		rc = list_post(&nic->list, post, id);
		if (rc == LOOM_EBUSY)
			rc = nic_too_late(nic->host, nic->way->name, post, err);
		else if (rc)
			rc = nic_no_place(nic, err);
		else if (nic->way->posted)
			nic->way->posted(nic, post->tag);
	}
	nic_unlock(nic);
	return rc;
}

int nic_policy_cancel(void *self, uint64_t id, struct loom_error *err)
{
	struct nic *nic = self;
	nic_lock(nic);
	int rc = nic->way->cancel ? nic->way->cancel(nic, id) : list_cancel(&nic->list, id);
	nic_unlock(nic);
	if (rc)
		return LOOM_FAIL(nic->host, err, rc, "%s: the operation %s", nic->way->name,
				 rc == LOOM_EBUSY   ? "runs already" :
				 rc == LOOM_ENOTSUP ? "lies where it cannot be taken back" :
						      "is over, or never was");
	return 0;
}

int nic_policy_flush(void *self, uint64_t timeout_ns, struct loom_error *err)
{
	struct nic *nic = self;
	uint64_t begin = nic->host->now_ns(nic->host);
	for (;;) {
		nic_lock(nic);
		int over = nic->way->drained(nic) && nic_idle(nic), status = nic->status;
		uint32_t flying = nic->flying - nic->receiving;
		nic_unlock(nic);
		if (status)
			return LOOM_FAIL(nic->host, err, status, "%s: %s", nic->way->name, nic->failure);
		if (over)
			return 0;
		if (nic->clock) /* nothing more comes */
			return LOOM_FAIL(nic->host, err, LOOM_EWRONG, "%s: %u operations never end: what they wait for was not "
					 "sent", nic->way->name, flying);
		if (nic->host->now_ns(nic->host) - begin > timeout_ns)
			return LOOM_FAIL(nic->host, err, LOOM_ETIMEDOUT,
					 "%s: %u operations are still under way after %.3g s", nic->way->name,
					 flying, (double)timeout_ns / 1e9);
		loom_cpu_yield();
	}
}

void nic_policy_edge(void *self, uint32_t device, struct loom_edge *out)
{
	const struct nic *nic = self;
	uint64_t gate = nic->shape.gate_at + device * sizeof(struct nic_gate);
	*out = (struct loom_edge){.ended = gate + offsetof(struct nic_gate, ended),
				  .begun = gate + offsetof(struct nic_gate, begun),
				  .arrival = nic->shape.arrival_at + offsetof(struct nic_arrival, count),
				  .stride = sizeof(struct nic_arrival),
				  .by_stream = (uint32_t)nic->way->by_stream};
}

int nic_policy_anywhere(void *self)
{
	return ((const struct nic *)self)->opts->memory == NIC_DEVICE_MEMORY;
}

int nic_policy_constants(void *self, const struct loom_layout *layout, char *text, size_t room, struct loom_error *err)
{
	const struct nic *nic = self;
	(void)layout;
	if (nic->opts->counting != NIC_DEVICE_COUNTS)
		return 0;
	if (snprintf(text, room, "#define NIC_TALLIES 1\n") >= (int)room)
		return LOOM_FAIL(nic->host, err, LOOM_EFULL, "%s: no room for its constant", nic->way->name);
	return 0;
}

int nic_policy_room(void *self, uint32_t *posts)
{
	struct nic *nic = self;
	nic_lock(nic);
	*posts = nic->list.room;
	nic_unlock(nic);
	return 0;
}

int nic_policy_count(void *self, uint64_t tag, uint64_t n, struct loom_error *err)
{
	struct nic *nic = self;
	if (tag == 0 || tag >> 48)
		return LOOM_FAIL(nic->host, err, LOOM_EINVAL, "%s: tag %#llx: tags have 47 bits",
				 nic->way->name, (unsigned long long)tag);
	nic_lock(nic);
	int rc = nic->tally ? nic_tally_count(nic, tag, err) : 0;
	if (!rc)
		nic_count(nic, tag, n, 0);
	nic_unlock(nic);
	return rc;
}
