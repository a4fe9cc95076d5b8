# SPDX-License-Identifier: Apache-2.0
# One non-recursive Makefile. `make help` lists the targets; CONTRIBUTING.md says where things are.
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules
.SUFFIXES:
.SECONDARY: # objects of tests are kept, too

VERSION := 0.1.0
SAN ?=
# A comma in a path would end an argument of make's functions: SAN=address,undefined -> address+undefined.
comma := ,
B := build$(if $(SAN),/$(subst $(comma),+,$(SAN)))
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
CC ?= gcc
ifeq ($(origin CC),default)
CC := gcc
endif

CSTD := -std=gnu11
WARN := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wvla
OPT  ?= -O2 -g
CPPFLAGS += -Icore/include -Icore -D_GNU_SOURCE -DLOOM_VERSION_TEXT='"$(VERSION)"'
CFLAGS += $(CSTD) $(OPT) $(WARN) -fPIC -fvisibility=hidden -fno-common -pthread
LDFLAGS += -pthread -Wl,-z,defs -Wl,--as-needed
PERTURB ?=
ifneq ($(PERTURB),)
B := $B/perturbed
CPPFLAGS += -DLOOM_PERTURB
endif
ifneq ($(SAN),)
CFLAGS  += -fsanitize=$(SAN) -fno-omit-frame-pointer -O1
LDFLAGS += -fsanitize=$(SAN)
endif
# Short lines; V=1 shows the commands.
V ?=
Q := $(if $(V),,@)
say = $(if $(V),@:,@printf '  %-7s %s\n' $1 $2)

CORE_LIBS := -liniparser -lcjson -lm -ldl

