/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that a launcher with PMIx has started. The PMIx client library is loaded on demand, so that gpuloom also runs
 * on machines without it. */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ranks/boot.h"

#ifdef LOOM_PMIX
#include <pmix.h>

static struct {
	void *library;
	pmix_status_t (*init)(pmix_proc_t *, pmix_info_t *, size_t);
	pmix_status_t (*finalize)(const pmix_info_t *, size_t);
	pmix_status_t (*abort)(int, const char *, pmix_proc_t *, size_t);
	pmix_status_t (*get)(const pmix_proc_t *, const char *, const pmix_info_t *, size_t, pmix_value_t **);
	pmix_status_t (*put)(pmix_scope_t, const char *, pmix_value_t *);
	pmix_status_t (*commit)(void);
	pmix_status_t (*fence)(const pmix_proc_t *, size_t, const pmix_info_t *, size_t);
	pmix_status_t (*on_event)(pmix_status_t *, size_t, pmix_info_t *, size_t, pmix_notification_fn_t,
				  pmix_hdlr_reg_cbfunc_t, void *);
	const char *(*text)(pmix_status_t);
	pmix_proc_t self;
} p;

static const struct {
	const char *name;
	void *at;
} symbols[] = {{"PMIx_Init", &p.init},   {"PMIx_Finalize", &p.finalize}, {"PMIx_Abort", &p.abort},
	       {"PMIx_Get", &p.get},     {"PMIx_Put", &p.put},           {"PMIx_Commit", &p.commit},
	       {"PMIx_Fence", &p.fence}, {"PMIx_Error_string", &p.text}, {"PMIx_Register_event_handler", &p.on_event}};

static int load(struct loom_error *err)
{
	p.library = dlopen("libpmix.so.2", RTLD_NOW | RTLD_LOCAL);
	for (size_t i = 0; p.library && i < LOOM__COUNT(symbols); i++)
		if (!(*(void **)symbols[i].at = dlsym(p.library, symbols[i].name)))
			p.library = NULL;
	if (!p.library)
		return LOOM__FAIL(err, LOOM_EUNAVAIL,
				  "the launcher speaks PMIx, but libpmix.so.2 is not installed (Debian: libpmix2), or too old: let "
				  "gpuloom start the ranks with -n");
	return 0;
}

static int number(const char *key, pmix_rank_t of, uint32_t *value)
{
	pmix_proc_t who = p.self;
	pmix_value_t *v = NULL;
	who.rank = of;
	pmix_status_t rc = p.get(&who, key, NULL, 0, &v);
	if (rc == PMIX_SUCCESS && v->type == PMIX_UINT32)
		*value = v->data.uint32;
	else if (rc == PMIX_SUCCESS && v->type == PMIX_UINT16)
		*value = v->data.uint16;
	else if (rc == PMIX_SUCCESS)
		rc = PMIX_ERR_TYPE_MISMATCH;
	return rc == PMIX_SUCCESS ? 0 : -1; /* v leaks once, because only a macro of PMIx can free it */
}

/* A rank that ends without an error takes part in one more exchange and gives this text. A rank that is not in step meets it
 * there. Without it, that rank would wait forever: a fence of PMIx that begins after another rank has left has no end. */
static const char ended[] = "ended";

