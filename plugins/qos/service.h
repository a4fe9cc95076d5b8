/* SPDX-License-Identifier: Apache-2.0 */
/* The service path on the host, as its files share it. Every qos plug-in carries it; the one that leads
 * the pipeline runs it. From the rings inward:
 *
 *   door.c    where top halves wait; moderation and masking of interrupts
 *   bell.c    how threads wake each other
 *   alarm.c   interrupts of GPUs, by a thread for each
 *   path.c    the threads, and who does what in which arrangement
 *   fill.c    the bottom half: rings -> queues, each request checked against its tenant's grants
 *   order.c   queues: which request of a tenant is served next
 *   serve.c   turns: the policies say who is served next; completion
 *   work.c, files.c, heap.c   the services
 *   frames.c  those about memory of GPUs
 *   account.c CPU time, latency, the metrics of a sample */
#ifndef QOS_SERVICE_H
#define QOS_SERVICE_H

#include <pthread.h>

#include <gpuloom/interrupt.h>

#include "service.dev.h"

#define SSR_PAGE 4096u
#define SSR_BATCH_MOST 256u
#define SSR_STAGES_MOST 16u

enum ssr_stage { SSR_TOP = 0, SSR_BOTTOM, SSR_WORKER, SSR_CONTROLLER, SSR_STAGES };
enum { SSR_KERNEL = SSR_STAGES, SSR_CLOCKS }; /* threads that io_uring keeps for us */

/* ---- requests on their way ---------------------------------------------------------------------- */

struct ssr_tenant;
struct ssr_grant;
struct ssr_source;

/* A request that was checked: what it names is resolved, or `error` says why it names nothing. */
struct ssr_call {
	struct ssr_source *source;
	uint64_t position; /* in its ring */
	uint64_t posted_ns;
	struct ssr_grant *grant; /* its buffer */
	char *at;
	uint64_t argument;
	uint32_t bytes;
	int32_t error; /* minus an errno; 0: serve it */
	int32_t fd;
	uint16_t service;
	uint16_t busy; /* the bottom half sets it, the completion clears it */
};
_Static_assert(sizeof(struct ssr_call) == 64, "a cache line");

/* Reads that wait, by their places in the file: a list for each, of calls by their numbers. */
#define SSR_PLACES 4096u /* pages: larger files have several at one place */
#define SSR_NOBODY ~0u
struct ssr_sweep {
	uint64_t some;	    /* bit w: full[w] is not 0 */
	uint64_t full[64];  /* a bit for each place */
	uint32_t first[SSR_PLACES];
	uint32_t *next;	    /* [calls] */
	uint32_t at;	    /* the place where the sweep is, ... */
	uint32_t left;	    /* ... and what it has left there */
	uint32_t waiting;
};

#define SSR_AHEAD 16u /* calls that are looked up together */

/* One producer (the bottom half), one consumer (the worker thread). A call has the place of its slot, so
 * that any may be served first; `number` says in which order they came. Never full: as large as all
 * rings of the tenant. */
struct ssr_queue {
	struct ssr_call *call;
	uint32_t *number;
	uint64_t mask, bytes; /* of all memory, from `call` on */
	uint64_t head __attribute__((aligned(64))); /* stored by the producer */
	uint64_t tail __attribute__((aligned(64))); /* the consumer: so many were looked at, ... */
	uint64_t gone;				    /* ... so many served */
	struct ssr_sweep *sweep;
	uint32_t ahead[SSR_AHEAD], ahead_at, ahead_end; /* whose turn is next */
};

/* Pages of a heap that ALLOC gave out. */
struct ssr_heap {
	uint64_t pages;
	uint32_t *extent; /* [pages]: how many, at the first page of what was given; else 0 */
	uint64_t *taken;  /* a bit per page */
	uint64_t next;    /* where the next search begins */
};

struct ssr_frames;
struct ssr_grant {
	struct loom_grant is;
	char *at; /* the host's view of is.at; near a GPU: of a demand buffer the host's pages, else NULL */
	struct ssr_heap heap;
	struct ssr_frames *frames; /* of a demand buffer near a GPU */
	struct ssr_grant *next;
};

