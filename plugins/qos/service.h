/* SPDX-License-Identifier: Apache-2.0 */
/* The service path on the host: declarations that its files share. Every qos plug-in contains the path; the plug-in
 * that leads the pipeline runs it. From the rings inward:
 *
 *   doorbell.c         where top halves wait; moderation and masking of interrupts
 *   event.c            how threads of the path wake each other
 *   interrupt.c        interrupts of GPUs, one thread for each
 *   threads.c          the threads, and what each does in which arrangement
 *   bottom_half.c      rings -> queues; each request is checked against its tenant's grants
 *   queue.c            which request of a tenant is served next
 *   service_rounds.c   rounds: the policies decide which tenant is served next
 *   services.c, files.c, heap.c   the services; device_frames.c: those for memory of GPUs
 *   completion.c       answers
 *   cpu_time.c, metrics.c, cpuidle.c   CPU time, latency, the metrics of a sample */
#ifndef QOS_SERVICE_H
#define QOS_SERVICE_H

#include <pthread.h>

#include <gpuloom/interrupt.h>

#include "service.dev.h"

#define QOS_PAGE 4096u
#define QOS_BATCH_MAX 256u
#define QOS_STAGES_MAX 16u

enum qos_stage { QOS_TOP = 0, QOS_BOTTOM, QOS_WORKER, QOS_CONTROLLER, QOS_STAGES };
enum { QOS_KERNEL = QOS_STAGES, QOS_CLOCKS }; /* threads that io_uring runs in the kernel */

/* ---- requests in flight ---- */

struct qos_tenant;
struct qos_grant;
struct qos_ring;

/* A checked request: the objects that it names are resolved, or `error` says what is wrong. */
struct qos_call {
	struct qos_ring *ring;
	uint64_t position; /* number of the request in its ring */
	uint64_t posted_ns;
	struct qos_grant *grant; /* grant of its buffer */
	char *at;
	uint64_t argument;
	uint32_t bytes;
	int32_t error; /* minus an errno; 0: serve the request */
	int32_t fd;
	uint16_t service;
	uint16_t busy; /* set by the bottom half, cleared by the completion */
};
_Static_assert(sizeof(struct qos_call) == 64, "a cache line");

/* Pending reads by their position in the file: each position has a list of call numbers. */
#define QOS_PLACES 4096u /* number of pages; larger files wrap around */
#define QOS_NONE ~0u
struct qos_scan {
	uint64_t some;	    /* bit w: full[w] is not 0 */
	uint64_t full[64];  /* one bit per position with pending reads */
	uint32_t first[QOS_PLACES];
	uint32_t *next;	    /* [calls] */
	uint32_t at;	    /* current position of the scan */
	uint32_t left;	    /* head of the list that the scan still serves at this position */
	uint32_t waiting;
};

#define QOS_PREFETCH 16u /* calls that are chosen and prefetched together */

/* A queue has one producer (the bottom half) and one consumer (the worker thread). A call's index is that of its slot,
 * so any call may be served first; `number` holds the order of arrival. The queue has room for all slots of the
 * tenant's rings. */
struct qos_queue {
	struct qos_call *call;
	uint32_t *number;
	uint64_t mask, bytes; /* bytes: size of the whole allocation, from `call` on */
	uint64_t head __attribute__((aligned(64))); /* stored by the producer */
	uint64_t tail __attribute__((aligned(64))); /* consumer: number of calls taken from `number` */
	uint64_t gone;				    /* consumer: number of calls passed on to be served */
	struct qos_scan *scan;
	uint32_t ahead[QOS_PREFETCH], ahead_at, ahead_end; /* the calls that are served next */
};

/* The state of a heap of ALLOC and FREE. */
struct qos_heap {
	uint64_t pages;
	uint32_t *extent; /* [pages]: the length of an allocation, at its first page; else 0 */
	uint64_t *taken;  /* one bit per page */
	uint64_t next;    /* where the next search starts */
};

struct qos_frames;
struct qos_grant {
	struct loom_grant is;
	/* is.at at the host's address; for a grant in device memory, the host copy of a demand buffer, else NULL */
	char *at;
	struct qos_heap heap;
	struct qos_frames *frames; /* used for a demand buffer in device memory */
	struct qos_grant *next;
};

