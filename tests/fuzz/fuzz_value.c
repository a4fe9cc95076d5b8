/* SPDX-License-Identifier: Apache-2.0 */
/* The input is any text as the value of an option of each type, with and without a range. An accepted value must read
 * back as the same value, from its canonical form and from the form in messages. A rejection must have a message. */
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "config/inside.h"
#include "input.h"

static const char *const choices[] = {"alpha", "beta", "gamma", NULL};

static void same_again(const struct loom_opt *row, const union loom__value *v, const struct loom__text *form)
{
	union loom__value again = {0};
	struct loom_opt open = *row;
	open.min = open.max = 0; /* a real number keeps its range, without which a share above 1 is rejected */
	if (row->type == LOOM_OPT_F64 || row->type == LOOM_OPT_SHARE)
		open = *row;
	FUZZ_CHECK(!loom__value_parse(&open, form->at, &again, NULL));
	FUZZ_CHECK(loom__value_is_text(row->type) ? !strcmp(again.text, v->text) :
						    !memcmp(&again, v, loom__value_size(row->type)));
}

static void one(const struct loom_opt *row, const char *text)
{
	union loom__value v = {0};
	struct loom_error err = {0};
	struct loom__text form = {0};
	if (loom__value_parse(row, text, &v, &err)) {
		FUZZ_CHECK(err.code && *err.text);
		return;
	}
	loom__value_canonical(row, &v, &form);
	if (row->type == LOOM_OPT_TIME)
		loom__text_add(&form, "ns");
	same_again(row, &v, &form);
	form.length = 0;
	int scaled = row->type == LOOM_OPT_SIZE || row->type == LOOM_OPT_TIME;
	if (scaled) {
		loom__value_amount(row, &v, &form);
		same_again(row, &v, &form);
	}
	loom__text_free(&form);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_parts parts = {data, size};
	char *text = fuzz_part(&parts, NULL);
	for (unsigned type = LOOM_OPT_NONE + 1; loom__value_size(type); type++) {
		struct loom_opt row = {.name = "x", .type = (uint8_t)type, .choices = choices};
		one(&row, text);
		row.min = type == LOOM_OPT_I64 ? -3 : 0;
		row.max = (uint64_t)1e15;
		row.to = 1e15;
		one(&row, text);
	}
	free(text);
	return 0;
}
