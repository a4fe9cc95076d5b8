# SPDX-License-Identifier: Apache-2.0
# Plants one fault into a template of new-plugin:
#   awk -v fault=term_early -f plant.awk term.c.in
# `%term_early% text` replaces the line above it in the plug-in with this fault. `%+term_early% text` follows that line.
# new-plugin omits such lines.
function say(text) {
	gsub(/@NAME@/, fault, text)
	gsub(/@MACRO@/, toupper(fault), text)
	gsub(/@SHORT@/, "broken", text)
	print text
}
function flush() {
	if (held)
		say(line)
	held = 0
}
sub("^%[+]" fault "%", "") {
	flush()
	say($0)
	next
}
sub("^%" fault "%", "") {
	held = 0
	say($0)
	next
}
/^%/ { next }
{
	flush()
	line = $0
	held = 1
}
END { flush() }
