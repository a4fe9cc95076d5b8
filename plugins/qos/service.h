/* SPDX-License-Identifier: Apache-2.0 */
/* The service path on the host, which serves the requests of workers: declarations that its files share. Every qos plug-in
 * contains the path; the plug-in that leads the pipeline runs it. The files, in the order in which a request passes them:
 *
 *   doorbell.c         doorbells, at which top halves wait; moderation and masking of interrupts
 *   event.c            wake-ups between threads of the path
 *   interrupt.c        interrupts of GPUs, with a thread for each GPU
 *   threads.c          the threads, and the work of each thread in each arrangement of the path
 *   bottom_half.c      moves requests from rings to queues, and checks them against the grants of their tenants
 *   queue.c            chooses the request of a tenant that is served next
 *   service_rounds.c   rounds, for each of which the policies choose a tenant
 *   services.c, heap.c   the services; device_frames.c: the services for memory of GPUs
 *   completion.c       answers to requests
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

/* ---- requests in flight ---- */

struct qos_tenant;
struct qos_grant;
struct qos_ring;

/* A request that the bottom half has checked. The numbers of grants in the request are replaced by pointers and
 * descriptors. */
struct qos_call {
	struct qos_ring *ring;
	uint64_t position;  /* number of requests in this ring before this one */
	uint64_t posted_ns; /* time at which the worker posted the request; 0: unknown */
	struct qos_grant *grant; /* grant of its buffer */
	char *at;                /* host address of its buffer */
	uint64_t argument;
	uint32_t bytes;
	int32_t error; /* minus an errno if the check has failed; 0: serve the request */
	int32_t fd;
	uint16_t service;
	uint16_t busy; /* 1: not completed yet; set by the bottom half, cleared by the completion */
};
_Static_assert(sizeof(struct qos_call) == 64, "a cache line");

/* Pending reads by their position in the file, in pages: each position has a list of call numbers. */
#define QOS_PLACES 4096u /* number of positions; page n of a larger file has position n % QOS_PLACES */
#define QOS_NONE ~0u
struct qos_scan {
	uint64_t some;	    /* bit w: full[w] is not 0 */
	uint64_t full[64];  /* a bit per position; 1: reads are pending there */
	uint32_t first[QOS_PLACES]; /* [position]: first call number of its list; valid if its bit in full[] is 1 */
	uint32_t *next;	    /* [call number]: next call number in the same list, or QOS_NONE */
	uint32_t at;	    /* current position of the scan */
	uint32_t left;	    /* head of the list of calls that the scan still has to serve at this position, or QOS_NONE */
	uint32_t waiting;   /* number of pending reads in all lists */
};

#define QOS_PREFETCH 16u /* number of calls that are chosen and prefetched together */

/* A queue has one producer (the bottom half) and one consumer (the worker thread). A call's number is that of its slot, so
 * calls may be served in any order. The array `number` holds the order of arrival. The queue has room for all slots of the
 * tenant's rings. */
struct qos_queue {
	struct qos_call *call; /* [call number] */
	uint32_t *number;      /* [position & mask]: call number */
	uint64_t mask, bytes; /* bytes: size of the whole allocation, from `call` on */
	uint64_t head __attribute__((aligned(64))); /* number of calls put into `number`; the producer stores it */
	uint64_t tail __attribute__((aligned(64))); /* number of calls taken from `number`; the consumer stores it */
	uint64_t gone;				    /* number of calls that qos_queue_take() has returned */
	struct qos_scan *scan;                      /* NULL: requests are served in the order of arrival */
	/* numbers of the next calls, in the entries from ahead_at to ahead_end */
	uint32_t ahead[QOS_PREFETCH], ahead_at, ahead_end;
};

/* The state of a heap for ALLOC and FREE. */
struct qos_heap {
	uint64_t pages;
	uint32_t *extent; /* [page]: pages of the allocation that starts at this page; 0: none starts here */
	uint64_t *taken;  /* a bit per page; 1: allocated */
	uint64_t next;    /* number of the page at which the next search starts */
};

struct qos_frames;
struct qos_grant {
	struct loom_grant is;
	/* host address of the granted memory; for a demand buffer in device memory, of the host's copy; else NULL */
	char *at;
	struct qos_heap heap;
	struct qos_frames *frames; /* NULL: the grant is not a demand buffer in device memory */
	struct qos_grant *next;
};

/* A histogram of times with 16 buckets per power of two, so that the error is below 1/16. */
#define QOS_HISTOGRAM 1024u
struct qos_histogram {
	uint64_t count, bucket[QOS_HISTOGRAM];
};

struct qos_tenant {
	struct loom_tenant is;
	struct qos_queue queue;
	struct qos_grant **grant; /* [number of the grant, as requests name it] */
	uint32_t grants;
	uint64_t served, errors, cpu_ns; /* of this sample */
	struct qos_histogram latency;
};

