/* SPDX-License-Identifier: Apache-2.0 */
/* transport_host.so and transport_p2p.so over CPU devices: where segments lie, and whether devices
 * that share them are coherent. */
#include <gpuloom/transport.h>
#include <sys/mman.h>

#include "cpu_rig.h"

__attribute__((visibility("default"))) const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "die_after_fork=0"; /* the child of isolation = process starts threads */
}

static struct loom__drive rig;

/* A transport on the rig's devices. */
static struct {
	const struct loom_transport_ops *ops;
	void *self;
	char settings[128];
	uint64_t opts[32];
	const struct loom_device_ops *device_ops[LOOM__DRIVE_DEVICES];
	struct loom_devices devices;
} way;

static int open_transport(const char *name, const char *settings)
{
	const struct loom_plugin *plugin = fake_load(name);
	way.ops = plugin->ops;
	snprintf(way.settings, sizeof(way.settings), "%s", settings);
	fake_options(plugin, way.opts, way.settings);
	for (uint32_t i = 0; i < rig.n; i++)
		way.device_ops[i] = rig.ops;
	way.devices = (struct loom_devices){.size = sizeof(way.devices),
					    .count = rig.n,
					    .layout = &rig.layout,
					    .ops = way.device_ops,
					    .self = rig.self};
	return way.ops->create(&fake_host, way.opts, &way.self, &rig.err);
}

static const struct loom_segment_want wants[] = {
    {.bytes = 256, .owner = -1, .flags = LOOM_MEMORY_HOST},
    {.bytes = 64, .owner = -1},
    {.bytes = 4160, .owner = 0},
    {.bytes = 64, .owner = 0},
    {.bytes = 8192, .owner = 1},
    {.bytes = 192, .owner = 1, .flags = LOOM_MEMORY_HOST},
    {.bytes = 1 << 20, .owner = 2},
};
#define WANTS ((uint32_t)(sizeof(wants) / sizeof(wants[0])))

/* Of different devices on different pages; the rest is asked by `gpuloom validate`. */
static void check_segments(const struct loom_segment *s)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	for (uint32_t i = 0; i < WANTS; i++) {
		CU_ASSERT_EQUAL(s[i].flags, wants[i].flags);
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

/* Which device's memory each of `wants` is in; -1: the host's. */
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
	static const int32_t home[] = {-1, -1, -1, -1, -1, -1, -1};
	placed("transport_host", "", home);
	placed("transport_host", "huge_pages=try node=0", home);
}

TEST(p2p_layout)
{
	static const int32_t owner[] = {-1, 0, 0, 0, 1, -1, 2};
	static const int32_t remote[] = {-1, 0, 1, 1, 2, -1, 0};
	static const int32_t second[] = {-1, 1, 1, 1, 1, -1, 1};
	placed("transport_p2p", "", owner);
	placed("transport_p2p", "placement=remote", remote);
	placed("transport_p2p", "placement=device:1 huge_pages=try", second);
}

TEST(placement_refused)
{
	static const char *const bad[] = {
	    "placement=near",      "placement=device:",   "placement=device:x",
	    "placement=device:-1", "placement=device:64", "placement=device:1x",
	    "placement=device:+1", "placement=Owner",     "placement=device:99999999999999999999",
	};
	struct loom_segment s[WANTS];
	CU_ASSERT_EQUAL_FATAL(rig_open(&rig, 1, "workers=1"), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CU_ASSERT_EQUAL(open_transport("transport_p2p", bad[i]), LOOM_EINVAL);
		CU_ASSERT_PTR_NOT_NULL(strstr(rig.err.text, "owner, remote, host, device:N"));
	}
	CU_ASSERT_EQUAL_FATAL(open_transport("transport_p2p", "placement=device:1"), 0);
	CU_ASSERT_EQUAL(way.ops->segments(way.self, &way.devices, wants, 2, s, &rig.err),
			LOOM_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(rig.err.text, "device:0"));
	way.ops->destroy(way.self);
	CU_ASSERT_EQUAL_FATAL(open_transport("transport_p2p", "placement=remote"), 0);
	CU_ASSERT_EQUAL(way.ops->segments(way.self, &way.devices, wants, 2, s, &rig.err),
			LOOM_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(rig.err.text, "second device"));
	way.ops->destroy(way.self);
	loom__drive_close(&rig);
}