/* Times in 16 steps per power of two: error below 1/16. */
#define SSR_HISTOGRAM 1024u
struct ssr_histogram {
	uint64_t count, bucket[SSR_HISTOGRAM];
};

struct ssr_tenant {
	struct loom_tenant is;
	struct ssr_queue queue;
	struct ssr_grant **grant; /* [grants] */
	uint32_t grants;
	uint64_t served, errors, cpu_ns;
	struct ssr_histogram latency;
};

/* ---- threads ------------------------------------------------------------------------------------ */

/* An eventcount (lib/eventcount.h) on which one thread sleeps until it is notified; notifications do not add up. */
struct ssr_bell {
	uint32_t rung, waiting;
	uint32_t heard; /* the waiter's: how many it has seen */
};

struct service;
struct ssr_thread {
	struct service *s;
	pthread_t id;
	int tid, started;
	enum ssr_stage role;
	uint32_t vector; /* of a top half; of a controller: its device */
	uint32_t heard;  /* rings of its door */
	uint64_t clock_ns; /* its CPU clock as last charged */
	uint64_t slack_ns; /* of its timers, as last set */
	int ahead_fd[2];   /* timers for the next sleep and the one after it: see ssr_sleep_ahead() */
	uint64_t ahead_ns[2];
	uint64_t begun_clock_ns; /* at the begin of the sample */
	uint64_t begun_switches[2];
	int begun_lost; /* they could not be read */
};

/* CPU time against wall time, for the dearest second. */
struct ssr_point {
	uint64_t ns, cpu_ns;
};
#define SSR_POINTS 16384u
struct ssr_series {
	struct ssr_point point[SSR_POINTS];
	uint64_t head, tail;
	uint64_t peak_ns; /* most CPU time in any second so far */
};

/* A worker's ring as the host knows it: what is in shared memory a tenant could have written. */
struct ssr_source {
	uint32_t *told;
	struct ssr_slot *slot; /* [slots] */
	uint64_t *answer;      /* [slots] */
	uint32_t slots, shift; /* slots 0: no tenant's */
	uint32_t tenant, device;
	uint32_t first; /* call of its slot 0 */
	int broken;     /* its words make no sense: it is not served any more */
	uint64_t taken; /* the bottom half has read so many requests ... */
	uint64_t served; /* ... of which so many are complete: stored by the worker thread */
};

/* An answer that waits for copies. */
struct ssr_later {
	struct ssr_call *call;
	int64_t result;
};

/* The interrupts of a device. */
struct ssr_alarm {
	struct loom_interrupt *interrupt; /* NULL: it has none */
	struct ssr_bell armed;
	uint64_t taken; /* requests of its workers that were read, in all samples of a launch */
};

struct ssr_files;
struct ssr_idle {
	uint64_t ns, entries;
	int known;
};

/* ---- the service -------------------------------------------------------------------------------- */

