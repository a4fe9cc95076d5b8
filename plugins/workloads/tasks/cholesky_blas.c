/* SPDX-License-Identifier: Apache-2.0 */
#include "cholesky_blas.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* Constants of CBLAS. */
enum { BY_COLUMNS = 102, AS_IT_IS = 111, TRANSPOSED = 112, LOWER = 122, ANY_DIAGONAL = 131, RIGHT = 142 };
enum { PANEL = 32 };

#define CHOLESKY_REAL float
#define CHOLESKY_NAME(name) cholesky_float_##name
#define WIDE 0
#include "cholesky_blas_real.h"
#undef CHOLESKY_REAL
#undef CHOLESKY_NAME
#undef WIDE
#define CHOLESKY_REAL double
#define CHOLESKY_NAME(name) cholesky_double_##name
#define WIDE 1
#include "cholesky_blas_real.h"

uint32_t cholesky_blas_factor(const struct cholesky_blas *b, uint32_t wide, struct cholesky_shape s, void *c)
{
	return wide ? cholesky_double_blas_factor(b, s, c) : cholesky_float_blas_factor(b, s, c);
}

void cholesky_blas_solve(const struct cholesky_blas *b, uint32_t wide, struct cholesky_shape s, void *c, const void *l)
{
	wide ? cholesky_double_blas_solve(b, s, c, l) : cholesky_float_blas_solve(b, s, c, l);
}

void cholesky_blas_update(const struct cholesky_blas *b, uint32_t wide, struct cholesky_shape s, void *c,
			  const void *left, const void *right)
{
	wide ? cholesky_double_blas_update(b, s, c, left, right) : cholesky_float_blas_update(b, s, c, left, right);
}

/* Returns a function of the library. dlsym() returns a pointer to an object, whose bytes are copied. */
static cholesky_call *find(void *library, const char *name)
{
	cholesky_call *fn = NULL;
	void *at = dlsym(library, name);
	memcpy(&fn, &at, sizeof(fn));
	return fn;
}

static int find_all(struct cholesky_blas *b)
{
	for (int wide = 0; wide < 2; wide++) {
		b->gemm[wide] = find(b->library, wide ? "cblas_dgemm" : "cblas_sgemm");
		b->syrk[wide] = find(b->library, wide ? "cblas_dsyrk" : "cblas_ssyrk");
		b->trsm[wide] = find(b->library, wide ? "cblas_dtrsm" : "cblas_strsm");
		if (!b->gemm[wide] || !b->syrk[wide] || !b->trsm[wide])
			return -1;
	}
	return 0;
}

/* Makes OpenBLAS, which has threads of its own, compute each call in the calling thread. The setting is for the whole
 * process, and all instances make the same setting. */
static void one_thread_per_call(void *library)
{
	void (*set)(int) = (void (*)(int))find(library, "openblas_set_num_threads");
	if (set)
		set(1);
}

int cholesky_blas_open(struct cholesky_blas *b, const char *which, char *why, size_t room)
{
	static const char *const known[] = {"libopenblas.so.0", "libopenblas.so", "libblas.so.3", "libblas.so", NULL};
	const char *const one[] = {which, NULL}, *const *name = strcmp(which, "auto") ? one : known;
	snprintf(why, room, "no library named %s%s", which, name == known ? ": neither libopenblas nor libblas" : "");
	for (*b = (struct cholesky_blas){0}; *name; name++) {
		b->library = dlopen(*name, RTLD_NOW | RTLD_LOCAL);
		if (!b->library) {
			if (name == one)
				snprintf(why, room, "%s", dlerror());
			continue;
		}
		if (!find_all(b)) {
			one_thread_per_call(b->library);
			return 0;
		}
		snprintf(why, room, "%s has no cblas_dgemm, cblas_dsyrk and cblas_dtrsm", *name);
		dlclose(b->library);
	}
	b->library = NULL;
	return -1;
}

void cholesky_blas_close(struct cholesky_blas *b)
{
	if (b->library)
		dlclose(b->library);
}
