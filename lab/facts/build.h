/* SPDX-License-Identifier: Apache-2.0 */
/* How this library was built. The Makefile writes BUILD/build-facts.h, and rewrites it when the facts in it change. */
#ifndef LOOM_BUILD_H
#define LOOM_BUILD_H

#if __has_include("build-facts.h")
#include "build-facts.h"
#endif
#ifndef LOOM_BUILD_FLAGS
#define LOOM_BUILD_FLAGS "not recorded"
#endif
#ifndef LOOM_BUILD_REVISION
#define LOOM_BUILD_REVISION "" /* the build is outside of a git checkout */
#endif

#if defined(__clang__)
#define LOOM_BUILD_COMPILER __VERSION__
#else
#define LOOM_BUILD_COMPILER "gcc " __VERSION__
#endif

#endif