# ---- core: everything under core/ but the command line is the library ---------------------------
LIB_SRC := $(filter-out core/cli/%,$(sort $(wildcard core/*/*.c)))
CLI_SRC := $(sort $(wildcard core/cli/*.c))
LIB_OBJ := $(LIB_SRC:%.c=$B/obj/%.o)
CLI_OBJ := $(CLI_SRC:%.c=$B/obj/%.o)

all: $B/gpuloom $B/libgpuloom.so

$B/obj/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$Q$(CC) $(CPPFLAGS) $(CFLAGS) $(EXTRA_CFLAGS) -MMD -MP -c $< -o $@

# What results say about the build: written only when it differs, so that nothing is rebuilt in vain.
REVISION := $(shell git --no-optional-locks describe --always --dirty --abbrev=12 2>/dev/null)
$B/build-facts.h: FORCE
	@mkdir -p $(@D)
	@printf '#define LOOM_BUILD_FLAGS "%s"\n#define LOOM_BUILD_REVISION "%s"\n' \
	  '$(CSTD) $(OPT)$(if $(SAN), -fsanitize=$(SAN))$(if $(PERTURB), -DLOOM_PERTURB)' '$(REVISION)' >$@.new
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@
FORCE:
.PHONY: FORCE
$B/obj/core/run/about.o $B/obj/core/run/environment.o: $B/build-facts.h
$B/obj/core/run/about.o $B/obj/core/run/environment.o: CPPFLAGS += -I$B

# Embedded files are no headers: the compiler does not tell of them.
$B/obj/core/cli/templates.o: $(wildcard core/templates/*)

$B/libgpuloom.a: $(LIB_OBJ)
	$(call say,AR,$@)
	$Qrm -f $@ && ar rcs $@ $^

$B/libgpuloom.so: $(LIB_OBJ)
	$(call say,LINK,$@)
	$Q$(CC) $(CFLAGS) -shared $(LDFLAGS) -Wl,-soname,libgpuloom.so.0 $^ $(CORE_LIBS) -o $@
	$Qln -sf libgpuloom.so $B/libgpuloom.so.0

$B/gpuloom: $(CLI_OBJ) $B/libgpuloom.a
	$(call say,LINK,$@)
	$Q$(CC) $(CFLAGS) $(LDFLAGS) $^ $(CORE_LIBS) -o $@

# ---- plug-ins: plugins/*/plugin.mk names them ----------------------------------------------------
# A plugin.mk says, with D set to its own folder:
#   PLUGINS += name
#   name_SRC := $D/a.c $D/b.c     name_LIBS := -lz     name_CFLAGS := ...
# One that cannot be built here says so, and leaves a note for those who ask for it (core/plugin/absent.c):
#   $(call leave_out,name,why,what mends it)
PLUGINS :=
ABSENT :=
leave_out = $(info $1 is left out: $2; $3)$(eval ABSENT += $1)$(eval $1_WHY := $2)$(eval $1_MEND := $3)
define include_plugin
D := $(patsubst %/,%,$(dir $1))
include $1
endef
$(foreach mk,$(sort $(wildcard plugins/*/plugin.mk)),$(eval $(call include_plugin,$(mk))))

define plugin_rules
$1_OBJ := $$(patsubst %.c,$B/obj/%.o,$$($1_SRC))
# Files that several plug-ins compile into themselves get the flags of all.
$$($1_OBJ): EXTRA_CFLAGS += $$($1_CFLAGS)
$B/plugins/$1.so: $$($1_OBJ)
	@mkdir -p $$(@D)
	@rm -f $$(@:.so=.absent)
	$$(call say,LINK,$$@)
	$$Q$(CC) $(CFLAGS) -shared $(LDFLAGS) $$^ $$($1_LIBS) -o $$@
all: $B/plugins/$1.so
endef
$(foreach p,$(PLUGINS),$(eval $(call plugin_rules,$p)))
define absent_rules
$B/plugins/$1.absent: FORCE
	@mkdir -p $$(@D) && rm -f $$(@:.absent=.so)
	@printf '%s\n' '$($1_WHY)' '$($1_MEND)' >$$@
all: $B/plugins/$1.absent
endef
$(foreach p,$(ABSENT),$(eval $(call absent_rules,$p)))
PLUGIN_OBJ := $(foreach p,$(PLUGINS),$($p_OBJ))

# ---- tests: tests/test_*.c is one program each; tests/plugins/*.c one deliberately odd .so each ----
TEST_SRC := $(sort $(wildcard tests/test_*.c))
TESTS := $(TEST_SRC:tests/%.c=$B/tests/%)
FIXTURE_SRC := $(sort $(wildcard tests/plugins/*.c))
FIXTURES := $(FIXTURE_SRC:tests/plugins/%.c=$B/tests/plugins/%.so)

$B/tests/%: $B/obj/tests/%.o $B/obj/tests/support.o $B/libgpuloom.a
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$Q$(CC) $(CFLAGS) $(LDFLAGS) $^ $(CORE_LIBS) -lcunit $(TEST_LIBS_$*) -o $@

$B/tests/plugins/%.so: tests/plugins/%.c Makefile
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$Q$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -shared $(LDFLAGS) $< -o $@

# One fault each: what `gpuloom validate` must catch (tests/check-validate.sh).
BROKEN_SRC := $(sort $(wildcard tests/broken/*.c))
BROKEN := $(BROKEN_SRC:tests/broken/%.c=$B/tests/broken/%.so)
$B/tests/broken/%.so: tests/broken/%.c Makefile
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$Q$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -shared $(LDFLAGS) $< -o $@
-include $(BROKEN:.so=.d)

tests: all $(TESTS) $(FIXTURES) $(BROKEN)

-include $(LIB_OBJ:.o=.d) $(CLI_OBJ:.o=.d) $(PLUGIN_OBJ:.o=.d) $(TEST_SRC:%.c=$B/obj/%.d) $B/obj/tests/support.d
-include $(FIXTURES:.so=.d)

.PHONY: all tests

# ---- benchmarks: bench-NAME writes build/bench/NAME*.json, and ends with a line for each figure:
#      bar FIGURE VALUE >=|<= TARGET ok|short
# BENCH='--blocks 60 --per-block best' goes to every comparison. docs/compare.md
BENCH ?=
define compare
	@mkdir -p $B/bench
	$B/gpuloom compare $2 --json $B/bench/$1.json $(BENCH) >$B/bench/$1.txt
	@grep -v '^bar ' $B/bench/$1.txt
endef
bars = @grep -h '^bar ' $(1:%=$B/bench/%.txt)

bench-tasks: all ## what schedulers cost, and what a second worker gains
	tools/deps run
	$(call compare,tasks-loop,bench/memset.ini --vary run.workload=memset_loop$(comma)memset \
	  --bar 'memset_static_to_loop: seconds(memset_loop) / seconds(memset) >= 0.9')
	$(call compare,tasks-contains,bench/contains.ini --vary 'run.devices=cpu:0$(comma)cpu:0 cpu:1' \
	  --bar 'contains_two_workers: seconds(cpu:0) / seconds(cpu:0 cpu:1) >= 1.9')
	$(call bars,tasks-loop tasks-contains)
	$(MAKE) bench-peers

bench-aa: tests ## what compare claims and finds on a loaded machine: 20 min, resumable
	tools/deps run
	bench/aa.py $B $(BENCH)

.PHONY: bench-tasks bench-aa

# ---- what people type ------------------------------------------------------------------------------
help: ## this list
	@echo "gpuloom $(VERSION): targets"
	@for which in -v -e; do \
	  sed -n 's/^\([a-z][a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | grep $$which 'make bench'; \
	done | expand -t 24
	@echo "  make SAN=address|undefined|thread check    the tests under a sanitizer, in build/SAN/"
	@echo "  make PERTURB=1 check                       the tests with a perturbed schedule"

run: ## install what is missing, build, run the main job
	tools/deps build run
	$(MAKE) all
	$B/gpuloom run conf/contains.ini

check: ## install what is missing, build, run all tests
	tools/deps build run check
	$(MAKE) check-built

check-built: tests
	tests/run-all $B

# What a sanitizer build is for: the programs whose threads meet. Small queues make rare paths common.
CONCURRENT := $(filter $B/tests/test_device_cpu $B/tests/test_transport $B/tests/test_workloads \
  $B/tests/test_sched% $B/tests/test_stall $B/tests/test_stop $B/tests/test_sync% $B/tests/test_term%,$(TESTS))
check-concurrent: tests ## run the concurrent tests alone, for SAN=thread
	tests/run-all $B $(CONCURRENT) tests/check-matrix.sh tests/check-sync.sh

install: all ## install under PREFIX (default /usr/local), honours DESTDIR
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(LIBDIR)/gpuloom/plugins $(DESTDIR)$(LIBDIR)/pkgconfig \
	  $(DESTDIR)$(PREFIX)/include/gpuloom/dev $(DESTDIR)$(PREFIX)/share/gpuloom/conf \
	  $(DESTDIR)$(PREFIX)/share/man/man1
	install -m 755 $B/gpuloom $(DESTDIR)$(PREFIX)/bin/gpuloom
	install -m 755 $B/libgpuloom.so $(DESTDIR)$(LIBDIR)/libgpuloom.so.0
	ln -sf libgpuloom.so.0 $(DESTDIR)$(LIBDIR)/libgpuloom.so
	install -m 755 $(PLUGINS:%=$B/plugins/%.so) $(DESTDIR)$(LIBDIR)/gpuloom/plugins/
	rm -f $(DESTDIR)$(LIBDIR)/gpuloom/plugins/*.absent
	$(if $(ABSENT),install -m 644 $(ABSENT:%=$B/plugins/%.absent) $(DESTDIR)$(LIBDIR)/gpuloom/plugins/)
	install -m 644 core/include/gpuloom/*.h $(DESTDIR)$(PREFIX)/include/gpuloom/
	install -m 644 core/include/gpuloom/dev/*.h $(DESTDIR)$(PREFIX)/include/gpuloom/dev/
	cd conf && find . -name '*.ini' -exec install -D -m 644 {} $(DESTDIR)$(PREFIX)/share/gpuloom/conf/{} \;
	install -m 644 docs/gpuloom.1 $(DESTDIR)$(PREFIX)/share/man/man1/
	sed -e 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(LIBDIR)|; s|@VERSION@|$(VERSION)|' tools/gpuloom.pc.in \
	  > $(DESTDIR)$(LIBDIR)/pkgconfig/gpuloom.pc

format: ## clang-format all sources in place
	tools/deps lint
	clang-format -i $$(git ls-files '*.c' '*.h')

lint: ## cppcheck over the core and the plug-ins
	tools/deps build lint
	@# One configuration, for in others our macros are unknown; what it misreads is left out.
	cppcheck -j2 --quiet --std=c11 --enable=warning,portability --max-configs=1 --error-exitcode=1 \
	  --suppress=missingIncludeSystem --suppress=invalidPointerCast --suppress=nullPointerRedundantCheck \
	  --suppress=duplicateAssignExpression --suppress=leakReturnValNotUsed --suppress=uninitvar:core/validate/workload.c \
	  --suppress=uninitvar:core/report/plot_runs.c --suppress=uninitvar:plugins/sync_wic/wic_space.c \
	  --suppress=syntaxError:core/config/value.c -D__x86_64__ -D__GNUC__ -DSSR_URING \
	  -Icore/include -Icore $(addprefix -I,$(wildcard plugins/*)) core plugins

clean: ## remove what was built
	rm -rf build

.PHONY: help run check check-built install format lint clean

# ---- networks: libfabric and PMIx where they are installed -------------------------------------------
# No -lpmix: the client library is loaded when a launcher asks for it.
$B/obj/core/boot/pmix.o: CPPFLAGS += $(shell pkg-config --cflags-only-I pmix 2>/dev/null)
$B/bench/trigger_floor: bench/trigger_floor.c Makefile
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$Q$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) $< -lfabric -o $@
bench-trigger: all $B/bench/trigger_floor ## triggered messages beside the floors of their providers
	bench/trigger $B $(BENCH_TRIGGER)
.PHONY: bench-trigger

# ---- synchronisation: waiting consumers ----------------------------------------------------------------
SYNC_BENCH := $(addprefix $B/bench/sync_,beside release floor)
$(SYNC_BENCH): $B/bench/%: bench/%.c tests/sync_rig.h tests/cpu_rig.h $B/obj/tests/support.o Makefile
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$Q$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) $< $B/obj/tests/support.o -lcunit -ldl -o $@
bench-sync: all $(SYNC_BENCH) ## consumers that are interrupted beside those that poll, sleep and park
	@mkdir -p $B/bench
	python3 bench/sync.py $B $(if $(REPEATS),--rounds $(REPEATS)) | tee $B/bench/sync.txt
.PHONY: bench-sync

# ---- service requests ----------------------------------------------------------------------------------
$B/bench/qos_%: bench/qos_%.c Makefile
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$Q$(CC) $(CSTD) $(WARN) -D_GNU_SOURCE -O2 -pthread $< -o $@
bench-qos: all $B/bench/qos_victim $B/bench/qos_direct ## what service requests cost a victim, under every policy
	python3 bench/qos.py $B $(if $(REPEATS),--rounds $(REPEATS)) | tee $B/bench/qos.txt
bench-pareto: all ## the paper's figure 7: a victim's speed against requests, drawn (four minutes)
	@mkdir -p $B/bench
	$B/gpuloom run conf/qos/pareto.ini --json $B/bench/pareto.jsonl --anew --set sweep.report=$B/bench/pareto.svg
.PHONY: bench-qos bench-pareto

# ---- work stealing -------------------------------------------------------------------------------------
# Each peer is built where its package is; bench/tasks-peers says which are missing.
PEERS := $B/bench/peers
PEER_COMMON := $(PEERS)/peer.o $(PEERS)/uts_trees.o
$(PEERS)/peer.o: bench/peers/peer.c bench/peers/peer.h plugins/workloads/uts_trees.h
	@mkdir -p $(@D)
	$Q$(CC) $(CPPFLAGS) $(CSTD) -O2 $(WARN) -c $< -o $@
$(PEERS)/uts_trees.o: plugins/workloads/uts_trees.c plugins/workloads/uts_trees.h
	@mkdir -p $(@D)
	$Q$(CC) $(CPPFLAGS) $(CSTD) -O2 $(WARN) -c $< -o $@
peer = $Qrm -f $@; $1 -O2 -Wall -Wextra $2 $(filter %.c %.cpp %.o,$^) $3 -lm -o $@ 2>$@.log || echo "  left out: $@: $$(head -n 1 $@.log)"
$(PEERS)/seq: bench/peers/peer_seq.c $(PEER_COMMON)
	$(call peer,$(CC))
$(PEERS)/gomp: bench/peers/peer_omp.c $(PEER_COMMON)
	$(call peer,gcc,-fopenmp)
$(PEERS)/libomp: bench/peers/peer_omp.c $(PEER_COMMON)
	$(call peer,clang,-fopenmp=libomp $(addprefix -L,$(lastword $(sort $(wildcard /usr/lib/llvm-*/lib)))))
$(PEERS)/tbb: bench/peers/peer_tbb.cpp $(PEER_COMMON)
	$(call peer,g++ -std=c++17,,-ltbb)
$(PEERS)/starpu: bench/peers/peer_starpu.c $(PEER_COMMON)
	$(call peer,$(CC),$(shell pkg-config --cflags starpu-1.3 2>/dev/null),$(shell pkg-config --libs starpu-1.3 2>/dev/null))
$B/bench/tasks_idle: bench/tasks_idle.c tests/harness.h $B/obj/tests/support.o
	@mkdir -p $(@D)
	$Q$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) $< $B/obj/tests/support.o -lcunit -ldl -o $@
bench-peers: all $(addprefix $(PEERS)/,seq gomp libomp tbb starpu) $B/bench/tasks_idle ## work stealing beside oneTBB, OpenMP and StarPU
	tools/deps run bench
	bench/tasks-peers $B $(BENCH)
.PHONY: bench-peers
check-models: ## all states of the models of queues, detectors and sleep, and their seeded faults
	tools/deps check
	tests/models/check-models.sh
check-soak: all ## 2000 runs with random options and stopped workers
	python3 tests/soak.py $B $(if $(RUNS),--runs $(RUNS))
.PHONY: check-models check-soak
