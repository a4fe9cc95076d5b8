/* SPDX-License-Identifier: Apache-2.0 */
/* Which provider, and the way to all ranks. Every step that can fail on one rank alone is followed by an
 * exchange, so that all ranks take the same way on. */
#include "fabric_inside.h"
#include "../host_mark.h"

#include <errno.h>
#include <fcntl.h>
#include <gpuloom/fd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define TEXT 400

/* 1 when all ranks say so; negative when a rank is gone. */
static int all_agree(const struct loom_host *host, int mine, struct loom_error *err)
{
	uint8_t one = mine != 0;
	uint8_t *all = host->alloc(host, host->ranks);
	if (!all)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "out of memory");
	int rc = host->allgather(host, &one, all, 1, err);
	for (uint32_t r = 0; r < host->ranks && !rc; r++)
		one &= all[r];
	host->free(host, all);
	return rc ? rc : one;
}

/* Memory and loopback are shared. */
static int one_host(const struct loom_host *host, struct loom_error *err)
{
	struct host_mark mine, *all = host->alloc(host, host->ranks * sizeof(*all));
	if (!all)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "out of memory");
	host_mark_read(&mine);
	int rc = host->allgather(host, &mine, all, sizeof(mine), err);
	int same = 1;
	for (uint32_t r = 0; r < host->ranks && !rc; r++)
		same &= !memcmp(&mine, &all[r], sizeof(mine));
	host->free(host, all);
	return rc ? rc : same;
}

/* ---- one provider -------------------------------------------------------------------------------- */

/* "tcp" as users say it, and '+' for the ';' that INI files take for a comment. */
static void full_name(const char *name, char *out, size_t size)
{
	snprintf(out, size, "%s", !strcmp(name, "tcp") ? "tcp;ofi_rxm" : name);
	for (char *c = out; *c; c++)
		if (*c == '+')
			*c = ';';
}

static struct fi_info *ask(const struct fabric_want *want, const char *provider, const char *address,
			   int atomics, int devices, int *code)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;
	if (!hints) {
		*code = -FI_ENOMEM;
		return NULL;
	}
	hints->caps = FI_MSG | FI_TAGGED | FI_RMA | (atomics ? FI_ATOMIC : 0) |
		      (want->trigger ? FI_TRIGGER : 0) | (devices ? FI_HMEM : 0);
	hints->mode = 0;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY |
				      (devices ? FI_MR_HMEM : 0);
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->domain_attr->av_type = FI_AV_TABLE;
	/* An operation is complete when its data are in the target's memory: flush() builds on it. */
	hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
	hints->fabric_attr->prov_name = strdup(provider);
	int shared_memory = !strcmp(provider, "shm"); /* named by process, not by address */
	const char *node = shared_memory || !*address ? NULL : address;
	*code = fi_getinfo(FABRIC_API, node, NULL, node ? FI_SOURCE : 0, hints, &info);
	fi_freeinfo(hints);
	return *code ? NULL : info;
}

/* With something to sleep on, where the provider has that. It costs each event a little. */
static int open_queue(struct ofi *f, int sleep)
{
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_DATA, .size = 4096, .wait_obj = sleep ? FI_WAIT_FD : FI_WAIT_NONE};
	int code = fi_cq_open(f->domain, &cq, &f->cq, NULL);
	f->is.fd = -1;
	if (sleep && code)
		return open_queue(f, 0);
	if (sleep && fi_control(&f->cq->fid, FI_GETWAIT, &f->is.fd))
		f->is.fd = -1;
	return code;
}