/* Times in 16 steps per power of two, so that the error is below 1/16. */
#define QOS_HISTOGRAM 1024u
struct qos_histogram {
	uint64_t count, bucket[QOS_HISTOGRAM];
};

struct qos_tenant {
	struct loom_tenant is;
	struct qos_queue queue;
	struct qos_grant **grant; /* [grants] */
	uint32_t grants;
	uint64_t served, errors, cpu_ns;
	struct qos_histogram latency;
};

/* ---- threads ------------------------------------------------------------------------------------ */

/* An eventcount (lib/eventcount.h) on which one thread sleeps until it is notified. Notifications do not add up. */
struct qos_event {
	uint32_t rings, waiting;
	uint32_t seen; /* the last notification for which the waiting thread returned */
};

struct service;
struct qos_thread {
	struct service *s;
	pthread_t id;
	int tid, started;
	enum qos_stage role;
	uint32_t vector; /* vector of a top half; device of a controller */
	uint32_t acknowledged;  /* value of the doorbell's `rings` that this thread has acknowledged */
	uint64_t clock_ns; /* the thread's CPU clock at the last charge */
	uint64_t slack_ns; /* timer slack of the thread, as last set */
	int ahead_fd[2];   /* timers for the next two sleeps: qos_sleep_ahead() */
	uint64_t ahead_ns[2];
	uint64_t start_clock_ns; /* CPU clock at the start of the sample */
	uint64_t start_switches[2];
	int start_unreadable; /* 1: start_switches could not be read */
};

/* CPU time and wall time, for the peak 1 s window. */
struct qos_cpu_point {
	uint64_t ns, cpu_ns;
};
#define QOS_POINTS 16384u
struct qos_cpu_series {
	struct qos_cpu_point point[QOS_POINTS];
	uint64_t head, tail;
	uint64_t peak_ns; /* most CPU time in any window of 1 s so far */
};

/* The host's own state of a worker's ring. The host does not trust shared memory, which a tenant could have written. */
struct qos_ring {
	uint32_t *published;
	struct qos_slot *slot; /* [slots] */
	uint64_t *answer;      /* [slots] */
	uint32_t slots, shift; /* slots = 0: the worker belongs to no tenant */
	uint32_t tenant, device;
	uint32_t first; /* call number of slot 0 */
	int broken;     /* 1: the ring's counters are inconsistent, so it is not served any more */
	uint64_t taken; /* number of requests that the bottom half has read */
	uint64_t served; /* number of completed requests; the worker thread stores it */
};

/* An answer that is sent when its copies are complete. */
struct qos_deferred {
	struct qos_call *call;
	int64_t result;
};

/* The interrupt of a device. */
struct qos_device_interrupt {
	struct loom_interrupt *interrupt; /* NULL: no interrupts */
	struct qos_event armed;
	uint64_t taken; /* number of requests read from the device's workers, in all samples of a launch */
};

struct qos_files;
#define QOS_IDLE_STATES 10 /* the limit of the kernel: CPUIDLE_STATE_MAX */
struct qos_idle {
	uint64_t ns, entries;
	uint64_t state_ns[QOS_IDLE_STATES]; /* the last one is the deepest */
	uint32_t states;		    /* number of states that all cores have */
	int consumed;
};

/* ---- the service -------------------------------------------------------------------------------- */

