# SPDX-License-Identifier: Apache-2.0
# A template of new-plugin with one fault: awk -v fault=term_early -f plant.awk term.c.in
# `%term_early% text` stands in the place of the line above it in the plug-in that has this fault; `%+term_early% text`
# comes behind that line. new-plugin leaves such lines out.
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
