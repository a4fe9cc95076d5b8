/* SPDX-License-Identifier: Apache-2.0 */
/* What an embedding program adds to a stack: task functions, memory, and its request to stop. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "stack/stack.h"
#include "lib/align.h"
#include "lib/identifier.h"

enum { SOURCE_MOST = 16 << 20 }; /* limit on the size of task functions, in bytes */

static int add_task(struct loom_stack *s, const char *name, loom_task_fn *fn, uint32_t *tag,
		    struct loom_error *err)
{
	int rc = loom__stack_is_idle(s, err);
	if (rc)
		return rc;
	struct loom_task_entry *task = loom__more(s->code.task, s->code.tasks, sizeof(*task));
	if (task)
		s->code.task = task;
	char *copy = strdup(name);
	if (!task || !copy) {
		free(copy);
		return LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
	}
	s->code.task[s->code.tasks] = (struct loom_task_entry){copy, fn};
	s->composed = 0;
	*tag = s->code.tasks++;
	return 0;
}

int loom_stack_task(struct loom_stack *s, const char *name, loom_task_fn *fn, uint32_t *tag,
		    struct loom_error *err)
{
	if (!name || !fn)
		return LOOM__FAIL(err, LOOM_EINVAL, "a task function needs a name and an address");
	return add_task(s, name, fn, tag, err);
}

/* Removes the task functions that a failed call has added. Their tags begin at `before`. */
static void forget_tasks(struct loom_stack *s, uint32_t before)
{
	while (s->code.tasks > before)
		free((char *)s->code.task[--s->code.tasks].name);
}

/* Checks that the names are identifiers, and that no run is in progress. */
static int check_names(struct loom_stack *s, const char *file, const char *const *names, uint32_t n,
		       struct loom_error *err)
{
	for (uint32_t i = 0; i < n; i++)
		if (!loom__is_identifier(names[i]))
			return LOOM__FAIL(err, LOOM_EINVAL, "%s: '%s' is not an identifier, so it cannot be the name of a function", file,
					  names[i] ? names[i] : "");
	return loom__stack_is_idle(s, err);
}

/* Copies the name of the file, and `data`. If `data` is NULL, reads the content of the file instead. On error, frees
 * both copies. */
static int keep_file(const char *file, const void *data, size_t *bytes, char **name, char **copy, struct loom_error *err)
{
	if (data && *bytes > SOURCE_MOST)
		return LOOM__FAIL(err, LOOM_EINVAL, "%s: %zu bytes are too many, the limit is %d", file, *bytes,
				  (int)SOURCE_MOST);
	*name = strdup(file);
	*copy = data ? calloc(1, *bytes + 1) : NULL;
	int code = data ? 0 : loom__read_file(file, SOURCE_MOST, copy, bytes, err);
	if (!code && (!*copy || !*name))
		code = LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
	if (!code && data)
		memcpy(*copy, data, *bytes);
	if (code) {
		free(*copy);
		free(*name);
	}
	return code;
}

int loom_stack_source(struct loom_stack *s, const char *file, const char *text, const char *const *names,
		      uint32_t n, uint32_t *tags, struct loom_error *err)
{
	if (!file || !*file || file[strcspn(file, "\"\\\n")] || !n || !names || !tags)
		return LOOM__FAIL(err, LOOM_EINVAL,
				  "a source needs the name of a file, without quotes, and a task function or more");
	int refused = check_names(s, file, names, n, err);
	if (refused)
		return refused;
	struct loom_program_source *source = loom__more(s->code.source, s->code.sources, sizeof(*source));
	if (!source)
		return LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
	s->code.source = source;
	char *copy, *name;
	size_t length = text ? strlen(text) : 0;
	int code = keep_file(file, text, &length, &name, &copy, err);
	if (code)
		return code;
	uint32_t before = s->code.tasks, tag;
	for (uint32_t i = 0; i < n && !code; i++)
		code = add_task(s, names[i], NULL, &tag, err);
	if (code) {
		forget_tasks(s, before);
		free(copy);
		free(name);
		return code;
	}
	for (uint32_t i = 0; i < n; i++)
		tags[i] = before + i;
	s->code.source[s->code.sources++] = (struct loom_program_source){name, copy};
	return 0;
}

/* Finds the tag of a task function in IR. If earlier IR has registered the name, returns the tag of that time.
 * Otherwise adds a tag. */
static int ir_tag(struct loom_stack *s, const char *name, uint32_t *tag, struct loom_error *err)
{
	for (uint32_t i = 0; i < s->code.irs; i++)
		for (uint32_t k = 0; k < s->code.ir[i].tags; k++)
			if (!strcmp(s->code.task[s->code.ir[i].tag[k]].name, name)) {
				*tag = s->code.ir[i].tag[k];
				return 0;
			}
	for (uint32_t i = 0; i < s->code.tasks; i++)
		if (!strcmp(s->code.task[i].name, name))
			return LOOM__FAIL(err, LOOM_EINVAL, "task function '%s' is registered already, and not as IR: use another name",
					  name);
	return add_task(s, name, NULL, tag, err);
}

