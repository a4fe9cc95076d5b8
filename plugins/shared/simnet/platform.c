/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a platform file by libsimgrid, if that is installed. The library installs signal handlers, and ends its process
 * if the file is wrong. So a child process loads it, and leaves the result in shared memory. */
#include "platform.h"

#include "links.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/child.h"

#define IDLE_MOST_S 10u /* limits of the child */
#define BUSY_MOST_S 600u
#define TRIES 3u
/* Limits of latencies (in seconds) and rates (in bytes per ns), so that times in ns fit into 64 bits. */
#define LATENCY_MOST 3600.0
#define RATE_LEAST 1e-9
#define RATE_MOST 1e9

/* The result consists of this head, the rates of the links, the routes, and the links of the routes. A link with policy
 * FATPIPE is not shared. It limits no flow, so only its latency counts. */
struct found {
	uint32_t hosts; /* number of hosts of the platform; 0: libsimgrid is not installed */
	uint32_t links, longest, fault; /* number of links; links in the longest route; enum fault */
	uint32_t whole; /* 1: the child has completed; needed if its exit status is lost */
	uint64_t least, over; /* the shortest latency in ns; number of links in all routes */
};

enum fault { FINE, TOO_MANY, NO_NUMBER };

/* The functions of libsimgrid that read_all() calls. Handles are opaque. */
struct simgrid {
	void (*init)(int *argc, char **argv);
	void (*load)(const char *path);
	void **(*hosts)(void);
	size_t (*host_count)(void);
	const char *(*host_name)(const void *host);
	void **(*links)(void);
	size_t (*link_count)(void);
	double (*bandwidth)(const void *link);
	int (*is_shared)(const void *link);
	void *(*get_data)(const void *link);
	void (*set_data)(void *link, void *data);
	void (*route)(const void *from, const void *to, void *links);
	double (*latency)(const void *from, const void *to);
	void *(*list_new)(unsigned long each, void (*drop)(void *));
	void (*list_reset)(void *list);
	unsigned long (*list_length)(const void *list);
	void (*list_get)(const void *list, unsigned long i, void *out);
};

static int open_simgrid(struct simgrid *s)
{
	void *so = dlopen("libsimgrid.so.3.32", RTLD_NOW);
	so = so ? so : dlopen("libsimgrid.so", RTLD_NOW);
	if (!so)
		return -1;
	const struct {
		void *to;
		const char *name;
	} need[] = {{&s->init, "simgrid_init"},
		    {&s->load, "simgrid_load_platform"},
		    {&s->hosts, "sg_host_list"},
		    {&s->host_count, "sg_host_count"},
		    {&s->host_name, "sg_host_get_name"},
		    {&s->links, "sg_link_list"},
		    {&s->link_count, "sg_link_count"},
		    {&s->bandwidth, "sg_link_get_bandwidth"},
		    {&s->is_shared, "sg_link_is_shared"},
		    {&s->get_data, "sg_link_get_data"},
		    {&s->set_data, "sg_link_set_data"},
		    {&s->route, "sg_host_get_route"},
		    {&s->latency, "sg_host_get_route_latency"},
		    {&s->list_new, "xbt_dynar_new"},
		    {&s->list_reset, "xbt_dynar_reset"},
		    {&s->list_length, "xbt_dynar_length"},
		    {&s->list_get, "xbt_dynar_get_cpy"}};
	for (size_t i = 0; i < sizeof(need) / sizeof(need[0]); i++)
		if (!(*(void **)need[i].to = dlsym(so, need[i].name)))
			return -1;
	return 0;
}

static const struct simgrid *naming; /* argument of by_name(), in the child */
static int by_name(const void *a, const void *b)
{
	return strverscmp(naming->host_name(*(void *const *)a), naming->host_name(*(void *const *)b));
}

static void read_routes(const struct simgrid *s, void **host, uint32_t hosts, struct found *f,
			struct platform_route *route, uint32_t *over)
{
	void *list = s->list_new(sizeof(void *), NULL);
	for (uint64_t i = 0; i < (uint64_t)hosts * hosts; i++) {
		void *link, *from = host[i / hosts], *to = host[i % hosts];
		if (from == to)
			continue;
		s->list_reset(list);
		s->route(from, to, list);
		double latency = s->latency(from, to);
		if (!(latency >= 0 && latency < LATENCY_MOST)) {
			f->fault = NO_NUMBER;
			return;
		}
		uint64_t ns = (uint64_t)(latency * 1e9 + 0.5);
		uint32_t count = 0, all = (uint32_t)s->list_length(list);
		for (uint32_t k = 0; k < all; k++) {
			s->list_get(list, k, &link);
			if (s->is_shared(link) && count++ < LINKS_OF_ROUTE)
				over[f->over + count - 1] = (uint32_t)(uintptr_t)s->get_data(link);
		}
		route[i] = (struct platform_route){.latency = ns, .first = (uint32_t)f->over, .count = count};
		f->over += count < LINKS_OF_ROUTE ? count : LINKS_OF_ROUTE;
		f->longest = count > f->longest ? count : f->longest;
		f->least = ns < f->least ? ns : f->least;
	}
}

