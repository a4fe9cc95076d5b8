/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory that the provider accesses itself (FI_HMEM). The provider's claim is tested: the registration must
 * succeed, and a write by the provider must arrive. */
#include "fabric_ofi.h"

#include <gpuloom/dev/dev.h>
#include <stdio.h>
#include <string.h>

#define TEST_NS 1000000000ull

static int await_completion(struct fabric_ofi *f, const void *context)
{
	const struct loom_host *host = f->is.host;
	uint64_t until = host->now_ns(host) + TEST_NS;
	struct fi_cq_data_entry entry;
	ssize_t n;
	while ((n = fi_cq_read(f->cq, &entry, 1)) == -FI_EAGAIN && host->now_ns(host) < until)
		loom_cpu_yield();
	return n == 1 && entry.op_context == context ? 0 : -FI_EIO;
}

/* Lets the provider write eight bytes. Reads and compares them by a copy of the device, and then zeroes them. */
static int test_write(struct fabric_ofi *f, const struct loom_segments *segments, uint32_t segment,
		      const struct fabric_local *here)
{
	static const uint64_t mark = 0x6870755f6d656d21u;
	struct fabric_remote to = fabric_remote(f, here);
	struct fabric_context context;
	const struct loom_host *host = f->is.host;
	uint64_t seen = 0, none = 0, until = host->now_ns(host) + TEST_NS;
	ssize_t code;
	memcpy(f->scratch, &mark, sizeof(mark));
	while ((code = fi_write(f->ep, f->scratch, sizeof(mark), fi_mr_desc(f->scratch_mr), f->peer[host->rank],
				to.base, to.key, &context)) == -FI_EAGAIN &&
	       host->now_ns(host) < until)
		(void)fi_cq_read(f->cq, NULL, 0);
	if (!code)
		code = await_completion(f, &context);
	if (!code && (segments->copy(segments->ctx, segment, 0, &seen, sizeof(seen), 0, NULL) || seen != mark ||
		      segments->copy(segments->ctx, segment, 0, &none, sizeof(none), 1, NULL)))
		code = -FI_EIO;
	return (int)code;
}

int fabric_hmem(struct fabric_ofi *f, const struct loom_segments *segments, uint32_t segment,
		const struct loom_memory_key *key, struct fabric_local *here)
{
	uint64_t at = 0;
	struct fabric_local there = {.bytes = segments->bytes[segment]};
	if (!f->hmem || there.bytes < sizeof(uint64_t) || segments->open(segments->ctx, 0, key, &at, NULL))
		return 0;
	there.at = (void *)(uintptr_t)(at + segments->offset[segment]);
	struct iovec memory = {.iov_base = there.at, .iov_len = there.bytes};
	/* The address determines the GPU, so no device number is needed. */
	struct fi_mr_attr attr = {.mr_iov = &memory,
				  .iov_count = 1,
				  .iface = strcmp(key->maker, "cuda") ? FI_HMEM_ROCR : FI_HMEM_CUDA};
	int code = fabric_register(f, &attr, &there.mr);
	const char *what = "registers";
	if (!code && (code = test_write(f, segments, segment, &there))) {
		what = "writes to";
		fi_close(&there.mr->fid);
	}
	if (code) {
		LOOM_LOG(f->is.host, LOOM_LOG_INFO, "fabric",
			 "%s claims FI_HMEM, but %s no memory of a GPU here: %s; it works on copies", f->is.name, what,
			 fi_strerror(-code));
		f->hmem = 0;
		return 0;
	}
	if (f->hmem++ == 1)
		LOOM_LOG(f->is.host, LOOM_LOG_INFO, "fabric", "%s accesses memory of GPUs by itself", f->is.name);
	*here = there;
	return 1;
}