struct service {
	const struct loom_host *host;
	const char *name;
	struct loom_qos_stage stage[QOS_STAGES_MAX];
	uint32_t stages;
	struct loom_qos_path path;
	struct qos_tenant tenant[LOOM_MAX_TENANTS];
	uint32_t tenants, workers;
	struct loom_grant *granted; /* the core's list, until the service starts */
	uint32_t granted_count;
	struct qos_grant *grants;
	int fault_fd; /* a userfaultfd; -1: no demand buffer */
	struct qos_files *files;
	struct loom_interrupt *line[LOOM_MAX_DEVICES]; /* copies to grants in that device's memory */
	struct qos_deferred deferred[QOS_BATCH_MAX];
	uint32_t deferred_count;
	uint64_t gpus; /* one bit for each GPU */
	/* Memory that is shared with the workers. */
	struct qos_head *head;
	uint64_t *bits;
	uint32_t *published; /* [workers] with `by_count`; else NULL, and each word has a cache line of its own */
	uint32_t *consumed; /* [workers]: low half of each ring's `taken`, for readers that do not hold `fill_lock` */
	struct qos_ring *ring; /* [workers] */
	int event_fd[QOS_VECTORS], timer_fd[QOS_VECTORS];
	/* Cores and threads. */
	uint32_t core[QOS_VECTORS], vectors;
	uint32_t machine;
	struct qos_thread thread[QOS_VECTORS + 2 + LOOM_MAX_DEVICES];
	uint32_t threads;
	struct qos_event bottom, work;
	struct qos_device_interrupt interrupt[LOOM_MAX_DEVICES];
	uint32_t devices;
	int interrupts_failed;  /* atomic: waiting for an interrupt has failed, so the host polls */
	int first_sample; /* 1: no sample of this launch has started */
	/* held by the thread that moves requests from rings to queues; in a monolithic path also while it serves
	 * them */
	pthread_mutex_t fill_lock;
	pthread_mutex_t serve_lock; /* held while requests are served, sleeps included */
	uint32_t fill_requested;       /* atomic: a trylock of `fill_lock` has failed, so its holder fills again */
	uint32_t stop;         /* futex; 1: threads must exit */
	int awake_fd;          /* eventfd: while its count is not 0, no thread of the path sleeps */
	int server_fd;	       /* eventfd of `server_doorbell`; -1: unused */
	uint32_t server_polls; /* futex: 1 while the worker thread reads the rings, so that the poller pauses */
	uint64_t wake_mask;	       /* requests of these tenants end the current round */
	uint32_t dropping;     /* atomic: requests are answered with -ECANCELED and not served */
	uint64_t quiesce_ns;  /* limit of qos_path_quiesce() without progress: QOS_QUIESCE_NS, shorter in tests */
	int timed;             /* 1: a policy moderates interrupts */
	int by_count;             /* 1: a GPU is in the stack, so the host compares counts: service.dev.h */
	/* Statistics. The serving thread writes them, except the stages' times, which are atomic. */
	uint64_t stage_ns[QOS_CLOCKS];
	uint64_t body_ns, filled, served, dropped, errors, rounds, naps, woken;
	uint64_t moderated_ns, steered_ns; /* when the policies last decided about moderation and steering */
	uint64_t route;
	uint64_t start_ns;
	struct qos_idle start_idle;
	struct qos_cpu_series series;
	struct loom_qos_queue seen[LOOM_MAX_TENANTS];
	uint32_t last_tenant;
};

/* The first member of every instance of a qos plug-in. */
struct qos {
	const struct loom_host *host;
	const char *name;
	struct service *service; /* NULL: another plug-in leads */
};

/* ---- ops.c: the ops that all plug-ins share */
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

/* Defines create() of a plug-in whose instance is a struct TYPE with `base` and `opts`. `...`: statements about *p. */
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
#define QOS_OPS(collect_)                                                                                              \
	.size = sizeof(struct loom_qos_ops), .create = create, .destroy = qos_destroy, .need = qos_need,               \
	.init = qos_init, .collect = collect_, .start = qos_start, .stop = qos_stop, .lead = qos_lead,                 \
	.tenants = qos_tenants, .grants = qos_grants

