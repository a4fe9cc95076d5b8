/* SPDX-License-Identifier: Apache-2.0 */
/* Another version of its kind's interface. */
#include "bad.h"

BAD_ENTRY(GOOD_HEAD("term_kind_abi"), GOOD_PARTS, .kind_abi = 33)
