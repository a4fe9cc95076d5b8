/* SPDX-License-Identifier: Apache-2.0 */
/* The device layer for a file whose LOOM_DEVICE_LAYER is not defined: that of the compiler. */
#if defined(__CUDACC__)
#include <gpuloom/dev/cuda.h>
#elif defined(__HIPCC__) || defined(__HIP__)
#include <gpuloom/dev/hip.h>
#elif defined(__GNUC__)
#include <gpuloom/dev/cpu.h>
#else
#error "gpuloom: no device layer for this compiler: define LOOM_DEVICE_LAYER (gpuloom/dev/dev.h)"
#endif
