/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles collatz.dev.h ahead of time: to a shared object for CPUs, to LTO-IR or PTX for NVIDIA GPUs.
 *
 *   cc -O2 -fPIC -shared collatz_ir.c -o collatz.so
 *   nvcc -x cu -std=c++20 -dlto -arch=sm_80 -ltoir collatz_ir.c -o collatz.ltoir */
#include <gpuloom/dev/ir.h>

LOOM_IR_TASK(collatz_range)
#define LOOM_TAG_collatz_range LOOM_IR_TAG(collatz_range)

#include "collatz.dev.h"
