/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the placement of segments by transport_host.so and transport_p2p.so over CPU devices. Whether devices that
 * share segments are coherent is tested by `gpuloom validate` and by each run on two devices. */
#include <gpuloom/transport.h>

#include "cpu_rig.h"

static struct loom__drive rig;

static struct {
	const struct loom_transport_ops *ops;
	void *self;
	const struct loom_device_ops *device_ops[LOOM__DRIVE_DEVICES];
	struct loom_devices devices;
} way;

static int open_transport(const char *name, const char *settings)
{
	const struct loom_plugin *plugin = fake_load(name);
	way.ops = plugin->ops;
	for (uint32_t i = 0; i < rig.n; i++)
		way.device_ops[i] = rig.ops;
	way.devices = (struct loom_devices){.size = sizeof(way.devices),
					    .count = rig.n,
					    .layout = &rig.layout,
					    .ops = way.device_ops,
					    .self = rig.self};
	return way.ops->create(&fake_host, fake_settings(plugin, settings), &way.self, &rig.err);
}

static const struct loom_segment_want wants[] = {
    {.bytes = 256, .owner = -1, .flags = LOOM_MEMORY_HOST},
    {.bytes = 64, .owner = -1},
    {.bytes = 4160, .owner = 0},
    {.bytes = 64, .owner = 0},
    {.bytes = 8192, .owner = 1},
    {.bytes = 192, .owner = 1, .flags = LOOM_MEMORY_HOST},
    {.bytes = 1 << 20, .owner = 2},
    {.bytes = 4096, .owner = -1, .flags = LOOM_MEMORY_TASKS},
};
#define WANTS ((uint32_t)(sizeof(wants) / sizeof(wants[0])))

/* Checks that the segments of different devices are on different pages. `gpuloom validate` checks the other rules. */
static void check_segments(const struct loom_segment *s)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	for (uint32_t i = 0; i < WANTS; i++) {
		CU_ASSERT_EQUAL(s[i].flags, wants[i].flags & LOOM_MEMORY_HOST);
		CU_ASSERT(s[i].memory->fd >= 0);
		for (uint32_t j = 0; j < i; j++) {
			if (s[i].memory != s[j].memory || s[i].owner == s[j].owner)
				continue;
			uint64_t last_i = (s[i].offset + s[i].bytes - 1) / page;
			uint64_t last_j = (s[j].offset + s[j].bytes - 1) / page;
			CU_ASSERT(last_i < s[j].offset / page || last_j < s[i].offset / page);
		}
	}
}

/* Checks where each segment of `wants` is placed. home[i] is the index of the device whose memory has segment i, or -1
 * for host memory. */
static void placed(const char *transport, const char *settings, const int32_t *home)
{
	struct loom_segment first[WANTS], second[WANTS];
	CU_ASSERT_EQUAL_FATAL(rig_open(&rig, 3, "workers=1 oversubscribe=yes"), 0);
	CU_ASSERT_EQUAL_FATAL(open_transport(transport, settings), 0);
	CU_ASSERT_EQUAL_FATAL(
	    way.ops->segments(way.self, &way.devices, wants, WANTS, first, &rig.err), 0);
	CU_ASSERT_EQUAL_FATAL(
	    way.ops->segments(way.self, &way.devices, wants, WANTS, second, &rig.err), 0);
	check_segments(first);
	check_segments(second);
	for (uint32_t i = 0; i < WANTS; i++)
		CU_ASSERT_EQUAL(first[i].memory->device, home[i]);
	way.ops->release(way.self, &way.devices, first, WANTS);
	way.ops->release(way.self, &way.devices, second, WANTS);
	way.ops->destroy(way.self);
	loom__drive_close(&rig);
}

TEST(host_layout)
{
	static const int32_t home[] = {-1, -1, -1, -1, -1, -1, -1, -1};
	placed("transport_host", "", home);
}

TEST(p2p_layout)
{
	static const int32_t owner[] = {-1, 0, 0, 0, 1, -1, 2, 0};
	static const int32_t host[] = {-1, 0, -1, -1, -1, -1, -1, 0};
	static const int32_t host_and_tasks[] = {-1, 0, -1, -1, -1, -1, -1, -1};
	placed("transport_p2p", "", owner);
	placed("transport_p2p", "placement=host", host);
	placed("transport_p2p", "placement=host tasks=host", host_and_tasks);
}

TEST_MAIN("transport", 120)
