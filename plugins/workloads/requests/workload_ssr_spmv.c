/* SPDX-License-Identifier: Apache-2.0 */
#include "app.h"

APP_PLUGIN(spmv, "Sparse matrix times vector, the matrix faults in")