int loom_stack_ir(struct loom_stack *s, const char *file, const void *data, size_t bytes, const char *const *names,
		  uint32_t n, uint32_t *tags, struct loom_error *err)
{
	if (!file || !*file || !n || !names || !tags)
		return LOOM__FAIL(err, LOOM_EINVAL, "IR needs the name of a file, and of a task function or more");
	int refused = check_names(s, file, names, n, err);
	if (refused)
		return refused;
	struct loom_program_ir *ir = loom__more(s->code.ir, s->code.irs, sizeof(*ir));
	if (!ir)
		return LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
	s->code.ir = ir;
	char *copy, *name;
	int code = keep_file(file, data, &bytes, &name, &copy, err);
	if (code)
		return code;
	uint32_t *tag = calloc(n, sizeof(*tag)), before = s->code.tasks;
	if (!tag)
		code = LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
	for (uint32_t i = 0; i < n && !code; i++)
		code = ir_tag(s, names[i], &tag[i], err);
	if (code) {
		forget_tasks(s, before);
		free(copy);
		free(name);
		free(tag);
		return code;
	}
	memcpy(tags, tag, n * sizeof(*tags));
	s->composed = 0;
	s->code.ir[s->code.irs++] = (struct loom_program_ir){.file = name, .data = copy, .bytes = bytes, .tag = tag, .tags = n};
	return 0;
}

void loom__code_help(struct loom_stack *s, loom_task_fn *help)
{
	s->code.helper = help;
	s->composed = 0;
}

int loom__code_list(struct loom_stack *s, struct loom_program *program, struct loom_error *err)
{
	if (s->code.helper) {
		struct loom_task_entry *task = loom__more(s->code.task, s->code.tasks, sizeof(*task));
		if (!task)
			return LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
		s->code.task = task;
		task[s->code.tasks] = (struct loom_task_entry){"loom_comm", s->code.helper};
	}
	program->task = s->code.task;
	program->tasks = s->code.tasks + (s->code.helper != NULL);
	program->source = s->code.source;
	program->sources = s->code.sources;
	program->ir = s->code.ir;
	program->irs = s->code.irs;
	return 0;
}

/* ---- memory of the program ---- */

/* Called between pieces of memory. */
static int allocating(void *stack, double done, struct loom_error *err)
{
	const struct loom_stack *s = stack;
	if (!__atomic_load_n(&s->stop_requests, __ATOMIC_RELAXED))
		return 0;
	return LOOM__FAIL(err, LOOM_EINTR, "interrupted when %.0f %% of the memory was there", 100 * done);
}

int loom_stack_alloc(struct loom_stack *s, size_t bytes, loom_ref *ref, void **host,
		     struct loom_error *err)
{
	struct loom_segment_want want = {
		.bytes = loom__align(bytes, 64), .owner = -1, .flags = LOOM_MEMORY_HOST};
	uint32_t segment;
	if (!bytes || bytes >> 48)
		return LOOM__FAIL(err, LOOM_EINVAL, "cannot allocate %zu bytes", bytes);
	int rc = loom__stack_is_idle(s, err); /* launched workers know only the segments of their launch */
	rc = rc ? rc : loom__stack_retire(s, err);
	if (rc)
		return rc;
	__atomic_store_n(&s->stop_requests, 0, __ATOMIC_RELAXED); /* requests from before the call do not count */
	s->host.verifying_arg = s;
	s->host.progress = allocating;
	rc = loom__segments_add(s, &want, 1, &segment, err);
	s->host.progress = NULL;
	if (rc)
		return rc;
	*ref = LOOM_REF(segment, 0);
	*host = loom__host_at(s, *ref);
	return 0;
}

/* Returns 0 if a read of this byte would end the process. If the kernel refuses to say, returns 1. */
static int is_readable(char *at)
{
	char byte;
	struct iovec to = {&byte, 1}, from = {at, 1};
	return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == 1 || errno != EFAULT;
}

/* Returns 0 if the process has not mapped all of this memory. The addresses of a GPU's memory stay mapped when it is freed,
 * but cannot be read. */
static int is_mapped(char *at, size_t bytes)
{
	/* The system call does nothing but to check that all pages are mapped. */
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)at / page * page;
	if (msync((void *)begin, (uintptr_t)at + bytes - begin, MS_ASYNC) && errno == ENOMEM)
		return 0;
	return is_readable(at) && is_readable(at + bytes - 1);
}

/* Finds the device that has the memory, and fills *memory. *adopter is the index of the device, or -1 if no device has
 * it. */
