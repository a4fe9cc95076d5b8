/* SPDX-License-Identifier: Apache-2.0 */
/* Common code of the host halves of sync plug-ins: instances, memory of channels, and ops. */
#ifndef SYNC_CHANNELS_H
#define SYNC_CHANNELS_H

#include "slot.dev.h"

/* The first member of each plug-in's instance. */
struct sync {
	const struct loom_host *host;
	const char *name;
	struct loom_channel *channel; /* [channels] */
	uint32_t channels;
	int wic;                   /* 1: also reports the metrics of sync_wic */
	struct listener *listener; /* listener.h; NULL: there is none */
	/* The memory has the layout of gpu_wait.dev.h. crosses_link: 1: for non-coherent devices; near: 1: for coherent
	 * devices. At most one of them is set. */
	int crosses_link, near;
	int copies;           /* 1: each item has room for a copy behind it, at half of the stride */
	uint32_t setting[15]; /* settings; copied to sync_head.setting before each sample */
};

void sync_init_instance(struct sync *s, const struct loom_host *host, const char *name);
void sync_finish(struct sync *s); /* frees what the functions below have allocated, but not *s */
/* Creates an instance that is a struct sync and nothing more. The caller sets its settings. Returns 0 or an error. */
int sync_create(const struct loom_host *host, const char *name, struct sync **out, struct loom_error *err);
void sync_destroy(void *self);

/* ---- ops of loom_sync_ops, for plug-ins with items in the global block */
int sync_channels(void *self, const struct loom_layout *layout, const struct loom_channel *channel, uint32_t n,
		  struct loom_error *err);
int sync_need(void *self, const struct loom_layout *layout, struct loom_need *need, struct loom_error *err);
int sync_init(void *self, const struct loom_layout *layout, const struct loom_view *view, struct loom_error *err);
int sync_collect(void *self, const struct loom_layout *layout, const struct loom_view *view, struct loom_report *report,
		 struct loom_error *err);
void sync_interrupt(void *self, const struct loom_layout *layout, const struct loom_view *view, int code,
		    uint32_t device);

/* Returns the size in bytes of the part with head, channels and slots, without items. If `head` is not NULL, sets the
 * offsets in it. */
uint64_t sync_lay_out(const struct sync *s, struct sync_head *head);
/* For crosses_link or near. The block for the stack has need_->global bytes with head, channels and slots. The function
 * appends items and flags to it, and adds a block for each device. With `near`, it also appends to need_->worker bytes
 * of the workers' blocks. If `head` is not NULL, sets the offsets in it. Returns the end of the flags in the workers'
 * blocks. */
uint64_t sync_lay_out_flags(const struct sync *s, const struct loom_layout *layout, struct sync_head *head,
			    struct loom_need *need_);
/* Initialises these blocks. begin: value of need_->global before sync_lay_out_flags() was called. */
void sync_init_flags(const struct sync *s, const struct loom_layout *layout, const struct loom_view *view,
		     uint64_t begin);
int sync_has_gpu(const struct loom_layout *layout);
/* Marks the channels that are lost by the death of a device. */
void sync_mark_lost(struct sync_head *head, uint32_t device);
/* Sets the poison bit in all words and wakes the threads that sleep on them. code: LOOM_EDIED if a device died, else
 * LOOM_EINTR; device: the device that died. */
void sync_poison_all(const struct loom_layout *layout, struct sync_head *head, int code, uint32_t device);

/* Defines the table of a plug-in whose instance begins with a struct sync. The plug-in has a create() of its own.
 * `...`: additional ops. */
#define SYNC_TABLE(name, ...)                                                                                          \
	static const struct loom_sync_ops name##_ops = {                                                               \
	    .size = sizeof(struct loom_sync_ops), .create = create, .channels = sync_channels, __VA_ARGS__}
/* Defines the table of a plug-in whose create() calls sync_create(). */
#define SYNC_OPS_TABLE(name)                                                                                           \
	SYNC_TABLE(name, .destroy = sync_destroy, .need = sync_need, .init = sync_init, .collect = sync_collect,       \
		   .interrupt = sync_interrupt)

/* Defines create() of a plug-in whose instance is a struct sync. `...`: statements that set s->setting from the options
 * *o. */
#define SYNC_CREATE(NAME, OPTS, ...)                                                                                   \
	static int create(const struct loom_host *host, const void *opts, void **self, struct loom_error *err)         \
	{                                                                                                              \
		const struct OPTS *o = opts;                                                                           \
		struct sync *s;                                                                                        \
		int rc = sync_create(host, NAME, &s, err);                                                             \
		if (rc)                                                                                                \
			return rc;                                                                                     \
		__VA_ARGS__;                                                                                           \
		*self = s;                                                                                             \
		return 0;                                                                                              \
	}

/* Define the device half of plug-in NAME. It consists of slot.dev.h, NAME.dev.h and channel.dev.h, and of
 * gpu_wait.dev.h if workers wait by a monitor. */
#define SYNC_CODE(NAME) SYNC_CODE_OF(NAME, LOOM_CODE_FILE("channel.dev.h"), 0)
#define SYNC_GPU_WAIT_CODE(NAME)                                                                                       \
	SYNC_CODE_OF(NAME, LOOM_CODE_FILE("gpu_wait.dev.h") LOOM_CODE_FILE("channel.dev.h"), LOOM_CODE_WATCHES)
#define SYNC_CODE_OF(NAME, FILES, FLAGS)                                                                               \
	SYNC_DEV_TABLE(NAME);                                                                                          \
	LOOM_DEVICE_CODE(code, NAME##_cpu, #NAME ".dev.h",                                                             \
			 LOOM_CODE_FILE("slot.dev.h") LOOM_CODE_FILE(#NAME ".dev.h") FILES, .flags = FLAGS)

#define SYNC_DEV_TABLE(name)                                                                                           \
	static const struct loom_sync_dev name##_cpu = {                                                               \
	    .size = sizeof(struct loom_sync_dev),                                                                      \
	    .reserve = name##_reserve,                                                                                 \
	    .publish = name##_publish,                                                                                 \
	    .wait = name##_wait,                                                                                       \
	    .wait_all = name##_wait_all,                                                                               \
	    .release = name##_release,                                                                                 \
	}

#endif
