# SPDX-License-Identifier: Apache-2.0
# The documentation is in step with the code.
. tests/lib.sh
tools/docs --check "$B" || fail 'generated pages'
! command -v man >/dev/null || man -l docs/gpuloom.1 >/dev/null 2>"$tmp/man" || fail 'the man page'
# The plug-in of docs/plugins.md, as it stands there: builds, runs, conforms.
python3 - "$tmp" <<'PY' || fail 'the plug-in of docs/plugins.md'
import re, sys
for kind, text in re.findall(r'^```(c|ini|sh)\n(.*?)^```', open('docs/plugins.md').read(), re.S | re.M):
    name = re.match(r'/\* (term_mine\.\S+) \*/', text) if kind == 'c' else None
    if name or kind == 'ini':
        open(sys.argv[1] + '/' + (name.group(1) if name else 'mine.ini'), 'w').write(text)
    if kind == 'sh' and 'term_mine.c -o' in text:
        open(sys.argv[1] + '/commands', 'w').write(text)
PY
sed "s|\$(pkg-config --cflags gpuloom)|-I$PWD/core/include|; s|conf/|$PWD/conf/|; s|^gpuloom|$G|" "$tmp/commands" >"$tmp/commands.sh"
[ "$(grep -c "^$G" "$tmp/commands.sh")" = 3 ] || fail 'commands of docs/plugins.md'
(cd "$tmp" && sh -e ./commands.sh) >"$tmp/out" 2>&1 || { fail 'the commands of docs/plugins.md'; cat "$tmp/out"; }
grep -q mine_entries "$tmp/out" || fail 'the metric of the plug-in of docs/plugins.md'
# Links between pages lead somewhere.
for page in README.md CONTRIBUTING.md docs/*.md plugins/*/README.md; do
	[ -e "$page" ] || continue
	grep -o '](\([^)#]*\)' "$page" | cut -c3- | grep -v '://' | while read -r link; do
		[ -z "$link" ] || [ -e "$(dirname "$page")/$link" ] || echo "$page: dead link $link"
	done
done >"$tmp/dead"
[ ! -s "$tmp/dead" ] || { fail 'dead links'; cat "$tmp/dead"; }
finish