/* Defines the descriptor and the device half. */
#define QOS_PLUGIN(symbol, summary, rows_, opts_type, ops_)                                        \
	QOS_DEVICE_HALF(symbol)                                                                    \
	static const struct loom_qos_dev symbol##_cpu = {                                          \
		.size = sizeof(struct loom_qos_dev),                                               \
		.request = symbol##_request,                                                       \
		.wait = symbol##_wait,                                                             \
	};                                                                                         \
	LOOM_DEVICE_CODE(symbol##_code, symbol##_cpu, "service.dev.h", LOOM_CODE_FILE("service.dev.h") \
			 ".ascii \"QOS_DEVICE_HALF(" #symbol ")\\n\"\n");                          \
	LOOM_PLUGIN_DEFINE(QOS, #symbol, "0.1.0", "Apache-2.0", summary, .opts = rows_,            \
			   .opts_size = sizeof(opts_type), .ops = &(ops_), .dev = &symbol##_code)

/* ---- doorbell.c */
int qos_doorbells_open(struct service *s, struct loom_error *err);
void qos_doorbells_close(struct service *s);
void qos_doorbells_arm(struct service *s, uint64_t vectors); /* includes the full fence that must follow */
/* called by the holder of `fill_lock`, which arms all doorbells again */
void qos_doorbells_disarm(struct service *s);
int qos_doorbell_wait(struct qos_thread *t);                 /* returns 0 when the service stops */
void qos_doorbells_ring_all(struct service *s);                  /* called at the end of the service */
/* Returns the bits of 64 workers; first: a multiple of 64. */
uint64_t qos_posted_from(const struct service *s, uint32_t first);
int qos_posted(struct service *s);                       /* a ring has unread requests */
int qos_posted_by(struct service *s, uint64_t tenants);  /* a ring has unread requests of one of these tenants */
int qos_has_request_of(struct service *s, uint64_t tenants);       /* a ring or queue of these tenants has requests */
/* Between these two calls a request of one of these tenants ends the server's sleep. Callers check qos_has_request_of()
 * after arming. */
void qos_wake_arm(struct service *s, uint64_t tenants);
void qos_wake_disarm(struct service *s);
void qos_wake_server_for_queued(struct service *s); /* called by threads that fill queues beside the server */
/* Sleeps until `until_ns`, up to slack_ns longer, or until the server doorbell rings or the service ends. */
void qos_sleep(struct qos_thread *t, uint64_t until_ns, uint64_t slack_ns);
/* Sleeps until about `until_ns`; exactly until then if the previous call predicted it as `then_ns`. */
void qos_sleep_ahead(struct qos_thread *t, uint64_t until_ns, uint64_t then_ns);
/* 1: wakes sleeping threads, and sleeps return at once; 0: undoes that. */
void qos_keep_awake(struct service *s, int awake);

/* ---- event.c */
int qos_is_polled(const struct service *s); /* one top half polls all rings, and the others sleep */
uint32_t qos_poller(const struct service *s); /* vector of that top half */
void qos_event_notify(struct qos_event *b);
int qos_event_wait(struct service *s, struct qos_event *b);

/* ---- interrupt.c */
int qos_interrupts_open(struct service *s, const struct loom_layout *layout, struct loom_error *err);
void qos_interrupts_wake(struct service *s); /* called at the end of the service, when no worker runs */
void qos_interrupts_close(struct service *s);
/* From now on a request that is not read yet rings the poller's doorbell, once. */
void qos_interrupts_arm(struct service *s);
void qos_controller(struct qos_thread *t); /* main function of the thread of a device's interrupt */

/* ---- threads.c */
int qos_path_start(struct service *s, struct loom_error *err);
void qos_path_stop(struct service *s);
#define QOS_QUIESCE_NS 30000000000ull /* longer than any request takes */
/* Drops all requests in flight. Returns 0 when none is left, or LOOM_ETIMEDOUT without progress. */
int qos_path_quiesce(struct service *s, struct loom_error *err);
void qos_path_bind(struct service *s, uint64_t vectors); /* binds all threads but top halves */

/* ---- bottom_half.c */
uint32_t qos_fill(struct service *s); /* the caller holds `fill_lock` */
uint64_t qos_waiting(const struct service *s);

/* ---- queue.c: which of a tenant's requests is served next */
int qos_queue_open(struct qos_queue *q, uint64_t calls, uint32_t order); /* order: enum loom_qos_order */
void qos_queue_reset(struct qos_queue *q); /* the queue is empty and not in use */
void qos_queue_close(struct qos_queue *q);
uint64_t qos_queue_waiting(const struct qos_queue *q);
uint64_t qos_queue_oldest_ns(const struct qos_queue *q); /* returns 0 if unknown */
struct qos_call *qos_queue_take(struct qos_queue *q); /* returns NULL if the queue is empty */
int qos_is_read(const struct qos_call *call); /* a read of a file; every other request is a fence between reads */

/* ---- service_rounds.c, completion.c */
void qos_serve(struct qos_thread *t, int fills); /* serves until all queues are empty */
void qos_complete(struct service *s, struct qos_tenant *tenant, struct qos_call *call, int64_t result,
		  uint64_t now_ns);
void qos_drop_queued(struct service *s); /* completes all queued requests without serving them */
void qos_moderate(struct qos_thread *t, uint64_t now_ns); /* asks the policies for moderation and steering */

/* ---- services.c */
int64_t qos_execute(struct service *s, const struct qos_call *call);
int64_t qos_migrate_pages(const struct qos_call *call); /* moves the host's pages at call->at */

/* ---- grants.c */
int qos_grants_resolve(struct service *s, const struct loom_layout *layout, const struct loom_segments *segments,
		       struct loom_error *err);
void qos_grants_free(struct service *s);

/* ---- device_frames.c: grants in memory of GPUs */
int qos_frames_open(struct service *s, struct qos_grant *g, const struct loom_layout *layout, struct loom_error *err);
void qos_frames_close(struct service *s, struct qos_grant *g);
void qos_frames_reset(struct qos_grant *g); /* frees all frames; no worker runs */
/* Returns 1 if the request is served, and qos_frames_flush() will complete it; 0: its grant is not in GPU memory. */
int qos_frames_add(struct service *s, struct qos_call *call);
void qos_frames_flush(struct service *s, struct qos_tenant *tenant);

/* ---- files.c: reads of one round, submitted together */
#ifdef QOS_URING
#define QOS_FILES_DEFAULT 0 /* as in struct loom_qos_path */
#define QOS_FILES_NAME "uring"
#else
#define QOS_FILES_DEFAULT 1
#define QOS_FILES_NAME "pread"
#endif
int qos_files_open(struct service *s, struct loom_error *err);
void qos_files_close(struct service *s);
/* Returns 1 if qos_files_flush() will complete the request; 0 if it was not taken. */
int qos_files_add(struct service *s, struct qos_call *call);
void qos_files_flush(struct service *s, struct qos_tenant *tenant);
/* Charges the CPU time of io_uring's threads since the last call. all: finds new threads first. */
uint64_t qos_files_charge(struct service *s, int all);

/* ---- heap.c */
int qos_heap_open(const struct loom_host *host, struct qos_heap *h, uint64_t bytes);
void qos_heap_close(const struct loom_host *host, struct qos_heap *h);
void qos_heap_reset(struct qos_heap *h);
int64_t qos_heap_alloc(struct qos_heap *h, char *base, uint64_t bytes); /* base = NULL: the heap is in device memory */
int64_t qos_heap_free(struct qos_heap *h, char *base, uint64_t offset);
int qos_heap_owns(const struct qos_heap *h, uint64_t offset, uint64_t bytes);

/* ---- cpu_time.c, metrics.c */
uint64_t qos_clock(clockid_t id); /* returns ns */
uint64_t qos_now(void);
/* Charges to `stage` the advance of this thread's CPU clock since the last call, and returns it. */
uint64_t qos_charge(struct qos_thread *t, enum qos_stage stage);
uint64_t qos_cpu(const struct service *s); /* returns all charged CPU time */
void qos_cpu_point(struct service *s, uint64_t now_ns);
void qos_account_begin(struct service *s);
int qos_account_report(struct service *s, struct loom_report *report, struct loom_error *err);
void qos_histogram_add(struct qos_histogram *h, uint64_t ns);
double qos_histogram_at(const struct qos_histogram *h, double share);

/* ---- cpuidle.c */
void qos_idle_read(const struct service *s, struct qos_idle *idle);
uint64_t qos_idle_core(uint32_t core, uint64_t *entries); /* returns the idle time in ns; `entries` may be NULL */
void qos_idle_report(const struct service *s, struct loom_report *report, double seconds); /* since s->start_idle */

#endif
