/* SPDX-License-Identifier: Apache-2.0 */
/* Selects a provider and connects all ranks. Some steps can fail on a single rank. After each of these steps the ranks
 * exchange the result, so that all ranks continue in the same way. */
#include "fabric_ofi.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "lib/fd.h"
#include "lib/host_mark.h"

#define TEXT 400

/* Limits on each part of the test of a provider. `provider = auto` tries the next one soon, but not before the launcher has
 * ended all ranks after the death of one. A named provider has no substitute, and a first connection over a link that loses
 * packets takes seconds. */
#define AUTO_TEST_NS 3000000000ull
#define NAMED_TEST_NS 20000000000ull

/* Returns 1 if `mine` is not 0 on all ranks, and 0 if it is 0 on a rank. Returns a negative error if a rank has
 * died. */
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

/* Returns 1 if all ranks are on one host, where they share memory and the loopback interface. Returns 0 if not, or an
 * error. */
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

/* Expands a provider name. "tcp" is an abbreviation. '+' stands for ';', because ';' begins a comment in INI files. */
static void full_name(const char *name, char *out, size_t size)
{
	snprintf(out, size, "%s", !strcmp(name, "tcp") ? "tcp;ofi_rxm" : name);
	for (char *c = out; *c; c++)
		if (*c == '+')
			*c = ';';
}

static struct fi_info *get_info(const char *provider, const char *address, int atomics, int devices, int *code)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;
	if (!hints) {
		*code = -FI_ENOMEM;
		return NULL;
	}
	hints->caps = FI_MSG | FI_TAGGED | FI_RMA | (atomics ? FI_ATOMIC : 0) | (devices ? FI_HMEM : 0);
	hints->mode = 0;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY |
				      (devices ? FI_MR_HMEM : 0);
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->domain_attr->av_type = FI_AV_TABLE;
	/* With FI_DELIVERY_COMPLETE, an operation completes when its data are in the target's memory, as flush()
	 * requires. */
	hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
	hints->fabric_attr->prov_name = strdup(provider);
	int shared_memory = !strcmp(provider, "shm"); /* provider shm names endpoints by process, not by address */
	const char *node = shared_memory || !*address ? NULL : address;
	*code = fi_getinfo(FABRIC_API, node, NULL, node ? FI_SOURCE : 0, hints, &info);
	fi_freeinfo(hints);
	return *code ? NULL : info;
}

/* Opens the completion queue. sleep: requests a descriptor to sleep on, if the provider has one. Without `sleep` there
 * is none, because a descriptor makes each event slightly slower. */
static int open_queue(struct fabric_ofi *f, int sleep)
{
	struct fi_cq_attr cq = {
	    .format = FI_CQ_FORMAT_DATA, .size = 4096, .wait_obj = sleep ? FI_WAIT_FD : FI_WAIT_NONE};
	int code = fi_cq_open(f->domain, &cq, &f->cq, NULL);
	f->is.fd = -1;
	if (sleep && code)
		return open_queue(f, 0);
	if (sleep && fi_control(&f->cq->fid, FI_GETWAIT, &f->is.fd))
		f->is.fd = -1;
	return code;
}

static int open_endpoint(struct fabric_ofi *f, int sleep, char *why)
{
	struct fi_av_attr av = {.type = FI_AV_TABLE};
	const char *what = "its fabric cannot be opened";
	int code = strcmp(f->is.name, "shm") ? 0 : fabric_name_shm(f);
	if (!code)
		code = fi_fabric(f->info->fabric_attr, &f->fabric, NULL);
	if (!code) {
		what = "its domain cannot be opened";
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
		what = "it cannot register memory";
		code = fabric_register_host(f, f->scratch, FABRIC_SCRATCH_BYTES, &f->scratch_mr);
	}
	if (code)
		snprintf(why, TEXT, "%s: %s", what, fi_strerror(-code));
	return code;
}

/* Sets most_add to the limits of the atomics that all ranks support. */
static int find_atomics(struct fabric_ofi *f, struct loom_error *err)
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

/* What exchange_addresses() collects from each rank. */
struct endpoint {
	char name[FABRIC_ADDRESS];
	struct fabric_remote scratch;
};