static int set_up(struct ofi *f, int sleep, char *why)
{
	struct fi_av_attr av = {.type = FI_AV_TABLE};
	const char *what = "its fabric does not open";
	int code = strcmp(f->is.name, "shm") ? 0 : fabric_name_shm(f);
	if (!code)
		code = fi_fabric(f->info->fabric_attr, &f->fabric, NULL);
	if (!code) {
		what = "its domain does not open";
		code = fi_domain(f->fabric, f->info, &f->domain, NULL);
	}
	if (!code) {
		what = "no address vector";
		code = fi_av_open(f->domain, &av, &f->av, NULL);
	}
	if (!code) {
		what = "no completion queue";
		code = open_queue(f, sleep);
	}
	if (!code) {
		what = "no endpoint";
		code = fi_endpoint(f->domain, f->info, &f->ep, NULL);
	}
	if (!code) {
		what = "its endpoint cannot be enabled";
		code = fi_ep_bind(f->ep, &f->av->fid, 0);
	}
	if (!code)
		code = fi_ep_bind(f->ep, &f->cq->fid, FI_TRANSMIT | FI_RECV);
	if (!code)
		code = fi_enable(f->ep);
	if (!code) {
		what = "it registers no memory";
		code = fabric_register_host(f, f->scratch, FABRIC_SCRATCH_BYTES, &f->scratch_mr);
	}
	if (code)
		snprintf(why, TEXT, "%s: %s", what, fi_strerror(-code));
	return code;
}

/* What all ranks have: one that lacked the memory to look is not to go on in another way than the others. */
static int find_atomics(struct ofi *f, struct loom_error *err)
{
	const struct loom_host *host = f->is.host;
	uint64_t(*all)[2] = host->alloc(host, host->ranks * sizeof(*all));
	if (!all)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "out of memory");
	for (uint32_t type = LOOM_NET_U64; type <= LOOM_NET_F32; type++) {
		size_t count = 0;
		f->most_add[type] = f->info->caps & FI_ATOMIC &&
						    !fi_atomicvalid(f->ep, fabric_type(type), FI_SUM, &count) ?
					    count :
					    0;
	}
	int rc = host->allgather(host, f->most_add, all, sizeof(*all), err);
	for (uint32_t r = 0; r < host->ranks && !rc; r++)
		for (uint32_t type = LOOM_NET_U64; type <= LOOM_NET_F32; type++)
			if (all[r][type] < f->most_add[type])
				f->most_add[type] = all[r][type];
	host->free(host, all);
	return rc;
}

/* Endpoint names and scratch memory of all ranks. */
struct card {
	char name[FABRIC_ADDRESS];
	struct fabric_there scratch;
};

static int meet(struct ofi *f, char *why, struct loom_error *err)
{
	const struct loom_host *host = f->is.host;
	struct card mine = {.name = {0}}, *all = host->alloc(host, host->ranks * sizeof(*all));
	size_t size = sizeof(mine.name);
	if (!all)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "out of memory");
	int code = fi_getname(&f->ep->fid, mine.name, &size);
	mine.scratch = fabric_there(f, &(struct fabric_here){.at = f->scratch,
							     .bytes = FABRIC_SCRATCH_BYTES,
							     .mr = f->scratch_mr});
	int rc = host->allgather(host, &mine, all, sizeof(mine), err);
	for (uint32_t r = 0; !rc && !code && r < host->ranks; r++) {
		all[r].name[sizeof(all[r].name) - 1] = 0;
		f->scratch_there[r] = all[r].scratch;
		if (fi_av_insert(f->av, all[r].name, 1, &f->peer[r], 0, NULL) != 1)
			code = -FI_EADDRNOTAVAIL;
		else if (!strcmp(f->is.name, "shm") && !fabric_mapped_shm(all[r].name))
			code = -FI_ENOMEM;
	}
	/* The provider shm of libfabric 1.17 says nothing when it cannot map a peer. It crashes at the first write to
	 * that peer, and when the peers are closed: they stay open. */
	if (code == -FI_ENOMEM)
		f->av = NULL;
	if (code)
		snprintf(why, TEXT, "the ranks cannot be addressed: %s", fi_strerror(-code));
	host->free(host, all);
	return rc ? rc : code ? LOOM_EAGAIN : 0;
}