struct service {
	const struct loom_host *host;
	const char *name;
	struct loom_qos_stage stage[SSR_STAGES_MOST];
	uint32_t stages;
	struct loom_qos_path path;
	struct ssr_tenant tenant[LOOM_MAX_TENANTS];
	uint32_t tenants, workers;
	struct loom_grant *granted; /* as the core gave them, until start */
	uint32_t granted_count;
	struct ssr_grant *grants;
	int fault_fd; /* userfaultfd; -1: no demand buffer */
	struct ssr_files *files;
	struct loom_interrupt *line[LOOM_MAX_DEVICES]; /* by which grants near that device are filled */
	struct ssr_later later[SSR_BATCH_MOST];
	uint32_t laters;
	uint64_t gpus; /* bits of devices */
	/* Memory that workers share. */
	struct ssr_head *head;
	uint64_t *bits;
	uint32_t *told; /* [workers], with `plain`; else NULL, and those words are farther apart */
	uint32_t *known; /* [workers]: low halves of what each source has `taken`, for those who do not hold the lock */
	struct ssr_source *source; /* [workers] */
	int event_fd[SSR_VECTORS], timer_fd[SSR_VECTORS];
	/* Cores and threads. */
	uint32_t core[SSR_VECTORS], vectors;
	uint32_t machine;
	struct ssr_thread thread[SSR_VECTORS + 2 + LOOM_MAX_DEVICES];
	uint32_t threads;
	struct ssr_bell bottom, work;
	struct ssr_alarm interrupt[LOOM_MAX_DEVICES];
	uint32_t devices;
	int deaf;  /* atomic: an alarm has failed, so the host polls */
	int fresh; /* no sample of this launch has begun */
	pthread_mutex_t drain; /* rings -> queues, and in a monolithic path all that follows */
	pthread_mutex_t serving; /* the worker thread's part, which may wait while it holds this */
	uint32_t called;       /* somebody found `drain` taken */
	uint32_t stop;         /* futex: threads leave */
	int awake_fd;          /* eventfd: nobody sleeps while it is not 0 */
	int bedside_fd;	       /* eventfd: rung by tenants that are heeded; -1: nobody rings */
	uint32_t looks;	       /* futex: the worker thread reads the rings, and the watcher need not look */
	uint64_t wake_mask;	       /* of the turn under way: its tenants' requests end it */
	uint32_t dropping;     /* requests are ended with -ECANCELED instead of served */
	uint64_t patience_ns;  /* so long nothing may end while something is under way: SSR_PATIENCE_NS, but for tests */
	int timed;             /* a policy moderates interrupts */
	int plain;             /* a GPU is in the stack: see service.dev.h */
	/* Accounts. The serving thread writes, but for the stages' times, which are atomic. */
	uint64_t stage_ns[SSR_CLOCKS];
	uint64_t body_ns, filled, served, dropped, errors, turns, naps, roused;
	uint64_t asked_ns, steered_ns; /* when the policies were last asked to moderate and to steer */
	uint64_t route;
	uint64_t begun_ns;
	struct ssr_idle begun_idle;
	struct ssr_series series;
	struct loom_qos_queue seen[LOOM_MAX_TENANTS];
	uint32_t last_tenant;
};

/* An instance of any qos plug-in begins with this. */
struct qos {
	const struct loom_host *host;
	const char *name;
	struct service *service; /* NULL: another plug-in leads */
};

/* ---- service.c: the ops that all plug-ins share */
int qos_create(struct qos *q, const struct loom_host *host, const char *name, struct loom_error *err);
void qos_destroy(void *self);
int qos_lead(void *self, const struct loom_qos_stage *stage, uint32_t n, struct loom_error *err);
int qos_tenants(void *self, const struct loom_layout *layout, const struct loom_tenant *tenant,
		uint32_t n, struct loom_error *err);
int qos_grants(void *self, const struct loom_grant *grant, uint32_t n, struct loom_error *err);
int qos_need(void *self, const struct loom_layout *layout, struct loom_need *need,
	     struct loom_error *err);
int qos_init(void *self, const struct loom_layout *layout, const struct loom_view *view,
	     struct loom_error *err);
int qos_collect(void *self, const struct loom_layout *layout, const struct loom_view *view,
		struct loom_report *report, struct loom_error *err);
int qos_start(void *self, const struct loom_layout *layout, const struct loom_view *view,
	      const struct loom_segments *segments, struct loom_error *err);
void qos_stop(void *self);

