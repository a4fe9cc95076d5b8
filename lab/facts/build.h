/* SPDX-License-Identifier: Apache-2.0 */
/* How this library was built: the Makefile writes BUILD/build-facts.h if it changes. */
#ifndef LOOM_BUILD_H
#define LOOM_BUILD_H

#if __has_include("build-facts.h")
#include "build-facts.h"
#endif
#ifndef LOOM_BUILD_FLAGS
#define LOOM_BUILD_FLAGS "not recorded"
#endif
#ifndef LOOM_BUILD_REVISION
#define LOOM_BUILD_REVISION "" /* not built in a git checkout */
#endif

#if defined(__clang__)
#define LOOM_BUILD_COMPILER __VERSION__
#else
#define LOOM_BUILD_COMPILER "gcc " __VERSION__
#endif

#endif
