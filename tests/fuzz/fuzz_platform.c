/* SPDX-License-Identifier: Apache-2.0 */
/* The input gives the answers of libsimgrid about a platform file: any hosts, links, rates and latencies, and routes of
 * any length over any links. An accepted platform must give routes over existing links. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "input.h"
#include "lib/child.h"
#include "stack/host.h"

static void *library_of(const char *name);
static void *function(const char *name);
/* The work of the child that reads the platform file runs in this process. */
#define dlopen(name, how) library_of(name)
#define dlsym(library, name) function(name)
#define child_fork(child, name, tied) (*(child) = CHILD_NONE, 1)
#define child_wait(child, used) 0
#define child_end_text(status, text, room) ((void)(status), (void)snprintf(text, room, "ended"))
#define _exit(status) ((void)0)
#define child_limit(idle_s, busy_s) ((void)0)
#include "plugins/shared/simnet/platform.c"
#include "plugins/shared/simnet/links.c"

enum { HOSTS = 12 };

static const uint8_t *at;
static size_t left;
static char thing[64]; /* hosts and links are addresses in this array; its contents do not matter */
static void *data_of[64], *hosts_now[HOSTS + 1], *links_now[65];
static size_t route_now;

static uint8_t byte(void)
{
	return left ? (left--, *at++) : 0;
}

static double figure(void)
{
	double v = 0;
	if (byte() & 1)
		return byte() * 1e-6;
	for (size_t i = 0; i < sizeof(v); i++)
		((uint8_t *)&v)[i] = byte();
	return v;
}

static void fake_init(int *argc, char **argv)
{
	(void)argc, (void)argv;
}
static void fake_load(const char *path)
{
	(void)path;
}
static size_t hosts, links;
static void **fake_hosts(void)
{
	for (size_t i = 0; i < hosts; i++)
		hosts_now[i] = thing + i;
	return hosts_now;
}
static size_t fake_host_count(void)
{
	return hosts;
}
static const char *fake_name(const void *host)
{
	static char name[HOSTS][8];
	size_t i = (size_t)((const char *)host - thing);
	snprintf(name[i], sizeof(name[i]), "h%zu", i);
	return name[i];
}
static void **fake_links(void)
{
	for (size_t i = 0; i < links; i++)
		links_now[i] = thing + i;
	return links_now;
}
static size_t fake_link_count(void)
{
	return links;
}
static double fake_figure(const void *link)
{
	(void)link;
	return figure();
}
static int fake_shared(const void *link)
{
	return ((const char *)link - thing) % 3 != 2;
}
static void *fake_get(const void *link)
{
	return data_of[(const char *)link - thing];
}
static void fake_set(void *link, void *data)
{
	data_of[(char *)link - thing] = data;
}
static void fake_route(const void *from, const void *to, void *list)
{
	(void)from, (void)to, (void)list;
	route_now = links ? byte() % 40 : 0;
}
static double fake_latency(const void *from, const void *to)
{
	(void)from, (void)to;
	return figure();
}
static void *fake_list(unsigned long each, void (*drop)(void *))
{
	(void)each, (void)drop;
	return thing;
}
static void fake_reset(void *list)
{
	(void)list;
}
static unsigned long fake_length(const void *list)
{
	(void)list;
	return route_now;
}
static void fake_item(const void *list, unsigned long i, void *out)
{
	(void)list, (void)i;
	*(void **)out = thing + byte() % links;
}

static void *library_of(const char *name)
{
	(void)name;
	return thing;
}

static void *function(const char *name)
{
	static const struct {
		const char *name;
		void *call;
	} known[] = {{"simgrid_init", fake_init},
		     {"simgrid_load_platform", fake_load},
		     {"sg_host_list", fake_hosts},
		     {"sg_host_count", fake_host_count},
		     {"sg_host_get_name", fake_name},
		     {"sg_link_list", fake_links},
		     {"sg_link_count", fake_link_count},
		     {"sg_link_get_bandwidth", fake_figure},
		     {"sg_link_is_shared", fake_shared},
		     {"sg_link_get_data", fake_get},
		     {"sg_link_set_data", fake_set},
		     {"sg_host_get_route", fake_route},
		     {"sg_host_get_route_latency", fake_latency},
		     {"xbt_dynar_new", fake_list},
		     {"xbt_dynar_reset", fake_reset},
		     {"xbt_dynar_length", fake_length},
		     {"xbt_dynar_get_cpy", fake_item}};
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(known[i].name, name))
			return known[i].call;
	return NULL;
}

static void use(const struct platform *p)
{
	const struct simnet_model model = {.sim_rate = 1, .sim_sharing = SIMNET_QUEUE};
	struct links *l = links_of_platform(&model, p);
	for (uint32_t i = 0; l && i < p->hosts * p->hosts; i++) {
		struct link_route r = links_route(l, i / p->hosts, i % p->hosts, 0);
		FUZZ_CHECK(r.count <= LINKS_OF_ROUTE);
		for (uint32_t k = 0; k < r.count; k++)
			FUZZ_CHECK(r.link[k] < p->links);
		FUZZ_CHECK(r.latency < UINT64_MAX / 4); /* sums with other times must not overflow */
		if (i / p->hosts != i % p->hosts)
			links_queue(l, &r, 1000, 4096);
	}
	links_destroy(l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct loom__host host;
	struct loom_error err = {0};
	struct platform p = {0};
	at = data;
	left = size;
	hosts = byte() % (HOSTS + 1);
	links = byte() % sizeof(thing);
	uint32_t wanted = 1 + byte() % HOSTS;
	loom__host_init(&host, NULL);
	if (platform_read(&host.table, "/dev/null/platform.xml", wanted, &p, &err))
		FUZZ_CHECK(*err.text);
	else
		use(&p);
	platform_drop(&p);
	return 0;
}
