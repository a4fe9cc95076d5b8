/* SPDX-License-Identifier: Apache-2.0 */
#include "conform/refdevice.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/align.h"

static int refuses(struct loom__refdevice *d)
{
	if (!d->refuse_in || --d->refuse_in)
		return 0;
	d->refused = 1;
	return 1;
}

static struct loom__refmap *find(struct loom__refdevice *d, const struct loom_memory *m)
{
	for (uint32_t i = 0; i < d->maps; i++)
		if (d->map[i].memory == m)
			return &d->map[i];
	return NULL;
}

static void drop(struct loom__refdevice *d, struct loom__refmap *map)
{
	munmap(map->view, map->bytes);
	*map = d->map[--d->maps];
}

static int note(struct loom__refdevice *d, const struct loom_memory *m, char *view, uint64_t bytes, int owned)
{
	if (d->maps == LOOM__REF_MAPS) {
		munmap(view, bytes);
		return LOOM_ENOMEM;
	}
	d->map[d->maps++] = (struct loom__refmap){m, view, bytes, owned};
	return 0;
}

/* The host and the device map one file at two addresses. */
static int ref_alloc(void *self, uint64_t bytes, uint32_t flags, struct loom_memory *m, struct loom_error *err)
{
	struct loom__refdevice *d = self;
	uint64_t room = loom__align(bytes, 4096);
	if (!bytes)
		return LOOM__FAIL(err, LOOM_EINVAL, "test:%u: no memory of 0 bytes", d->id);
	if (refuses(d))
		return LOOM__FAIL(err, LOOM_ENOMEM, "test:%u: refuses memory on purpose", d->id);
	int file = memfd_create("device", MFD_CLOEXEC);
	char *view = MAP_FAILED, *host = NULL;
	if (file >= 0 && !ftruncate(file, (off_t)room))
		view = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (view != MAP_FAILED && (!d->blind || flags & LOOM_MEMORY_HOST))
		host = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (view == MAP_FAILED || host == MAP_FAILED || note(d, m, view, room, 1))
		return LOOM__FAIL(err, LOOM_ENOMEM, "test:%u: out of memory", d->id);
	*m = (struct loom_memory){
	    .size = sizeof(*m), .bytes = room, .fd = file, .device = -1, .host = host, .handle = d->id};
	return 0;
}

static void ref_free(void *self, struct loom_memory *m)
{
	struct loom__refdevice *d = self;
	struct loom__refmap *map = find(d, m);
	if (!map || !map->owned) {
		loom__fault(d->t,
			    "it frees memory with mem_free() of device %u, which that device did not "
			    "allocate or has freed already",
			    d->id);
		return;
	}
	if (m->host)
		munmap(m->host, m->bytes);
	close(m->fd);
	drop(d, map);
}

static int ref_map(void *self, const struct loom_memory *m, struct loom_error *err)
{
	struct loom__refdevice *d = self;
	if (refuses(d))
		return LOOM__FAIL(err, LOOM_EUNAVAIL, "test:%u: refuses to map on purpose", d->id);
	if (find(d, m)) {
		loom__fault(d->t, "it maps a memory twice into device %u, or into its owner", d->id);
		return 0;
	}
	if (m->fd < 0)
		return LOOM__FAIL(err, LOOM_EUNAVAIL, "test:%u: can map memory with a descriptor alone", d->id);
	char *view = mmap(NULL, m->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0);
	if (view == MAP_FAILED || note(d, m, view, m->bytes, 0))
		return LOOM__FAIL(err, LOOM_ENOMEM, "test:%u: out of memory", d->id);
	return 0;
}

static void ref_unmap(void *self, const struct loom_memory *m)
{
	struct loom__refdevice *d = self;
	struct loom__refmap *map = find(d, m);
	if (!map || map->owned)
		loom__fault(d->t, "it unmaps a memory from device %u, where it is not mapped", d->id);
	else
		drop(d, map);
}

static const struct loom_device_ops ref_ops = {
    .size = sizeof(ref_ops),
    .mem_alloc = ref_alloc,
    .mem_free = ref_free,
    .mem_map = ref_map,
    .mem_unmap = ref_unmap,
};

void loom__refdevices_init(struct loom__refdevices *r, struct loom__trial *t, uint32_t n, uint32_t blind)
{
	*r = (struct loom__refdevices){0};
	for (uint32_t d = 0; d < n; d++) {
		r->device[d].t = t;
		r->device[d].id = d;
		r->device[d].blind = (int)(blind >> d & 1);
		r->ops[d] = &ref_ops;
		r->self[d] = &r->device[d];
		r->shape[d] = (struct loom_device_shape){
		    .first_worker = 2 * d, .workers = 2, .lanes = 1, .numa_node = -1, .kind = LOOM_ON_CPU};
		snprintf(r->shape[d].name, sizeof(r->shape[d].name), "test:%u", d);
	}
	r->layout = (struct loom_layout){
	    .size = sizeof(r->layout), .devices = n, .workers = 2 * n, .device = r->shape, .seed = 1};
	r->table = (struct loom_devices){
	    .size = sizeof(r->table), .count = n, .layout = &r->layout, .ops = r->ops, .self = r->self};
}

char *loom__refdevice_view(const struct loom__refdevices *r, uint32_t d, const struct loom_memory *m)
{
	for (uint32_t i = 0; i < r->device[d].maps; i++)
		if (r->device[d].map[i].memory == m)
			return r->device[d].map[i].view;
	return NULL;
}

uint32_t loom__refdevices_maps(const struct loom__refdevices *r)
{
	uint32_t n = 0;
	for (uint32_t d = 0; d < r->table.count; d++)
		n += r->device[d].maps;
	return n;
}
