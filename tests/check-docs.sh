# SPDX-License-Identifier: Apache-2.0
# The documentation is in step with the code.
. tests/lib.sh
tools/docs --check "$B" || fail 'generated pages'
! command -v man >/dev/null || man -l docs/gpuloom.1 >/dev/null 2>"$tmp/man" || fail 'the man page'
# Links between pages lead somewhere.
for page in README.md CONTRIBUTING.md docs/*.md plugins/*/README.md; do
	[ -e "$page" ] || continue
	grep -o '](\([^)#]*\)' "$page" | cut -c3- | grep -v '://' | while read -r link; do
		[ -z "$link" ] || [ -e "$(dirname "$page")/$link" ] || echo "$page: dead link $link"
	done
done >"$tmp/dead"
[ ! -s "$tmp/dead" ] || { fail 'dead links'; cat "$tmp/dead"; }
finish