/* ---- threads ------------------------------------------------------------------------------------ */

/* An eventcount (lib/eventcount.h) on which one thread sleeps until it is notified. Notifications do not add up. */
struct qos_event {
	uint32_t rings, waiting; /* number of notifications; 1: the thread sleeps, or is about to */
	uint32_t seen; /* value of `rings` when qos_event_wait() last returned */
};

struct service;
struct qos_thread {
	struct service *s;
	pthread_t id;
	int tid, started;
	enum qos_stage role;
	/* for a top half: its vector, which is the index of a core; for a controller: the index of its device */
	uint32_t vector;
	uint32_t acknowledged;  /* value of the doorbell's `rings` that this thread has acknowledged */
	uint64_t clock_ns; /* the thread's CPU clock at the last call of qos_charge() */
	uint64_t slack_ns; /* timer slack of the thread, as last set */
	int ahead_fd[2];   /* timers for the next two sleeps: qos_sleep_ahead() */
	uint64_t ahead_ns[2];    /* times at which these timers expire */
	uint64_t start_clock_ns; /* the thread's CPU clock at the start of the sample */
	uint64_t start_switches[2]; /* voluntary and involuntary context switches at the start of the sample */
	int start_unreadable; /* errno if start_switches could not be read */
};

/* The CPU time of the path at one time. A series of such points gives the 1 s window with the most CPU time. */
struct qos_cpu_point {
	uint64_t ns, cpu_ns;
};
#define QOS_POINTS 16384u
struct qos_cpu_series {
	struct qos_cpu_point point[QOS_POINTS]; /* a ring */
	uint64_t head, tail; /* the ring holds points from number `tail` to number `head` - 1 */
	uint64_t peak_ns; /* most CPU time in any window of 1 s so far */
};

/* The host's private state of a worker's ring. It is not in shared memory, where a tenant could overwrite it. */
struct qos_ring {
	uint32_t *published;   /* the worker's published count: service.dev.h */
	struct qos_slot *slot; /* [slots] */
	uint64_t *answer;      /* [slots] */
	uint32_t slots, shift; /* slots = 1 << shift; slots = 0: the worker belongs to no tenant */
	uint32_t tenant, device; /* of the worker */
	uint32_t first; /* call number of slot 0 */
	int broken;     /* 1: the published count is invalid, so the ring is not served any more */
	uint64_t taken; /* number of requests that the bottom half has read */
	uint64_t served; /* number of completed requests; only the serving thread stores it */
};

/* An answer that is sent when the copies to device memory on which it depends are complete. */
struct qos_deferred {
	struct qos_call *call;
	int64_t result;
};

/* The interrupt of a device. */
struct qos_device_interrupt {
	struct loom_interrupt *interrupt; /* NULL: the device has no interrupt */
	struct qos_event armed;           /* notified when the controller must wait for the next interrupt */
	uint64_t taken; /* number of requests read from the device's workers, in all samples of this launch */
};