static int find_owner(struct loom_stack *s, void *at, size_t bytes, struct loom_memory *memory, int32_t *adopter,
		      struct loom_error *err)
{
	int rc = LOOM_ENOENT;
	*adopter = -1;
	for (uint32_t d = 0; d < s->layout.devices && rc == LOOM_ENOENT; d++) {
		if (!LOOM_HAS(s->device[d].ops, adopt))
			continue;
		rc = s->device[d].ops->adopt(s->device[d].self, at, bytes, memory, err);
		*adopter = rc ? -1 : (int32_t)d;
		memory->device = *adopter;
	}
	if (rc == LOOM_ENOENT) {
		if (!is_mapped(at, bytes))
			return LOOM__FAIL(err, LOOM_EINVAL,
					  "no memory at %p: neither this process nor a GPU of the stack has all of these %zu bytes: "
					  "they were freed, or belong to a GPU that [run] devices does not name", at, bytes);
		*memory = (struct loom_memory){.size = sizeof(*memory), .bytes = bytes, .fd = -1, .device = -1, .host = at};
		rc = 0;
	}
	return rc;
}

static int map_adopted(struct loom_stack *s, struct loom_memory *memory, int32_t adopter, struct loom_error *err)
{
	int rc = 0;
	uint32_t d = 0;
	for (; d < s->layout.devices && !rc; d++)
		if ((int32_t)d != adopter)
			rc = s->device[d].ops->mem_map(s->device[d].self, memory, err);
	for (d = rc ? d - 1 : 0; d-- > 0;)
		if ((int32_t)d != adopter)
			s->device[d].ops->mem_unmap(s->device[d].self, memory);
	return rc;
}

int loom_stack_adopt(struct loom_stack *s, void *memory, size_t bytes, loom_ref *ref, struct loom_error *err)
{
	if (!memory || !bytes)
		return LOOM__FAIL(err, LOOM_EINVAL, "no memory to adopt: %zu bytes at %p", bytes, memory);
	if (bytes > UINTPTR_MAX - (uintptr_t)memory || bytes >> 48)
		return LOOM__FAIL(err, LOOM_EINVAL, "memory at %p: %zu bytes are more than any memory has", memory,
				  bytes);
	if ((uintptr_t)memory % sizeof(uint64_t))
		return LOOM__FAIL(err, LOOM_EINVAL, "memory at %p: workers need memory that is aligned to 8 bytes", memory);
	/* Launched workers know only the segments of their launch. */
	int rc = loom__stack_is_idle(s, err);
	rc = rc ? rc : loom__stack_retire(s, err);
	if (rc)
		return rc;
	uint32_t segment;
	struct loom_memory *m = calloc(1, sizeof(*m));
	int32_t adopter;
	if (!m)
		return LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
	rc = loom__segment_spare(s, memory, bytes, &segment, err);
	rc = rc ? rc : find_owner(s, memory, bytes, m, &adopter, err);
	if (!rc) {
		rc = map_adopted(s, m, adopter, err);
		if (rc && adopter >= 0)
			s->device[adopter].ops->disown(s->device[adopter].self, m);
	}
	if (rc) {
		free(m);
		return rc;
	}
	loom__segment_own(s, segment, m, adopter);
	*ref = LOOM_REF(segment, 0);
	return 0;
}

int loom_stack_release(struct loom_stack *s, loom_ref ref, struct loom_error *err)
{
	uint32_t segment = LOOM_REF_SEGMENT(ref);
	int rc = loom__stack_is_idle(s, err);
	if (rc)
		return rc;
	if (segment > s->memory.segments || !s->memory.adopted[segment] || LOOM_REF_OFFSET(ref))
		return LOOM__FAIL(err, LOOM_EINVAL, "no memory of the program has this reference: loom_stack_adopt() gives one");
	rc = loom__stack_retire(s, err);
	if (!rc)
		loom__segment_disown(s, segment);
	return rc;
}

void loom_stack_stop(struct loom_stack *s)
{
	int number = errno; /* the errno of the code that a signal may have interrupted */
	if (loom__stack_own(s, NULL))
		return;
	/* The first worker of each run of a graph reads this word. Release: pairs with the acquire in
	 * loom__graphs_stopped(), after which a new launch may clear the word. It is set before the request is counted, so
	 * that the thread which sees the request does not begin a new launch before. */
	if (__atomic_load_n(&s->launch.captured, __ATOMIC_ACQUIRE))
		__atomic_store_n(&s->ctl->stop_graphs, 1u, __ATOMIC_RELEASE);
	/* Release: pairs with the acquire in wait_all(), so that the waiting thread sees the request after wake() has
	 * woken it. Sequentially consistent: either loom__sample_begin() sees the request, or wake() the sample. The first
	 * request of a workload wakes no thread, because the run ends after the current sample. */
	if (__atomic_fetch_add(&s->stop_requests, 1, __ATOMIC_SEQ_CST) || !s->selected[LOOM_WORKLOAD])
		loom__stack_wake(s);
	errno = number;
}
