/* SPDX-License-Identifier: Apache-2.0 */
/* A plug-in that passes all calls on to another plug-in of its kind, and writes the name of each host op that is called to
 * a file, with "elsewhere" if a thread other than that of create() calls it. tests/check-pages.sh compiles it once per
 * kind:
 *
 *   cc -DKIND=SCHED -DNAME='"sched_recorder"' -DOPS=loom_sched_ops ...
 *
 * RECORDED is the path of the other plug-in. Process P writes the file RECORD.P. */
#include <dlfcn.h>
#include <fcntl.h>
#include <gpuloom/barrier.h>
#include <gpuloom/device.h>
#include <gpuloom/plugin.h>
#include <gpuloom/qos.h>
#include <gpuloom/sched.h>
#include <gpuloom/sync.h>
#include <gpuloom/term.h>
#include <gpuloom/transport.h>
#include <gpuloom/trigger.h>
#include <gpuloom/workload.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define JOIN_(a, b) a##b
#define JOIN(a, b)  JOIN_(a, b)
#define IS_DEVICE    JOIN(KIND_, KIND) == 1
#define IS_TRANSPORT JOIN(KIND_, KIND) == 2
#define IS_SYNC      JOIN(KIND_, KIND) == 3
#define IS_TRIGGER   JOIN(KIND_, KIND) == 4
#define IS_QOS	     JOIN(KIND_, KIND) == 5
#define IS_WORKLOAD  JOIN(KIND_, KIND) == 6
#define KIND_DEVICE    1
#define KIND_TRANSPORT 2
#define KIND_SYNC      3
#define KIND_TRIGGER   4
#define KIND_QOS       5
#define KIND_WORKLOAD  6
#define KIND_SCHED     7
#define KIND_TERM      7
#define KIND_BARRIER   7

static struct OPS table; /* what the core calls */
static struct OPS real;	 /* the functions of the recorded plug-in */

/* Returns 1 if the thread of the first call calls again. */
static int by_core(void)
{
	static pid_t core, process;
	if (process != getpid()) {
		process = getpid();
		core = gettid();
	}
	return core == gettid();
}

static void note(const char *op)
{
	const char *prefix = getenv("RECORD");
	char path[4096], line[60];
	snprintf(path, sizeof(path), "%s.%d", prefix ? prefix : "", (int)getpid());
	int fd = prefix ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
	snprintf(line, sizeof(line), "%s%s\n", op, by_core() ? "" : " elsewhere");
	if (fd >= 0) {
		(void)!write(fd, line, strlen(line));
		close(fd);
	}
}

/* The kind's table is the only declaration of the types: OP() takes them from it. A plug-in that lacks an op also lacks it
 * in the table, because wrap() sets only those that are there. */