/* Opens and tests `name`. 0 with *out, LOOM_EAGAIN with `why` (on all ranks), or an error. */
static int try(const struct loom_host *host, const struct fabric_want *want, const char *name,
	       const char *address, struct fabric **out, char *why, struct loom_error *err)
{
	struct ofi *f = host->alloc(host, sizeof(*f));
	int code = 0;
	char provider[64];
	full_name(name, provider, sizeof(provider));
	why[0] = 0;
	if (f) {
		f->is.ops = &ofi_ops;
		f->is.host = host;
		f->devices = (int)want->devices;
		f->scratch = host->alloc(host, FABRIC_SCRATCH_BYTES);
		f->peer = host->alloc(host, host->ranks * sizeof(*f->peer));
		f->scratch_there = host->alloc(host, host->ranks * sizeof(*f->scratch_there));
	}
	if (!f || !f->scratch || !f->peer || !f->scratch_there) {
		if (f)
			ofi_close(&f->is);
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "out of memory");
	}
	snprintf(f->is.name, sizeof(f->is.name), "%s", provider);
	/* libfabric 1.17's net says that a put is complete when it has left, whatever its endpoint's op_flags are. */
	f->ask_delivery = !strcmp(provider, "net");
	/* Atomics are not claimed everywhere, nor needed by all; by shm not beside FI_HMEM. */
	for (int way = want->devices ? 0 : 2; way < 4 && !f->info; way++) {
		f->hmem = way < 2;
		f->info = ask(want, provider, address, way % 2 == 0, f->hmem, &code);
	}
	if (f->info && !provider[0]) /* the conf leaves it to libfabric */
		snprintf(f->is.name, sizeof(f->is.name), "%s", f->info->fabric_attr->prov_name);
	if (code)
		snprintf(why, TEXT, "libfabric offers no such endpoint%s: %s",
			 want->trigger ? " with triggered operations" : "", fi_strerror(-code));
	else
		code = set_up(f, (int)want->sleep, why);
	int rc = all_agree(host, !code, err);
	if (rc == 1)
		rc = meet(f, why, err);
	else if (rc == 0)
		rc = LOOM_EAGAIN;
	if (!rc || rc == LOOM_EAGAIN) {
		int met = all_agree(host, !rc, err);
		rc = met < 0 ? met : met ? 0 : LOOM_EAGAIN;
	}
	if (!rc && !strcmp(f->is.name, "shm")) /* all have mapped all */
		fabric_forget_shm(f);
	if (!rc)
		rc = find_atomics(f, err);
	if (!rc) {
		/* libfabric 1.17's shm mixes up the operands of atomics that are under way together and
		 * shall say when they are delivered: not at once, so that no test finds it for sure. */
		f->add_alone = !strcmp(f->is.name, "shm");
		rc = fabric_test(f, why, TEXT, err);
	}
	if (rc) {
		ofi_close(&f->is);
		if (!why[0])
			snprintf(why, TEXT, "another rank cannot use it");
		return rc;
	}
	*out = &f->is;
	return 0;
}

/* The provider shm keeps 16 MiB and more of each rank there; its own error is "No data available". */
#define SHM_FOLDER "/dev/shm"
#define SHM_LEAST ((uint64_t)20 << 20)

/* Why shared memory may be lacking, as a clause with the remedy; "" where there is enough. */
static void look_at_shm(uint32_t ranks, char *text, size_t room)
{
	struct statvfs st;
	*text = 0;
	if (statvfs(SHM_FOLDER, &st))
		snprintf(text, room, " (" SHM_FOLDER ": %s; mount a tmpfs there)", strerror(errno));
	else if (st.f_flag & ST_RDONLY || access(SHM_FOLDER, W_OK))
		snprintf(text, room, " (" SHM_FOLDER " cannot be written to; mount it writable)");
	else if ((uint64_t)st.f_bavail * st.f_frsize < ranks * SHM_LEAST)
		snprintf(text, room, " (" SHM_FOLDER " has %.1f MiB free, and each rank takes 16 MiB and more; enlarge it: "
			 "mount -o remount,size=1g " SHM_FOLDER ", or a container's --shm-size=1g)",
			 (double)st.f_bavail * (double)st.f_frsize / (1 << 20));
}