static int allgather(void *self, const void *mine, void *all, size_t bytes, struct loom_error *err)
{
	struct loom__boot *b = self;
	char key[32];
	snprintf(key, sizeof(key), "gpuloom.%u", b->turn++);
	pmix_value_t value = {.type = PMIX_BYTE_OBJECT};
	value.data.bo.bytes = (char *)(uintptr_t)mine;
	value.data.bo.size = bytes;
	pmix_status_t rc = p.put(PMIX_GLOBAL, key, &value);
	if (rc == PMIX_SUCCESS)
		rc = p.commit();
	pmix_info_t collect = {.value = {.type = PMIX_BOOL, .data.flag = true}};
	snprintf(collect.key, sizeof(collect.key), "%s", PMIX_COLLECT_DATA);
	pmix_proc_t everybody = p.self;
	everybody.rank = PMIX_RANK_WILDCARD;
	if (rc == PMIX_SUCCESS)
		rc = p.fence(&everybody, 1, &collect, 1);
	for (uint32_t r = 0; rc == PMIX_SUCCESS && r < b->ranks.ranks; r++) {
		pmix_proc_t who = p.self;
		pmix_value_t *v = NULL;
		who.rank = r;
		rc = p.get(&who, key, NULL, 0, &v);
		if (rc == PMIX_SUCCESS && mine != ended && v->type == PMIX_BYTE_OBJECT && v->data.bo.size == sizeof(ended) &&
		    !memcmp(v->data.bo.bytes, ended, sizeof(ended)))
			return LOOM__FAIL(err, LOOM_EDIED,
					  "rank %u has ended before rank %u: start all ranks with the same conf and --samples", r,
					  b->ranks.rank);
		if (rc == PMIX_SUCCESS && (v->type != PMIX_BYTE_OBJECT || v->data.bo.size != bytes))
			return LOOM__FAIL(err, LOOM_EINVAL, "rank %u is not in step: do all run the same conf?", r);
		if (rc == PMIX_SUCCESS) {
			if (all)
				memcpy((char *)all + r * bytes, v->data.bo.bytes, bytes);
			free(v->data.bo.bytes);
			free(v);
		}
	}
	if (rc == PMIX_SUCCESS)
		return 0;
	return LOOM__FAIL(err, LOOM_EDIED, "rank %u: an exchange of all ranks over PMIx failed (%s): another rank or the launcher has ended",
			  b->ranks.rank, p.text(rc));
}

static uint32_t own_rank; /* for on_lost(), which PMIx may call when the caller's struct loom__boot is gone */

/* Called in a thread of PMIx when the daemon of the launcher on this host has ended. */
static void on_lost(size_t id, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[], size_t ninfo,
		    pmix_info_t *results, size_t nresults, pmix_event_notification_cbfunc_fn_t reply, void *data)
{
	(void)id, (void)status, (void)source, (void)info, (void)ninfo, (void)results, (void)nresults, (void)reply;
	(void)data;
	loom__boot_lost(own_rank);
}

int loom__pmix_begin(struct loom__boot *boot, struct loom_error *err)
{
	int rc = load(err);
	if (rc)
		return rc;
	pmix_status_t status = p.init(&p.self, NULL, 0);
	uint32_t ranks = 0;
	if (status != PMIX_SUCCESS)
		return LOOM__FAIL(err, LOOM_EUNAVAIL,
				  "PMIX_RANK is set, but no launcher answers (%s): start gpuloom by mpirun or `srun --mpi=pmix`; "
				  "if no launcher is to start it, `unset PMIX_RANK PMIX_NAMESPACE` first", p.text(status));
	if (number(PMIX_JOB_SIZE, PMIX_RANK_WILDCARD, &ranks) || p.self.rank >= ranks)
		return LOOM__FAIL(err, LOOM_EUNAVAIL, "the launcher does not report the number of ranks");
	boot->how = LOOM__BOOT_PMIX;
	boot->ranks = (struct loom_ranks){
	    .size = sizeof(boot->ranks), .rank = p.self.rank, .ranks = ranks, .self = boot, .allgather = allgather, .launched = 1};
	own_rank = p.self.rank;
	pmix_status_t lost[] = {PMIX_ERR_LOST_CONNECTION, PMIX_ERR_LOST_CONNECTION_TO_SERVER};
	p.on_event(lost, LOOM__COUNT(lost), NULL, 0, on_lost, NULL, NULL);
	return 0;
}

void loom__pmix_end(struct loom__boot *boot, int status)
{
	char text[80];
	if (status) { /* without the abort, the other ranks would wait for this rank */
		/* The launcher answers with SIGTERM. The command would report it as an interrupt, by an alarm. */
		signal(SIGALRM, SIG_IGN);
		snprintf(text, sizeof(text), "gpuloom: rank %u ended with status %d", boot->ranks.rank, status);
		p.abort(status, text, NULL, 0);
	} else {
		struct loom_error unused;
		allgather(boot, ended, NULL, sizeof(ended), &unused); /* the rank that is not in step reports it */
	}
	p.finalize(NULL, 0);
}
#else
int loom__pmix_begin(struct loom__boot *boot, struct loom_error *err)
{
	(void)boot;
	return LOOM__FAIL(err, LOOM_EUNAVAIL, "the launcher speaks PMIx, but this gpuloom was built without <pmix.h> (Debian: "
					      "libpmix-dev): let gpuloom start the ranks with -n");
}

void loom__pmix_end(struct loom__boot *boot, int status)
{
	(void)boot, (void)status;
}
#endif