#define OP(result, op, parameters, arguments)                                                                          \
	static result do_##op parameters                                                                               \
	{                                                                                                              \
		note(#op);                                                                                             \
		return real.op arguments;                                                                              \
	}
#define ERR struct loom_error *err
#define LAYOUT const struct loom_layout *layout
#define VIEW const struct loom_view *view

#if IS_DEVICE
#define LIST(X)                                                                                                        \
	X(int, create,                                                                                                 \
	  (const struct loom_host *host, const void *opts, uint32_t instance, uint32_t instances, void **self, ERR),  \
	  (host, opts, instance, instances, self, err))                                                               \
	X(void, destroy, (void *self), (self))                                                                         \
	X(int, shape, (void *self, struct loom_device_shape *shape, ERR), (self, shape, err))                          \
	X(int, mem_alloc, (void *self, uint64_t bytes, uint32_t flags, struct loom_memory *memory, ERR),              \
	  (self, bytes, flags, memory, err))                                                                           \
	X(void, mem_free, (void *self, struct loom_memory *memory), (self, memory))                                    \
	X(int, mem_map, (void *self, const struct loom_memory *memory, ERR), (self, memory, err))                      \
	X(void, mem_unmap, (void *self, const struct loom_memory *memory), (self, memory))                             \
	X(int, build, (void *self, const struct loom_program *program, ERR), (self, program, err))                     \
	X(int, launch, (void *self, const struct loom_launch *launch, ERR), (self, launch, err))                       \
	X(int, ready, (void *self, uint64_t timeout, ERR), (self, timeout, err))                                       \
	X(int, go, (void *self, ERR), (self, err))                                                                     \
	X(int, wait, (void *self, uint64_t timeout, uint64_t *end, ERR), (self, timeout, end, err))                    \
	X(int, retire, (void *self, uint64_t timeout, ERR), (self, timeout, err))
#elif IS_TRANSPORT
#define DEVICES const struct loom_devices *devices
#define LIST(X)                                                                                                        \
	X(int, create, (const struct loom_host *host, const void *opts, void **self, ERR), (host, opts, self, err))    \
	X(void, destroy, (void *self), (self))                                                                         \
	X(int, segments,                                                                                               \
	  (void *self, DEVICES, const struct loom_segment_want *want, uint32_t n, struct loom_segment *out, ERR),      \
	  (self, devices, want, n, out, err))                                                                          \
	X(void, release, (void *self, DEVICES, const struct loom_segment *segment, uint32_t n),                        \
	  (self, devices, segment, n))                                                                                 \
	X(int, noncoherent, (void *self, DEVICES), (self, devices))
#else
#define POLICY(X)                                                                                                      \
	X(int, create, (const struct loom_host *host, const void *opts, void **self, ERR), (host, opts, self, err))    \
	X(void, destroy, (void *self), (self))                                                                         \
	X(int, need, (void *self, LAYOUT, struct loom_need *need, ERR), (self, layout, need, err))                     \
	X(int, init, (void *self, LAYOUT, VIEW, ERR), (self, layout, view, err))                                       \
	X(int, collect, (void *self, LAYOUT, VIEW, struct loom_report *report, ERR),                                   \
	  (self, layout, view, report, err))                                                                           \
	X(int, start, (void *self, LAYOUT, VIEW, const struct loom_segments *segments, ERR),                           \
	  (self, layout, view, segments, err))                                                                         \
	X(void, stop, (void *self), (self))                                                                            \
	X(int, constants, (void *self, LAYOUT, char *text, size_t room, ERR), (self, layout, text, room, err))         \
	X(int, wire, (void *self, LAYOUT, VIEW, uint64_t global, const struct loom_trigger *trigger, ERR),             \
	  (self, layout, view, global, trigger, err))                                                                  \
	X(int, connect, (void *self, LAYOUT, const struct loom_remote_blocks *remote, ERR), (self, layout, remote, err))
#if IS_SYNC
#define OWN(X)                                                                                                         \
	X(int, channels, (void *self, LAYOUT, const struct loom_channel *channel, uint32_t n, ERR),                    \
	  (self, layout, channel, n, err))                                                                             \
	X(int, attach, (void *self, const struct loom_space *space, ERR), (self, space, err))                          \
	X(void, ready, (void *self, uint32_t device), (self, device))                                                  \
	X(void, detach, (void *self, uint32_t device), (self, device))
#elif IS_TRIGGER
#define OWN(X)                                                                                                         \
	X(int, post, (void *self, const struct loom_trigger_post *post, uint64_t *id, ERR), (self, post, id, err))     \
	X(int, flush, (void *self, uint64_t timeout, ERR), (self, timeout, err))
#elif IS_QOS
#define OWN(X)                                                                                                         \
	X(int, lead, (void *self, const struct loom_qos_stage *stage, uint32_t n, ERR), (self, stage, n, err))         \
	X(int, tenants, (void *self, LAYOUT, const struct loom_tenant *tenant, uint32_t n, ERR),                       \
	  (self, layout, tenant, n, err))                                                                              \
	X(int, grants, (void *self, const struct loom_grant *grant, uint32_t n, ERR), (self, grant, n, err))           \
	X(void, arrange, (void *self, struct loom_qos_path *path), (self, path))
#elif IS_WORKLOAD
#define OWN(X)                                                                                                         \
	X(uint64_t, task_count, (void *self, LAYOUT), (self, layout))                                                  \
	X(int, tasks, (void *self, LAYOUT, VIEW, loom_ref global, struct loom_task *tasks, ERR),                       \
	  (self, layout, view, global, tasks, err))                                                                    \
	X(int, verify, (void *self, LAYOUT, VIEW, struct loom_report *report, ERR), (self, layout, view, report, err)) \
	X(int, channels, (void *self, LAYOUT, const struct loom_channel **channel, uint32_t *n, ERR),                  \
	  (self, layout, channel, n, err))                                                                             \
	X(int, tenants, (void *self, LAYOUT, const struct loom_tenant **tenant, uint32_t *n, ERR),                     \
	  (self, layout, tenant, n, err))                                                                              \
	X(int, grants, (void *self, LAYOUT, VIEW, loom_ref global, const struct loom_grant **grant, uint32_t *n, ERR), \
	  (self, layout, view, global, grant, n, err))
#else
#define OWN(X)
#endif
#define LIST(X) POLICY(X) OWN(X)
#endif
LIST(OP)

/* Returns the descriptor of the recorded plug-in with the name and the table of this plug-in. */
static const struct loom_plugin *wrap(const struct loom_plugin *own)
{
	static struct loom_plugin self;
	const char *path = getenv("RECORDED");
	void *file = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
	const struct loom_plugin *(*entry)(void) = NULL;
	void *symbol = file ? dlsym(file, "loom_plugin_entry") : NULL;
	memcpy(&entry, &symbol, sizeof(entry));
	const struct loom_plugin *other = entry ? entry() : NULL;
	if (!other)
		return own;
	self = *other;
	self.name = own->name;
	self.version = own->version;
	self.license = own->license;
	self.summary = own->summary;
	size_t size = *(const size_t *)other->ops;
	memcpy(&real, other->ops, size < sizeof(real) ? size : sizeof(real));
	table = real;
#define WRAP(result, op, parameters, arguments)                                                                        \
	if (real.op)                                                                                                   \
		table.op = do_##op;
	LIST(WRAP)
	self.ops = &table;
	return &self;
}

/* LOOM_PLUGIN_DEFINE makes the note, and an entry function that has another name here. */
static const struct loom_plugin *own_entry(void);
#define loom_plugin_entry own_entry
#define DEFINE(...) LOOM_PLUGIN_DEFINE(__VA_ARGS__) /* replaces KIND by its value first */
DEFINE(KIND, NAME, "0.1.0", "Apache-2.0", "records the calls of the core", .ops = &table)
#undef loom_plugin_entry

const struct loom_plugin *loom_plugin_entry(void)
{
	return wrap(own_entry());
}
