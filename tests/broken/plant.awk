# SPDX-License-Identifier: Apache-2.0
# Plants one fault into a template of new-plugin:
#   awk -v fault=term_early -f plant.awk term.c.in
# In the plug-in with the fault term_early, a line `%term_early% text` of the template replaces the line above it by `text`.
# A line `%+term_early% text` adds `text` after the line above it.
# The command new-plugin omits such lines.
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
