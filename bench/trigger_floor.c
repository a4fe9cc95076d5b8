/* SPDX-License-Identifier: Apache-2.0 */
/* Lower bounds for bench/trigger.
 *   trigger_floor PROVIDER write|pair ROUNDS
 *   trigger_floor memory word ROUNDS
 * Both forms print the 50th and 99th percentile, in ns, of the time from the call until the data are visible.
 * - write: a plain fi_write of 8 bytes to the process's own endpoint.
 * - pair: half of a round trip to another process.
 * - memory word: half of a round trip, without a network, in memory that two processes on different cores share. This
 * value is the lower bound for workers that store into the memory of other ranks. */
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "times.h"

static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_ep *ep;
static struct fid_av *av;
static struct fid_cq *cq;
static struct fid_mr *mr;
static fi_addr_t peer;
static uint64_t base, key, words[512] __attribute__((aligned(64)));

static void must(const char *what, long rc)
{
	if (rc == 0)
		return;
	fprintf(stderr, "%s: %s\n", what, fi_strerror((int)-rc));
	exit(rc == -FI_ENODATA ? 77 : 1);
}

/* What the peer needs: the address of an endpoint, and the base and key of its memory. */
struct card {
	char name[128];
	uint64_t base, key;
};

static void set_up(const char *provider, int other)
{
	struct fi_info *hints = fi_allocinfo(), *info;
	int shm = !strcmp(provider, "shm");
	hints->caps = FI_MSG | FI_RMA;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->fabric_attr->prov_name = strdup(!strcmp(provider, "tcp") ? "tcp;ofi_rxm" : provider);
	must("fi_getinfo", fi_getinfo(FI_VERSION(1, 9), shm ? NULL : "127.0.0.1", NULL, shm ? 0 : FI_SOURCE,
				      hints, &info));
	must("fi_fabric", fi_fabric(info->fabric_attr, &fabric, NULL));
	must("fi_domain", fi_domain(fabric, info, &domain, NULL));
	must("fi_av_open", fi_av_open(domain, &(struct fi_av_attr){.type = FI_AV_TABLE}, &av, NULL));
	must("fi_cq_open", fi_cq_open(domain, &(struct fi_cq_attr){.format = FI_CQ_FORMAT_DATA}, &cq, NULL));
	must("fi_endpoint", fi_endpoint(domain, info, &ep, NULL));
	must("bind", fi_ep_bind(ep, &av->fid, 0));
	must("bind", fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	must("fi_enable", fi_enable(ep));
	must("fi_mr_reg", fi_mr_reg(domain, words, sizeof(words), FI_WRITE | FI_REMOTE_WRITE, 0, 1, 0, &mr, NULL));
	base = info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uint64_t)(uintptr_t)words : 0;
	struct card card = {.base = base, .key = fi_mr_key(mr)};
	size_t size = sizeof(card.name);
	must("fi_getname", fi_getname(&ep->fid, card.name, &size));
	if (other >= 0 && (write(other, &card, sizeof(card)) != sizeof(card) ||
			   recv(other, &card, sizeof(card), MSG_WAITALL) != sizeof(card)))
		must("meeting the other process", -FI_EIO);
	base = card.base;
	key = card.key;
	if (fi_av_insert(av, card.name, 1, &peer, 0, NULL) != 1)
		must("fi_av_insert", -FI_EADDRNOTAVAIL);
}

static void progress(void)
{
	struct fi_cq_data_entry e;
	(void)fi_cq_read(cq, &e, 1);
	sched_yield();
}

static void plain(uint64_t round)
{
	static struct fi_context2 context;
	ssize_t rc;
	words[0] = round;
	while ((rc = fi_write(ep, words, 8, fi_mr_desc(mr), peer, base + 64, key, &context)) == -FI_EAGAIN)
		progress();
	must("fi_write", rc);
}

static void print(uint64_t *took, uint64_t rounds)
{
	sort_ns(took, rounds);
	printf("%llu %llu\n", (unsigned long long)took[rounds / 2], (unsigned long long)took[rounds * 99 / 100]);
}

static void await_word(const uint64_t *word, uint64_t round)
{
	uint64_t limit = now_ns() + 5000000000ull;
	for (uint32_t spins = 1; __atomic_load_n(word, __ATOMIC_ACQUIRE) != round; spins++) {
#ifdef __x86_64__
		__builtin_ia32_pause();
#endif
		if (spins % 1024 == 0 && now_ns() > limit)
			must("waiting", -FI_ETIMEDOUT);
	}
}

/* A round trip uses two words, each in a cache line of its own. */
static int by_memory(uint64_t rounds, uint64_t warm, uint64_t *took)
{
	uint64_t *word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	must("mmap", word == MAP_FAILED ? -errno : 0);
	int first = fork() != 0;
	cpu_set_t core;
	CPU_ZERO(&core);
	CPU_SET(first ? 0 : 1, &core);
	(void)sched_setaffinity(0, sizeof(core), &core);
	if (!first)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (uint64_t r = 1; r <= rounds + warm; r++) {
		uint64_t begin = now_ns();
		if (!first)
			await_word(word, r);
		__atomic_store_n(word + (first ? 0 : 16), r, __ATOMIC_RELEASE);
		if (first)
			await_word(word + 16, r);
		if (r > warm)
			took[r - warm - 1] = (now_ns() - begin) / 2;
	}
	if (first)
		print(took, rounds);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	uint64_t rounds = strtoull(argv[3], NULL, 10), warm = rounds / 10;
	uint64_t *took = malloc((rounds + 1) * sizeof(*took));
	if (!strcmp(argv[2], "word"))
		return by_memory(rounds, warm, took);
	int pair = !strcmp(argv[2], "pair"), link[2] = {-1, -1}, first = 1;
	pid_t other = 0;
	if (pair) {
		must("socketpair", socketpair(AF_UNIX, SOCK_STREAM, 0, link) ? -errno : 0);
		other = fork();
		first = other != 0;
		if (!first)
			prctl(PR_SET_PDEATHSIG, SIGKILL);
	}
	set_up(argv[1], link[first]);
	for (uint64_t r = 1; r <= rounds + warm; r++) {
		uint64_t begin = now_ns(), limit = begin + 5000000000ull;
		if (first)
			plain(r);
		while (__atomic_load_n(&words[8], __ATOMIC_ACQUIRE) != r) {
			progress();
			if (now_ns() > limit)
				must("waiting", -FI_ETIMEDOUT);
		}
		if (!first)
			plain(r);
		if (r > warm)
			took[r - warm - 1] = (now_ns() - begin) / (pair ? 2 : 1);
	}
	if (!first) { /* the provider may still have to send the last answer */
		for (int i = 0; i < 100000; i++)
			progress();
		fi_close(&ep->fid); /* with the provider shm, this removes a file */
		return 0;
	}
	if (pair)
		waitpid(other, NULL, 0);
	fi_close(&ep->fid);
	print(took, rounds);
	return 0;
}