static int exchange_addresses(struct fabric_ofi *f, char *why, struct loom_error *err)
{
	const struct loom_host *host = f->is.host;
	struct endpoint mine = {.name = {0}}, *all = host->alloc(host, host->ranks * sizeof(*all));
	size_t size = sizeof(mine.name);
	if (!all)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "out of memory");
	int code = fi_getname(&f->ep->fid, mine.name, &size);
	mine.scratch = fabric_remote(f, &(struct fabric_local){.at = f->scratch,
							     .bytes = FABRIC_SCRATCH_BYTES,
							     .mr = f->scratch_mr});
	int rc = host->allgather(host, &mine, all, sizeof(mine), err);
	for (uint32_t r = 0; !rc && !code && r < host->ranks; r++) {
		all[r].name[sizeof(all[r].name) - 1] = 0;
		f->scratch_remote[r] = all[r].scratch;
		if (fi_av_insert(f->av, all[r].name, 1, &f->peer[r], 0, NULL) != 1)
			code = -FI_EADDRNOTAVAIL;
		else if (!strcmp(f->is.name, "shm") && !fabric_mapped_shm(all[r].name))
			code = -FI_ENOMEM;
	}
	/* If a peer cannot be mapped, provider shm of libfabric 1.17 does not report this. It crashes at the first
	 * write to that peer, and when the peers are closed. So the peers stay open. */
	if (code == -FI_ENOMEM)
		f->av = NULL;
	if (code)
		snprintf(why, TEXT, "the ranks cannot be addressed: %s", fi_strerror(-code));
	host->free(host, all);
	return rc ? rc : code ? LOOM_EAGAIN : 0;
}

/* Opens and tests provider `name`. Returns 0 with *out. Returns LOOM_EAGAIN on all ranks, with the reason in `why`, if
 * the provider does not work. Other errors are final. */
static int try_provider(const struct loom_host *host, const struct fabric_want *want, const char *name,
	       const char *address, struct fabric **out, char *why, struct loom_error *err)
{
	struct fabric_ofi *f = host->alloc(host, sizeof(*f));
	int code = 0;
	char provider[64];
	full_name(name, provider, sizeof(provider));
	why[0] = 0;
	if (f) {
		f->is.ops = &fabric_ofi_ops;
		f->is.host = host;
		f->devices = (int)want->devices;
		f->always_staged = (int)want->staged;
		f->piece = want->piece;
		f->scratch = host->alloc(host, FABRIC_SCRATCH_BYTES);
		f->peer = host->alloc(host, host->ranks * sizeof(*f->peer));
		f->scratch_remote = host->alloc(host, host->ranks * sizeof(*f->scratch_remote));
	}
	if (!f || !f->scratch || !f->peer || !f->scratch_remote) {
		if (f)
			fabric_ofi_close(&f->is);
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "out of memory");
	}
	snprintf(f->is.name, sizeof(f->is.name), "%s", provider);
	/* In libfabric 1.17, provider net completes a put when the data have left, and ignores op_flags. */
	f->ask_delivery = !strcmp(provider, "net");
	/* The variants are: atomics and FI_HMEM, only FI_HMEM, only atomics, neither. Atomics are optional, because
	 * provider shm does not have them together with FI_HMEM. */
	for (int variant = want->devices ? 0 : 2; variant < 4 && !f->info; variant++) {
		f->hmem = variant < 2;
		f->info = get_info(provider, address, variant % 2 == 0, f->hmem, &code);
	}
	if (f->info && !provider[0]) /* the name is empty, so libfabric has chosen */
		snprintf(f->is.name, sizeof(f->is.name), "%s", f->info->fabric_attr->prov_name);
	if (code)
		snprintf(why, TEXT, "libfabric offers no such endpoint: %s", fi_strerror(-code));
	else
		code = open_endpoint(f, (int)want->sleep, why);
	int rc = all_agree(host, !code, err);
	if (rc == 1)
		rc = exchange_addresses(f, why, err);
	else if (rc == 0)
		rc = LOOM_EAGAIN;
	if (!rc || rc == LOOM_EAGAIN) {
		int all_connected = all_agree(host, !rc, err);
		rc = all_connected < 0 ? all_connected : all_connected ? 0 : LOOM_EAGAIN;
	}
	if (!rc && !strcmp(f->is.name, "shm")) /* every rank has mapped the memory of all others */
		fabric_forget_shm(f);
	if (!rc)
		rc = find_atomics(f, err);
	if (!rc) {
		/* In libfabric 1.17, provider shm confuses the operands of atomics if several with FI_DELIVERY_COMPLETE
		 * are in flight. This happens too rarely for a test to detect it. */
		f->add_alone = !strcmp(f->is.name, "shm");
		f->test_ns = strcmp(want->provider, "auto") ? NAMED_TEST_NS : AUTO_TEST_NS;
		rc = fabric_test(f, why, TEXT, err);
	}
	if (rc) {
		fabric_ofi_close(&f->is);
		if (!why[0])
			snprintf(why, TEXT, "another rank cannot use it");
		return rc;
	}
	*out = &f->is;
	return 0;
}

