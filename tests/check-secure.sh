# SPDX-License-Identifier: Apache-2.0
# Tests a set-user-id program that embeds gpuloom. It must not take a plug-in, compiler or temporary folder from the environment
# of its user, and must reject plug-ins that another user could have written.
. tests/lib.sh
plain_build 'sanitizers have variables of their own'
need setpriv
[ "$(id -u)" -eq 0 ] || skip 'only root can make a set-user-id program of another user'
chmod 755 "$tmp"
mkdir "$tmp/plugins" "$tmp/hostile" "$tmp/bin"
cp "$B"/plugins/*.so "$tmp/plugins/"
cat >"$tmp/embed.c" <<'C'
#include <gpuloom/gpuloom.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv)
{
	struct loom_error err = {0};
	struct loom_config *config;
	struct loom_stack *stack = NULL;
	uint32_t tag;
	char conf[4000];
	snprintf(conf, sizeof(conf), "[gpuloom]\nplugin_path = %s\n[run]\ndevices = cpu:0\n[device.cpu]\nworkers = 1\n"
		 "[transport]\nuse = host\n[scheduler]\nuse = mgws\n[termination]\nuse = %s\n", argv[1], argv[2]);
	int rc = loom_config_create(&config, &err);
	rc = rc ? rc : loom_config_load_text(config, "conf", conf, &err);
	rc = rc ? rc : loom_stack_open(config, NULL, &stack, &err);
	if (!rc && argc > 3) {
		const char *name = "one";
		rc = loom_stack_source(stack, "one.c", "LOOM_FN void one(struct loom_ctx *c, const struct loom_task *t)\n"
				       "{\n\t(void)c, (void)t;\n}\n", &name, 1, &tag, &err);
		struct loom_task task = {.tag = tag};
		rc = rc ? rc : loom_stack_submit(stack, &task, 1, &err);
		rc = rc ? rc : loom_stack_run(stack, NULL, &err);
	}
	puts(rc ? err.text : "fine");
	loom_stack_close(stack);
	loom_config_destroy(config);
	return !!rc;
}
C
cat >"$tmp/hostile.c" <<'C'
#include <gpuloom/term.h>
#include <stdio.h>
#include <unistd.h>
__attribute__((constructor)) static void began(void)
{
	printf("HOSTILE uid %u euid %u\n", getuid(), geteuid());
}
C
cc -D_GNU_SOURCE "-I$B/include" "$tmp/embed.c" "$B/libgpuloom.a" -liniparser -lcjson -lm -ldl -pthread -rdynamic -o \
	"$tmp/bin/embed" 2>"$tmp/out" ||
	{ fail 'the program does not build'; cat "$tmp/out"; finish; }
cc "-I$B/include" -shared -fPIC "$tmp/hostile.c" -o "$tmp/hostile/term_hostile.so"
# With PATH, because a `cc` that is ccache would find this one there.
printf '#!/bin/sh\nid -u >%s/ran\nPATH=%s exec %s "$@"\n' "$tmp/hostile/tmp" "$PATH" "$(command -v cc)" >"$tmp/hostile/cc"
chmod 755 "$tmp/hostile/cc"
mkdir "$tmp/hostile/tmp"
chown -R 65534 "$tmp/hostile"
cp "$tmp/bin/embed" "$tmp/bin/privileged"
chmod 4755 "$tmp/bin/privileged"
cat >"$tmp/as_nobody" <<SH
#!/bin/sh
exec env -i PATH="$tmp/hostile:$PATH" GPULOOM_PLUGIN_PATH="$tmp/hostile" CC="$tmp/hostile/cc" TMPDIR="$tmp/hostile/tmp" \\
	setpriv --reuid=65534 --regid=65534 --clear-groups "\$@"
SH
chmod 755 "$tmp/as_nobody"
"$tmp/as_nobody" true || skip 'this sandbox has no other users'
[ "$("$tmp/as_nobody" "$tmp/bin/privileged" "$tmp/plugins" counter)" = fine ] ||
	skip "set-user-id does not work in $tmp"
# Without privileges, the program obeys the environment.
expect 1 'HOSTILE uid 65534 euid 65534' "$tmp/as_nobody" "$tmp/bin/embed" "$tmp/plugins" hostile
expect 0 '^fine' "$tmp/as_nobody" "$tmp/bin/embed" "$tmp/plugins" counter source
[ -s "$tmp/hostile/tmp/ran" ] || fail 'the compiler that CC names did not run'
rm -f "$tmp/hostile/tmp/ran"
hostile() { # WHAT PATTERN ARGUMENTS...: checks that the program rejects WHAT, and that no code of the user has run
	what=$1 pattern=$2
	shift 2
	expect 1 "$pattern" "$tmp/as_nobody" "$tmp/bin/privileged" "$@"
	! grep -q HOSTILE "$tmp/out" || { fail "F7: $what: its constructor ran"; cat "$tmp/out"; }
}
hostile 'GPULOOM_PLUGIN_PATH' "no termination plug-in 'hostile'" "$tmp/plugins" hostile
hostile 'a folder of another user' "another user's" "$tmp/hostile" hostile
hostile 'a file of another user' "another user's" "$tmp/plugins" "$tmp/hostile/term_hostile.so"
expect 0 '^fine' "$tmp/as_nobody" "$tmp/bin/privileged" "$tmp/plugins" counter source
[ ! -e "$tmp/hostile/tmp/ran" ] || fail 'F7: the compiler that CC names ran'
finish