/* create() of a plug-in whose instance is a struct TYPE with `base` and `opts`; then `...`, about *p. */
#define QOS_CREATE(TYPE, ...)                                                                      \
	static int create(const struct loom_host *host, const void *opts, void **self,             \
			  struct loom_error *err)                                                  \
	{                                                                                          \
		struct TYPE *p = host->alloc(host, sizeof(*p));                                    \
		int rc = qos_create(p ? &p->base : NULL, host, "qos_" #TYPE, err);                 \
		*self = p;                                                                         \
		if (rc)                                                                            \
			return rc;                                                                 \
		p->opts = opts;                                                                    \
		__VA_ARGS__;                                                                       \
		return 0;                                                                          \
	}

#define QOS_OPS_COMMON QOS_OPS(qos_collect)
#define QOS_OPS(collect_)                                                                          \
	.size = sizeof(struct loom_qos_ops), .create = create, .destroy = qos_destroy,             \
	.need = qos_need, .init = qos_init, .collect = collect_, .start = qos_start, .stop = qos_stop,                  \
	.lead = qos_lead, .tenants = qos_tenants, .grants = qos_grants

/* Descriptor and device half. */
#define QOS_PLUGIN(symbol, summary, rows_, opts_type, ops_)                                        \
	SSR_DEVICE_HALF(symbol)                                                                    \
	static const struct loom_qos_dev symbol##_cpu = {                                          \
		.size = sizeof(struct loom_qos_dev),                                               \
		.request = symbol##_request,                                                       \
		.wait = symbol##_wait,                                                             \
	};                                                                                         \
	LOOM_DEVICE_CODE(symbol##_code, symbol##_cpu, "service.dev.h", LOOM_CODE_FILE("service.dev.h") \
			 ".ascii \"SSR_DEVICE_HALF(" #symbol ")\\n\"\n");                          \
	LOOM_PLUGIN_DEFINE(QOS, #symbol, "0.1.0", "Apache-2.0", summary, .opts = rows_,            \
			   .opts_size = sizeof(opts_type), .ops = &(ops_), .dev = &symbol##_code)

/* ---- door.c */
int ssr_doors_open(struct service *s, struct loom_error *err);
void ssr_doors_close(struct service *s);
void ssr_doors_arm(struct service *s, uint64_t vectors); /* with the full fence that must follow */
void ssr_doors_shut(struct service *s);                  /* all; by the holder of `drain`, who arms them */
int ssr_door_wait(struct ssr_thread *t);                 /* 0: told to stop */
void ssr_doors_ring(struct service *s);                  /* wakes all, for the end */
uint64_t ssr_posted_from(const struct service *s, uint32_t first); /* `first`: a multiple of 64 */
int ssr_posted(struct service *s);                       /* some worker's bit is set, or its word has changed */
int ssr_posted_by(struct service *s, uint64_t tenants);  /* ... of one of these tenants */
int ssr_came(struct service *s, uint64_t tenants);       /* ... or is in its queue */
/* Between the two, a request of one of these tenants ends the sleep. Look whether one came in between. */
void ssr_listen(struct service *s, uint64_t tenants);
void ssr_listen_end(struct service *s);
void ssr_rouse_server(struct service *s); /* by whoever filled queues beside it, for those it listens to */
/* Sleeps until `until_ns`, as much as slack_ns later, a ring at the bedside, or the end of the service. */
void ssr_sleep(struct ssr_thread *t, uint64_t until_ns, uint64_t slack_ns);
/* Sleeps until about `until_ns`, exactly then if the call before foresaw it as its `then_ns`. */
void ssr_sleep_ahead(struct ssr_thread *t, uint64_t until_ns, uint64_t then_ns);
void ssr_awake(struct service *s, int awake); /* wakes who sleeps, and lets nobody fall asleep */

/* ---- bell.c */
int ssr_is_watched(const struct service *s); /* one top half looks for all, instead of waiting for its own door */
uint32_t ssr_watcher(const struct service *s); /* its vector */
void ssr_bell_ring(struct ssr_bell *b); /* rings do not add up */
int ssr_bell_wait(struct service *s, struct ssr_bell *b);

/* ---- alarm.c */
int ssr_alarms_open(struct service *s, const struct loom_layout *layout, struct loom_error *err);
void ssr_alarms_wake(struct service *s); /* for the end; no worker runs */
void ssr_alarms_close(struct service *s);
/* From now on a request that is not taken yet rings the watcher's door, once. */
void ssr_alarms_arm(struct service *s);
void ssr_controller(struct ssr_thread *t); /* the thread of a device */

/* ---- path.c */
int ssr_path_start(struct service *s, struct loom_error *err);
void ssr_path_stop(struct service *s);
#define SSR_PATIENCE_NS 30000000000ull /* longer than any request takes */
/* Drops what is under way; returns when nothing is, or LOOM_ETIMEDOUT. */
int ssr_path_quiet(struct service *s, struct loom_error *err);
void ssr_path_bind(struct service *s, uint64_t vectors); /* of threads that are bound to no door */

/* ---- fill.c */
uint32_t ssr_fill(struct service *s); /* holds `drain` */
uint64_t ssr_waiting(const struct service *s);

/* ---- order.c: who of a tenant's is served next */
int ssr_queue_open(struct ssr_queue *q, uint64_t calls, uint32_t order); /* enum loom_qos_order */
void ssr_queue_reset(struct ssr_queue *q); /* empty; nobody uses it */
void ssr_queue_close(struct ssr_queue *q);
uint64_t ssr_queue_waiting(const struct ssr_queue *q);
uint64_t ssr_queue_oldest_ns(const struct ssr_queue *q); /* 0: not known */
struct ssr_call *ssr_queue_take(struct ssr_queue *q); /* NULL: nobody waits */
int ssr_is_read(const struct ssr_call *call); /* of a file; whatever is not is a fence among them */

/* ---- serve.c */
void ssr_serve(struct ssr_thread *t, int fills); /* until nothing waits */
void ssr_complete(struct service *s, struct ssr_tenant *tenant, struct ssr_call *call, int64_t result,
		  uint64_t now_ns);
void ssr_drop(struct service *s); /* ends all that is queued, unserved */
void ssr_ask(struct ssr_thread *t, uint64_t now_ns); /* moderation and steering */

/* ---- work.c */
int64_t ssr_work(struct service *s, const struct ssr_call *call);
int64_t ssr_migrate(const struct ssr_call *call); /* the host's pages at call->at */

/* ---- grants.c */
int ssr_grants_resolve(struct service *s, const struct loom_layout *layout, const struct loom_segments *segments,
		       struct loom_error *err);
void ssr_grants_free(struct service *s);

/* ---- frames.c: grants near GPUs */
int ssr_near_open(struct service *s, struct ssr_grant *g, const struct loom_layout *layout, struct loom_error *err);
void ssr_near_close(struct service *s, struct ssr_grant *g);
void ssr_near_reset(struct ssr_grant *g); /* no page is in a frame; no worker runs */
/* 1: it is served, and will be completed by ssr_near_flush(); 0: its grant is no such. */
int ssr_near_add(struct service *s, struct ssr_call *call);
void ssr_near_flush(struct service *s, struct ssr_tenant *tenant);

/* ---- files.c: reads of one turn, submitted together */
#ifdef SSR_URING
#define SSR_FILES_DEFAULT 0 /* as struct loom_qos_path has them */
#define SSR_FILES_NAME "uring"
#else
#define SSR_FILES_DEFAULT 1
#define SSR_FILES_NAME "pread"
#endif
int ssr_files_open(struct service *s, struct loom_error *err);
void ssr_files_close(struct service *s);
/* 1: it will be completed by ssr_files_flush(); 0: do it yourself. */
int ssr_files_add(struct service *s, struct ssr_call *call);
void ssr_files_flush(struct service *s, struct ssr_tenant *tenant);
/* CPU time of io_uring's threads since the last call, booked; `all`: of those just begun, too. */
uint64_t ssr_files_charge(struct service *s, int all);

/* ---- heap.c */
int ssr_heap_open(const struct loom_host *host, struct ssr_heap *h, uint64_t bytes);
void ssr_heap_close(const struct loom_host *host, struct ssr_heap *h);
void ssr_heap_reset(struct ssr_heap *h);
int64_t ssr_heap_alloc(struct ssr_heap *h, char *base, uint64_t bytes); /* base NULL: no pages of the host */
int64_t ssr_heap_free(struct ssr_heap *h, char *base, uint64_t offset);
int ssr_heap_owns(const struct ssr_heap *h, uint64_t offset, uint64_t bytes);

/* ---- account.c */
uint64_t ssr_clock(clockid_t id); /* ns */
uint64_t ssr_now(void);
/* What this thread's CPU clock has advanced since the last call, booked on `stage`. */
uint64_t ssr_charge(struct ssr_thread *t, enum ssr_stage stage);
uint64_t ssr_cpu(const struct service *s); /* all that was booked */
void ssr_point(struct service *s, uint64_t now_ns);
void ssr_account_begin(struct service *s);
int ssr_account_report(struct service *s, struct loom_report *report, struct loom_error *err);
void ssr_histogram_add(struct ssr_histogram *h, uint64_t ns);
double ssr_histogram_at(const struct ssr_histogram *h, double share);

/* ---- idle.c: what the kernel says about idle cores */
void ssr_idle_read(const struct service *s, struct ssr_idle *idle);
uint64_t ssr_idle_core(uint32_t core, uint64_t *entries); /* ns of idleness; entries may be NULL */

#endif