/* Provider shm keeps at least 16 MiB per rank in this folder. If the folder has less room, the only error of the
 * provider is "No data available". */
#define SHM_FOLDER "/dev/shm"
#define SHM_LEAST ((uint64_t)20 << 20)

/* Writes to `text` why shared memory may be short, as a clause with the fix. Writes "" if there is enough. */
static void check_shm_space(uint32_t ranks, char *text, size_t room)
{
	struct statvfs st;
	*text = 0;
	if (statvfs(SHM_FOLDER, &st))
		snprintf(text, room, " (" SHM_FOLDER ": %s; mount a tmpfs there)", strerror(errno));
	else if (st.f_flag & ST_RDONLY || access(SHM_FOLDER, W_OK))
		snprintf(text, room, " (" SHM_FOLDER " cannot be written to; mount it writable)");
	else if ((uint64_t)st.f_bavail * st.f_frsize < ranks * SHM_LEAST)
		snprintf(text, room,
			 " (" SHM_FOLDER " has %.1f MiB free, and each rank takes 16 MiB and more; enlarge it: "
			 "mount -o remount,size=1g " SHM_FOLDER ", or a container's --shm-size=1g)",
			 (double)st.f_bavail * (double)st.f_frsize / (1 << 20));
}

/* Returns 1 if a program with privileges has FI_PROVIDER_PATH in its environment. libfabric loads providers from the
 * folder in this variable, even in such a program. */
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
	static const char *const on_one_host[] = {"shm", "tcp", "net", "sockets", NULL};
	static const char *const on_many_hosts[] = {"tcp", "net", "sockets", NULL};
	const char *named[] = {want->provider, NULL};
	if (loads_foreign_code())
		return LOOM_FAIL(host, err, LOOM_EUNAVAIL,
				 "FI_PROVIDER_PATH names code, which a program with privileges must not load: unset "
				 "it");
	int same = one_host(host, err);
	if (same < 0)
		return same;
	const char *address = *want->address ? want->address : same ? "127.0.0.1" : "";
	int automatic = !strcmp(want->provider, "auto");
	const char *const *first = !automatic           ? named
				   : same && !want->rma ? on_one_host
							: on_many_hosts,
			  *const *candidate = first;
	char why[TEXT], tried[2 * TEXT] = "", shortage[300] = "";
	for (; *candidate; candidate++) {
		int rc = try_provider(host, want, *candidate, address, fabric, why, err);
		if (!rc) {
			struct fabric_ofi *f = fabric_ofi(*fabric);
			LOOM_CHOICE(host, "trigger.atomics", "%s", f->most_add[0] ? "yes" : "no");
			/* Rank 0 warns about a shortage of shared memory, because the user can fix it. */
			LOOM_LOG(host, *shortage && !host->rank ? LOOM_LOG_WARN : LOOM_LOG_INFO, "fabric",
				 "provider %s%s%s%s", f->is.name, f->most_add[0] ? "" : ", without atomics",
				 *shortage ? ", which is slower than the first choice" : "", tried);
			return 0;
		}
		if (rc != LOOM_EAGAIN)
			return rc;
		if (!strcmp(*candidate, "shm"))
			check_shm_space(host->ranks, shortage, sizeof(shortage));
		snprintf(tried + strlen(tried), sizeof(tried) - strlen(tried), "; %.20s: %.100s%s", *candidate, why,
			 strcmp(*candidate, "shm") ? "" : shortage);
		LOOM_LOG(host, LOOM_LOG_INFO, "fabric", "provider %s does not work: %s", *candidate, why);
	}
	return LOOM_FAIL(host, err, LOOM_EUNAVAIL,
			 automatic ? "no provider of libfabric works here%s" :
				     "the provider of libfabric that the conf names does not work here%s; `fi_info -l` "
				     "lists others, provider = auto chooses one",
			 tried);
}

/* Providers install signal handlers when they open. For example, provider shm does so for SIGINT, SIGTERM, SIGBUS and
 * SIGSEGV, to unlink its files. Signals belong to the host, so the old handlers are restored. Stop requests by signals
 * are blocked until the old handlers are back. */
int fabric_ofi_open(const struct loom_host *host, const struct fabric_want *want, struct fabric **fabric,
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