/* ---- coherence */

/* 1 when devices a and b found each other's atomics in rig.probe. */
static int coherent(struct loom_probe *probe, uint32_t a, uint32_t b, uint64_t timeout_ns)
{
	uint64_t end;
	*probe = (struct loom_probe){.a = a, .b = b};
	CU_ASSERT_EQUAL_FATAL(loom__drive_launch(&rig, LOOM_ENTRY_PROBE), 0);
	CU_ASSERT_EQUAL_FATAL(loom__drive_ready(&rig, 0), 0);
	CU_ASSERT_EQUAL(loom__drive_go(&rig, 0), 0);
	int code = loom__drive_wait(&rig, timeout_ns, &end);
	CU_ASSERT(code == 0 || code == LOOM_EAGAIN);
	__atomic_store_n(&rig.shared->ctl.stop, 1, __ATOMIC_RELAXED);
	CU_ASSERT_EQUAL(loom__drive_retire(&rig, 20 * SECOND), 0);
	return code == 0 && probe->reached == LOOM_PROBE_ROUNDS &&
	       probe->sum == 2 * LOOM_PROBE_ADDS;
}

static void probe_over(const char *transport, const char *settings, const char *device)
{
	struct loom_segment_want want = {.bytes = sizeof(struct loom__drive_shared), .owner = 1};
	struct loom_segment s;
	CU_ASSERT_EQUAL_FATAL(rig_open(&rig, 3, device), 0);
	CU_ASSERT_EQUAL_FATAL(open_transport(transport, settings), 0);
	CU_ASSERT_EQUAL_FATAL(way.ops->segments(way.self, &way.devices, &want, 1, &s, &rig.err), 0);
	loom__drive_segment(&rig, &s);
	for (uint32_t a = 0; a < 3; a++)
		for (uint32_t b = a + 1; b < 3; b++)
			CU_ASSERT(coherent(&rig.shared->probe, a, b, 30 * SECOND));
	way.ops->release(way.self, &way.devices, &s, 1);
	way.ops->destroy(way.self);
	loom__drive_close(&rig);
}

TEST(probe)
{
	static const char *const devices[] = {
	    "workers=1 oversubscribe=yes",
	    "workers=2 lanes=2 oversubscribe=yes isolation=process",
#ifndef __SANITIZE_THREAD__ /* it knows no new threads in the fork of a process that has some */
	    "workers=1 oversubscribe=yes|workers=1 oversubscribe=yes isolation=process",
#endif
	};
	for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++) {
		probe_over("transport_host", "", devices[i]);
		probe_over("transport_p2p", "", devices[i]);
		probe_over("transport_p2p", "placement=remote", devices[i]);
	}
}

/* Memory that looks shared but is not: the host's mapping is a private copy. */
TEST(probe_finds_private_memory)
{
#ifdef __SANITIZE_THREAD__
	return; /* as above */
#endif
	CU_ASSERT_EQUAL_FATAL(rig_open(&rig, 2,
				       "workers=1 oversubscribe=yes|"
				       "workers=1 oversubscribe=yes isolation=process"),
			      0);
	CU_ASSERT_EQUAL_FATAL(loom__drive_memory(&rig), 0);
	struct loom_memory copy = {
	    .size = sizeof(copy), .bytes = 4096, .fd = memfd_create("copy", 0)};
	CU_ASSERT_FATAL(copy.fd >= 0 && ftruncate(copy.fd, 4096) == 0);
	copy.host = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, copy.fd, 0);
	CU_ASSERT_FATAL(copy.host != MAP_FAILED);
	rig.segment[2] = (struct loom_segment){.memory = &copy, .bytes = 4096, .owner = -1};
	rig.probe = LOOM_REF(2, 0);
	struct loom_probe in_file = {.a = 0, .b = 1};
	CU_ASSERT_EQUAL(pwrite(copy.fd, &in_file, sizeof(in_file), 0), sizeof(in_file));
	CU_ASSERT(!coherent(copy.host, 0, 1, SECOND / 5));
	munmap(copy.host, 4096);
	close(copy.fd);
	loom__drive_close(&rig);
}

TEST_MAIN("transport", 120)