/* Reads the platform. Runs in the child. */
static void read_all(const char *path, uint32_t hosts, struct found *f, uint64_t room)
{
	struct simgrid s;
	int argc = 2;
	char program[] = "gpuloom", quiet[] = "--log=root.thresh:error";
	char *argv[] = {program, quiet, NULL};
	child_limit(IDLE_MOST_S, BUSY_MOST_S);
	if (open_simgrid(&s))
		return;
	s.init(&argc, argv);
	s.load(path);
	f->hosts = (uint32_t)s.host_count();
	f->links = (uint32_t)s.link_count();
	f->least = UINT64_MAX;
	double *rate = (double *)(f + 1);
	struct platform_route *route = (struct platform_route *)(rate + f->links);
	uint32_t *over = (uint32_t *)(route + (uint64_t)hosts * hosts);
	void **host = s.hosts(), **links = s.links();
	if (f->hosts < hosts || (char *)(over + (uint64_t)hosts * hosts * LINKS_OF_ROUTE) > (char *)f + room) {
		f->fault = TOO_MANY;
		return;
	}
	for (uint32_t i = 0; i < f->links; i++) {
		rate[i] = s.bandwidth(links[i]) / 1e9;
		if (!(rate[i] >= RATE_LEAST && rate[i] <= RATE_MOST))
			f->fault = NO_NUMBER;
		s.set_data(links[i], (void *)(uintptr_t)i);
	}
	if (f->fault)
		return;
	naming = &s;
	qsort(host, f->hosts, sizeof(*host), by_name);
	read_routes(&s, host, hosts, f, route, over);
}

static int check(const struct loom_host *host, const char *path, uint32_t hosts, const struct found *f, int status,
		 struct loom_error *err)
{
	char how[120];
	child_end_text(status, how, sizeof(how));
	if (status && !(status == CHILD_LOST && f->whole))
		return LOOM_FAIL(host, err, LOOM_EINVAL, "sim_platform = %s: SimGrid cannot read the file: its process "
			"%s",
				 path, how);
	if (!f->hosts)
		return LOOM_FAIL(
		    host, err, LOOM_ENOTSUP,
		    "sim_platform: libsimgrid 3.32, which reads such files, is not installed: "
		    "install it (Debian: libsimgrid3.32), or describe the network by the other options sim_*");
	if (f->hosts < hosts)
		return LOOM_FAIL(host, err, LOOM_EINVAL,
				 "sim_platform = %s: it has %u hosts, and %u are needed: take fewer ranks, or "
				 "raise sim_ranks_per_host",
				 path, f->hosts, hosts);
	if (f->fault == NO_NUMBER)
		return LOOM_FAIL(host, err, LOOM_EINVAL,
				 "sim_platform = %s: each link needs a bandwidth from 1 B/s to 1e18 B/s, and each "
				 "pair of hosts a route with a latency from 0 to 1 h: fix the file",
				 path);
	if (f->longest > LINKS_OF_ROUTE || f->fault == TOO_MANY)
		return LOOM_FAIL(host, err, LOOM_ENOTSUP,
				 "sim_platform = %s: %u links, and up to %u in a route, are too many: a route may have "
				 "%u",
				 path, f->links, f->longest, LINKS_OF_ROUTE);
	return 0;
}

int platform_read(const struct loom_host *host, const char *path, uint32_t hosts, struct platform *p,
		  struct loom_error *err)
{
	uint64_t pairs = (uint64_t)hosts * hosts;
	struct stat kind;
	/* Opening a pipe would wait for its writer. SimGrid words other faults. */
	if (stat(path, &kind) == 0 && !S_ISREG(kind.st_mode))
		return LOOM_FAIL(host, err, LOOM_EINVAL, "sim_platform = %s: this is not a regular file", path);
	/* 64 MiB are for the rates. Pages of the mapping that are not written take no memory. */
	uint64_t room = pairs * (sizeof(*p->route) + LINKS_OF_ROUTE * sizeof(uint32_t)) + (64ull << 20);
	struct found *f = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (f == MAP_FAILED)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "sim_platform: no memory for %llu routes",
				 (unsigned long long)pairs);
	/* When another thread of this program holds a lock of the allocator or of the loader while this one forks, the
	 * child waits for this lock until its limit ends it. So there are several tries. */
	int code = 0, status = 0;
	for (uint32_t try = 0; try < TRIES; try++) {
		struct child child;
		int inside = child_fork(&child, "simgrid", 1);
		if (inside > 0) {
			read_all(path, hosts, f, room);
			f->whole = 1;
			_exit(0);
		}
		if (inside < 0) {
			code = LOOM_FAIL(host, err, LOOM_EUNAVAIL, "sim_platform: no process can be started: %s", strerror(errno));
			break;
		}
		status = child_wait(&child, NULL);
		if (status == CHILD_LOST || !WIFSIGNALED(status) || WTERMSIG(status) != SIGALRM)
			break;
	}
	code = code ? code : check(host, path, hosts, f, status, err);
	if (code) {
		munmap(f, room);
		return code;
	}
	const double *rate = (const double *)(f + 1);
	const struct platform_route *route = (const struct platform_route *)(rate + f->links);
	*p = (struct platform){.hosts = hosts, .links = f->links, .least = f->least, .rate = rate,
			       .route = route, .over = (const uint32_t *)(route + pairs), .map = f, .bytes = room};
	return 0;
}

void platform_drop(struct platform *p)
{
	if (p->map)
		munmap(p->map, p->bytes);
	*p = (struct platform){0};
}