/* libfabric takes providers from the folder that this variable names, in programs with privileges, too. */
static int loads_foreign_code(void)
{
	static const char name[] = "FI_PROVIDER_PATH=";
	char **at = environ;
	while (getauxval(AT_SECURE) && at && *at && strncmp(*at, name, sizeof(name) - 1))
		at++;
	return getauxval(AT_SECURE) && at && *at;
}

static int open_any(const struct loom_host *host, const struct fabric_want *want, struct fabric **fabric,
		    struct loom_error *err)
{
	static const char *const near[] = {"shm", "tcp", "net", "sockets", NULL};
	static const char *const far[] = {"tcp", "net", "sockets", NULL};
	static const char *const triggered[] = {"sockets", NULL};
	const char *named[] = {want->provider, NULL};
	if (loads_foreign_code())
		return LOOM_FAIL(host, err, LOOM_EUNAVAIL,
				 "FI_PROVIDER_PATH names code that a program with privileges must not load: unset it");
	int same = one_host(host, err);
	if (same < 0)
		return same;
	const char *address = *want->address ? want->address : same ? "127.0.0.1" : "";
	int automatic = !strcmp(want->provider, "auto");
	const char *const *first = !automatic ? named : want->trigger ? triggered : same && !want->rma ? near : far, *const *candidate = first;
	char why[TEXT], tried[2 * TEXT] = "", lacking[300] = "";
	for (; *candidate; candidate++) {
		int rc = try(host, want, *candidate, address, fabric, why, err);
		if (!rc) {
			struct ofi *f = ofi_of(*fabric);
			LOOM_CHOICE(host, "trigger.atomics", "%s", f->most_add[0] ? "yes" : "no");
			/* Memory that is lacking can be had: said once, not by every rank. */
			LOOM_LOG(host, *lacking && !host->rank ? LOOM_LOG_WARN : LOOM_LOG_INFO, "fabric",
				 "provider %s%s%s%s", f->is.name, f->most_add[0] ? "" : ", without atomics",
				 *lacking ? ", which is slower than the one that came first" : "", tried);
			return 0;
		}
		if (rc != LOOM_EAGAIN)
			return rc;
		if (!strcmp(*candidate, "shm"))
			look_at_shm(host->ranks, lacking, sizeof(lacking));
		snprintf(tried + strlen(tried), sizeof(tried) - strlen(tried), "; %.20s: %.100s%s", *candidate, why,
			 strcmp(*candidate, "shm") ? "" : lacking);
		LOOM_LOG(host, LOOM_LOG_INFO, "fabric", "provider %s is of no use: %s", *candidate, why);
	}
	return LOOM_FAIL(host, err, LOOM_EUNAVAIL,
			 automatic ? "no provider of libfabric works here%s" :
				     "the provider of libfabric that the conf names does not work here%s; "
				     "`fi_info -l` lists others, provider = auto chooses one",
			 tried);
}

/* Signals are the host's, but providers set handlers when they open (shm: for SIGINT, SIGTERM, SIGBUS and
 * SIGSEGV, to unlink its files). A request to stop waits until they are put back. */
int ofi_open(const struct loom_host *host, const struct fabric_want *want, struct fabric **fabric,
	     struct loom_error *err)
{
	struct sigaction before[NSIG], now;
	int known[NSIG];
	sigset_t stops, mask;
	sigemptyset(&stops);
	sigaddset(&stops, SIGINT);
	sigaddset(&stops, SIGTERM);
	sigaddset(&stops, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &stops, &mask);
	for (int s = 1; s < NSIG; s++)
		known[s] = !sigaction(s, NULL, &before[s]);
	unsigned held = loom_fd_hold();
	int rc = open_any(host, want, fabric, err);
	loom_fd_release(held);
	for (int s = 1; s < NSIG; s++)
		if (known[s] && !sigaction(s, NULL, &now) && now.sa_handler != before[s].sa_handler)
			sigaction(s, &before[s], NULL);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	return rc;
}