#define QOS_IDLE_STATES 10 /* the limit of the kernel: CPUIDLE_STATE_MAX */
/* Idle time of the path's cores, from the kernel's counters. */
struct qos_idle {
	uint64_t ns, entries;               /* time in all idle states; number of times that a core entered one */
	uint64_t state_ns[QOS_IDLE_STATES]; /* [state]: time in this state; the last state is the deepest */
	uint32_t states;		    /* number of states that all cores have */
	int counted;                        /* 1: the kernel has counters */
	int unreadable;                     /* errno if one could not be read */
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
	struct loom_grant *granted; /* copy of the core's list of grants */
	uint32_t granted_count;
	struct qos_grant *grants; /* list of the resolved grants, while the service runs */
	int fault_fd; /* a userfaultfd; -1: there is no demand buffer in host memory */
	struct loom_interrupt *line[LOOM_MAX_DEVICES]; /* [device]: copies to and from its memory; NULL: not needed */
	struct qos_deferred deferred[QOS_BATCH_MAX];
	uint32_t deferred_count;
	uint64_t gpus; /* a bit per device; 1: a GPU */
	/* Memory that the host shares with the workers, and the state of rings. */
	struct qos_head *head;
	uint64_t *bits;
	uint32_t *published; /* [worker]: published counts, with `by_count`; else NULL, as each has a cache line of its own */
	uint32_t *consumed; /* [worker]: low half of the ring's `taken`, for readers that do not hold `fill_lock` */
	struct qos_ring *ring; /* [worker] */
	int event_fd[QOS_VECTORS], timer_fd[QOS_VECTORS]; /* [vector]: eventfd and timer of the vector's doorbell */
	/* Cores and threads. */
	uint32_t core[QOS_VECTORS], vectors; /* [vector]: number of its core in the system; number of vectors */
	uint32_t machine; /* number of cores that this process may use */
	struct qos_thread thread[QOS_VECTORS + 2 + LOOM_MAX_DEVICES];
	uint32_t threads;
	struct qos_event bottom, work;
	struct qos_device_interrupt interrupt[LOOM_MAX_DEVICES];
	uint32_t devices;
	int interrupts_failed;  /* atomic: 1: a wait for an interrupt has failed, so the host polls */
	int first_sample; /* 1: no sample of this launch has started */
	/* held by the thread that moves requests from rings to queues; in a monolithic path also while the thread serves
	 * requests */
	pthread_mutex_t fill_lock;
	pthread_mutex_t serve_lock; /* held by the serving thread while it serves requests or sleeps between rounds */
	/* atomic: 1: a trylock of `fill_lock` has failed, so the holder of the lock fills once more */
	uint32_t fill_requested;
	uint32_t stop;         /* atomic: 1: threads must exit */
	int awake_fd;          /* eventfd; while its count is not 0, no thread of the path sleeps */
	int server_fd;	       /* eventfd of `server_doorbell`; -1: unused */
	uint32_t server_polls; /* futex: 1: the worker thread reads the rings, so the polling top half pauses */
	uint64_t wake_mask;	       /* a bit per tenant; 1: a request of this tenant ends the current round */
	uint32_t dropping;     /* atomic: 1: requests are answered with -ECANCELED and not served */
	/* time without progress after which qos_path_quiesce() gives up, in ns: QOS_QUIESCE_NS, shorter in tests */
	uint64_t quiesce_ns;
	int timed;             /* 1: a policy moderates interrupts */
	int by_count;             /* 1: a GPU is in the stack, so the host compares counts: service.dev.h */
	/* Statistics. The serving thread writes them, except stage_ns, which is atomic. */
	uint64_t stage_ns[QOS_STAGES]; /* [enum qos_stage]: CPU time */
	uint64_t body_ns, filled, served, dropped, errors, rounds, naps, woken;
	uint64_t moderated_ns, steered_ns; /* times at which the policies last decided about moderation and steering */
	uint64_t route; /* a bit per vector; 1: its core takes interrupts */
	uint64_t start_ns; /* start of the sample */
	struct qos_idle start_idle;
	struct qos_cpu_series series;
	struct loom_qos_queue seen[LOOM_MAX_TENANTS]; /* [tenant]: its queue, as load_of() passes it to policies */
	uint32_t last_tenant;                         /* the tenant that round robin chose last */
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

/* Defines create() of a plug-in whose instance is a struct TYPE with the fields `base` and `opts`. The further arguments are
 * statements that initialise *p. */
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
void qos_doorbells_arm(struct service *s, uint64_t vectors); /* ends with a full fence, so that the caller may read the rings */
/* called by the holder of `fill_lock`, which arms all doorbells again */
void qos_doorbells_disarm(struct service *s);
int qos_doorbell_wait(struct qos_thread *t);                 /* returns 0 if the service stops */
void qos_doorbells_ring_all(struct service *s);                  /* ends the waits of all top halves */
/* Returns a bit for each of 64 workers; 1: its ring has unread requests. first: the first worker, a multiple of 64. */
uint64_t qos_posted_from(const struct service *s, uint32_t first);
int qos_posted(struct service *s);                       /* returns whether a ring has unread requests */
int qos_posted_by(struct service *s, uint64_t tenants);  /* like qos_posted(), but only for the rings of these tenants */
int qos_has_request_of(struct service *s, uint64_t tenants);       /* like qos_posted_by(), but also checks the queues */
/* After qos_wake_arm() and until qos_wake_disarm(), a request of one of these tenants ends a sleep of the serving thread.
 * The caller checks qos_has_request_of() between arming and the sleep. tenants: a bit per tenant. */
void qos_wake_arm(struct service *s, uint64_t tenants);
void qos_wake_disarm(struct service *s);
/* called by threads other than the serving thread after they have filled queues */
void qos_wake_server_for_queued(struct service *s);
/* Sleeps until `until_ns`, or up to slack_ns longer. The server doorbell and qos_keep_awake() end the sleep earlier. */
void qos_sleep(struct qos_thread *t, uint64_t until_ns, uint64_t slack_ns);
/* Sleeps until about `until_ns`. then_ns: prediction of `until_ns` in the next call; if the prediction is good, the next sleep
 * needs no new timer. */
void qos_sleep_ahead(struct qos_thread *t, uint64_t until_ns, uint64_t then_ns);
/* awake: 1: ends the sleeps of qos_sleep() and qos_sleep_ahead(), and keeps later calls of them from sleeping. 0: later calls
 * sleep again. */
void qos_keep_awake(struct service *s, int awake);

/* ---- event.c */
int qos_is_polled(const struct service *s); /* returns 1 if one top half polls all rings while all other top halves sleep */
uint32_t qos_poller(const struct service *s); /* returns the vector of the polling top half */
int qos_is_spread(const struct service *s); /* returns 1 if GPUs interrupt the cores in turn, and no top half polls */
void qos_event_notify(struct qos_event *b);
int qos_event_wait(struct service *s, struct qos_event *b);

/* ---- interrupt.c */
int qos_interrupts_open(struct service *s, const struct loom_layout *layout, struct loom_error *err);
void qos_interrupts_wake(struct service *s); /* ends the waits of the interrupt controllers, so that these threads can exit */
void qos_interrupts_close(struct service *s);
/* Makes each GPU's controller ring a doorbell once, when there is a request that was not read. */
void qos_interrupts_arm(struct service *s);
void qos_controller(struct qos_thread *t); /* main function of the thread that waits for a device's interrupt */

/* ---- threads.c */
int qos_path_start(struct service *s, struct loom_error *err);
void qos_path_stop(struct service *s);
#define QOS_QUIESCE_NS 30000000000ull /* longer than any request takes */
/* Drops all requests in flight. Returns 0 when no request is left, or LOOM_ETIMEDOUT if none completes for long. */
int qos_path_quiesce(struct service *s, struct loom_error *err);
void qos_path_bind(struct service *s, uint64_t vectors); /* binds all threads but top halves to the cores of these vectors */

/* ---- bottom_half.c */
uint32_t qos_fill(struct service *s); /* called with `fill_lock`; returns the number of requests moved */
uint64_t qos_waiting(const struct service *s); /* returns the number of requests in all queues */

/* ---- queue.c: chooses which request of a tenant is served next */
int qos_queue_open(struct qos_queue *q, uint64_t calls, uint32_t order); /* order: enum loom_qos_order */
void qos_queue_reset(struct qos_queue *q); /* called while no thread uses the queue; empties it */
void qos_queue_close(struct qos_queue *q);
uint64_t qos_queue_waiting(const struct qos_queue *q);
uint64_t qos_queue_oldest_ns(const struct qos_queue *q); /* returns 0 if unknown */
struct qos_call *qos_queue_take(struct qos_queue *q); /* returns NULL if the queue is empty */
int qos_is_read(const struct qos_call *call); /* returns 1 for a read of a file; other requests are fences between reads */

/* ---- service_rounds.c, completion.c */
void qos_serve(struct qos_thread *t, int fills); /* serves until all queues are empty; fills: 1: with `fill_lock` held */
void qos_complete(struct service *s, struct qos_tenant *tenant, struct qos_call *call, int64_t result,
		  uint64_t now_ns);
void qos_drop_queued(struct service *s); /* completes all queued requests without serving them */
void qos_moderate(struct qos_thread *t, uint64_t now_ns); /* lets the policies decide about moderation and steering */

/* ---- services.c */
int64_t qos_execute(struct service *s, const struct qos_call *call); /* returns the result, or minus an errno */
int64_t qos_migrate_pages(const struct qos_call *call); /* moves the host's pages at call->at to a NUMA node */

/* ---- grants.c */
int qos_grants_resolve(struct service *s, const struct loom_layout *layout, const struct loom_segments *segments,
		       struct loom_error *err);
void qos_grants_free(struct service *s);

/* ---- device_frames.c: grants in memory of GPUs */
int qos_frames_open(struct service *s, struct qos_grant *g, const struct loom_layout *layout, struct loom_error *err);
void qos_frames_close(struct service *s, struct qos_grant *g);
void qos_frames_reset(struct qos_grant *g); /* frees all frames; called while no worker runs */
/* Serves a request whose grant is in GPU memory, and returns 1; qos_frames_flush() will complete it. Else returns 0. */
int qos_frames_add(struct service *s, struct qos_call *call);
void qos_frames_flush(struct service *s, struct qos_tenant *tenant);

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
/* Returns the CPU time that this thread has taken since its last call of this function, and adds it to stage_ns[stage]. */
uint64_t qos_charge(struct qos_thread *t, enum qos_stage stage);
uint64_t qos_cpu(const struct service *s); /* returns all charged CPU time */
void qos_cpu_point(struct service *s, uint64_t now_ns);
void qos_account_begin(struct service *s);
int qos_account_report(struct service *s, struct loom_report *report, struct loom_error *err);
void qos_histogram_add(struct qos_histogram *h, uint64_t ns);
double qos_histogram_at(const struct qos_histogram *h, double share);

/* ---- cpuidle.c */
void qos_idle_read(const struct service *s, struct qos_idle *idle);
/* Reports the time since s->start_idle. Returns 0, or errno if a counter of the kernel could not be read. */
int qos_idle_report(const struct service *s, struct loom_report *report, double seconds);

#endif
