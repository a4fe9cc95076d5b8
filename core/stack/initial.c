/* SPDX-License-Identifier: Apache-2.0 */
/* The initial set of the next run: the tasks that the program submits, and the memory where devices read the set. */
#include <stdlib.h>
#include <string.h>

#include "stack/stack.h"

/* Returns 1 if device d has a copy of the initial set. A small set is copied before each sample by each device that
 * resets its own memory (LOOM_SHAPE_KEEPS). Of a larger set, a GPU has a copy if it would otherwise read the tasks
 * across a link. It would do so if the set is in host memory and devices are non-coherent, or if the set is in memory
 * of another GPU. `home` is the device that has the set in its memory, or -1 for host memory. Coherent devices read a
 * set in host memory in place, because the conf may demand that. */
static int has_copy(const struct loom_stack *s, uint32_t d, int32_t home, int small)
{
	if (small)
		return (s->shape[d].flags & LOOM_SHAPE_KEEPS) != 0;
	return s->shape[d].kind == LOOM_ON_GPU && (s->layout.noncoherent || (home >= 0 && (uint32_t)home != d));
}

/* Makes room for `tasks` initial tasks, in memory that all devices can access and in the devices' copies. The room
 * doubles each time, because segments stay until the stack is closed. */
int loom__initial_room(struct loom_stack *s, uint64_t tasks, struct loom_error *err)
{
	struct loom_segment_want want[LOOM_MAX_DEVICES];
	uint32_t first, n = 0, devices = s->layout.devices;
	uint64_t room = s->initial.room ? s->initial.room : 1;
	if (s->initial.ref && tasks <= s->initial.room)
		return 0;
	if (tasks > 1ull << 38)
		return LOOM__FAIL(err, LOOM_EINVAL, "too many initial tasks");
	int rc = loom__stack_retire(s, err); /* launched workers know only the old address */
	if (rc)
		return rc;
	if (!s->initial.ref)
		room = tasks ? tasks : 1;
	while (room < tasks)
		room *= 2;
	if (tasks <= LOOM__SMALL_SET && room > LOOM__SMALL_SET)
		room = LOOM__SMALL_SET;
	int small = loom__may_keep(s) && room <= LOOM__SMALL_SET;
	want[0] = (struct loom_segment_want){.bytes = room * sizeof(struct loom_task),
					     .owner = -1,
					     .flags = small ? LOOM_MEMORY_HOST : LOOM_MEMORY_TASKS};
	rc = loom__segments_add(s, want, 1, &first, err);
	if (rc)
		return rc;
	int32_t home = s->memory.segment[first].memory->device;
	uint32_t set = first;
	for (uint32_t d = 0; d < devices; d++)
		if (has_copy(s, d, home, small))
			want[n++] = (struct loom_segment_want){
				.bytes = room * sizeof(struct loom_task), .owner = (int32_t)d, .flags = LOOM_MEMORY_PRIVATE};
	rc = n ? loom__segments_add(s, want, n, &first, err) : 0;
	if (rc)
		return rc;
	s->initial.ref = LOOM_REF(set, 0); /* set only here, so that an error above changes nothing */
	for (uint32_t d = 0; d < devices; d++)
		s->initial.copy[d] = has_copy(s, d, home, small) ? LOOM_REF(first++, 0) : 0;
	s->initial.room = room;
	s->initial.small = small;
	return 0;
}

void loom__initial_written(struct loom_stack *s)
{
	s->initial.digest = loom__ranks_digest(s, loom__host_at(s, s->initial.ref), s->layout.initial_tasks);
	for (uint32_t d = 0; d < s->layout.devices; d++)
		if (s->initial.copy[d] && !s->initial.small)
			memcpy(loom__host_at(s, s->initial.copy[d]), loom__host_at(s, s->initial.ref),
			       s->layout.initial_tasks * sizeof(struct loom_task));
}

void loom__initial_begun(struct loom_stack *s)
{
	s->initial.count = 0;
}

int loom_stack_submit(struct loom_stack *s, const struct loom_task *tasks, size_t n, struct loom_error *err)
{
	if (loom__stack_own(s, err))
		return LOOM_EBUSY;
	if (s->selected[LOOM_WORKLOAD])
		return LOOM__FAIL(err, LOOM_EINVAL,
				  "the conf selects a workload: its tasks cannot be mixed with others");
	if (!tasks && n)
		return LOOM__FAIL(err, LOOM_EINVAL, "no tasks to submit: %zu at NULL", n);
	if (n > SIZE_MAX / 4 / sizeof(*tasks))
		return LOOM__FAIL(err, LOOM_ENOMEM, "out of memory for %zu tasks", n);
	for (size_t i = 0; i < n; i++)
		if (tasks[i].tag >= s->code.tasks)
			return LOOM__FAIL(err, LOOM_EINVAL, "task %zu has tag %u, but only %u are registered",
					  i, tasks[i].tag, s->code.tasks);
	return loom__submit(s, tasks, n, err);
}

int loom__submit(struct loom_stack *s, const struct loom_task *tasks, size_t n, struct loom_error *err)
{
	if (n > s->initial.submitted_room - s->initial.count) {
		size_t room = s->initial.submitted_room ? s->initial.submitted_room : 64;
		while (room - s->initial.count < n)
			room *= 2;
		struct loom_task *list = realloc(s->initial.submitted, room * sizeof(*list));
		if (!list)
			return LOOM__FAIL(err, LOOM_ENOMEM, "out of memory for %zu tasks", n);
		s->initial.submitted = list;
		s->initial.submitted_room = room;
	}
	if (n)
		memcpy(s->initial.submitted + s->initial.count, tasks, n * sizeof(*tasks));
	s->initial.count += n;
	return 0;
}

/* Copies the tasks to the places where devices read them. Images are not copied for this run, because the devices reset
 * their own memory. */
static int send_initial(struct loom_stack *s, struct loom_error *err)
{
	int rc = 0;
	for (uint32_t i = 0; i <= s->layout.devices && !s->initial.small && !rc; i++) {
		loom_ref ref = i < s->layout.devices ? s->initial.copy[i] : s->initial.ref;
		if (ref && s->memory.image[LOOM_REF_SEGMENT(ref)] && s->initial.count)
			rc = loom__segment_copy(s, LOOM_REF_SEGMENT(ref), LOOM_REF_OFFSET(ref), loom__host_at(s, ref),
						s->initial.count * sizeof(struct loom_task), 1, err);
	}
	return rc;
}

void loom__initial_hold(struct loom_stack *s, uint64_t tasks)
{
	uint64_t now = s->layout.initial_tasks;
	if (tasks <= s->initial.held || loom__initial_room(s, tasks, NULL))
		return;
	s->layout.initial_tasks = tasks;
	if (!loom__needs_hold(s, NULL))
		s->initial.held = tasks;
	s->layout.initial_tasks = now;
}

int loom__initial_take(struct loom_stack *s, struct loom_error *err)
{
	int rc = loom__initial_room(s, s->initial.count, err);
	if (rc)
		return rc;
	s->layout.initial_tasks = s->initial.count;
	rc = s->initial.count > s->initial.held ? loom__needs_hold(s, err) : 0;
	if (rc)
		return rc;
	if (s->initial.count > s->initial.held)
		s->initial.held = s->initial.count;
	if (s->initial.count)
		memcpy(loom__host_at(s, s->initial.ref), s->initial.submitted, s->initial.count * sizeof(struct loom_task));
	loom__initial_written(s);
	return s->resets ? send_initial(s, err) : 0;
}
