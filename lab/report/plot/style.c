/* SPDX-License-Identifier: Apache-2.0 */
/* Colours of the plots: the palette of Okabe and Ito (2008), which most people with a colour vision deficiency can
 * distinguish. On dark pages, its dark colours are replaced by lighter ones. */
#include "report/plot/plot.h"

#include <string.h>

const char loom__plot_style[] =
    ":root,svg{--paper:#fff;--ink:#1d2125;--soft:#5a646e;--hair:#e4e6e3;--axis:#aab0b5;--band:#"
    "eef1ee;"
    "--c0:#0072b2;--c1:#d55e00;--c2:#009e73;--c3:#cc79a7;--c4:#e69f00;--c5:#56b4e9;--c6:#8a8f00;"
    "--c7:#3b3f44;--good:#00825e;--bad:#c04a00;--even:#0072b2;--claim:#b0003a}\n"
    "@media (prefers-color-scheme:dark){:root,svg{--paper:#1a1e23;--ink:#e7e9eb;--soft:#a0a9b2;"
    "--hair:#2b3138;--axis:#5b646d;--band:#242b30;--c0:#56b4e9;--c1:#ff8a3d;--c2:#2cc79a;--c3:#"
    "e79cc4;"
    "--c4:#e69f00;--c5:#3d93d6;--c6:#f0e442;--c7:#c5cad0;--good:#2cc79a;--bad:#ff8a3d;--even:#"
    "56b4e9;--claim:#ff7a9c}}\n"
    "@media "
    "print{:root,svg{--paper:#fff;--ink:#000;--soft:#444;--hair:#ddd;--axis:#888;--band:#eee;"
    "--c0:#0072b2;--c1:#d55e00;--c2:#009e73;--c3:#cc79a7;--c4:#e69f00;--c5:#56b4e9;--c6:#8a8f00;"
    "--c7:#3b3f44;--good:#00825e;--bad:#c04a00;--even:#0072b2;--claim:#b0003a}}\n"
    ".plot{font:13px system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif;"
    "font-variant-numeric:tabular-nums;overflow:visible}\n"
    ".plot text{fill:var(--ink);paint-order:stroke;stroke:var(--paper);stroke-width:3px;"
    "stroke-linejoin:round}.plot .mid{text-anchor:middle}.plot .end{text-anchor:end}\n"
    ".plot .tick,.plot .note{fill:var(--soft);font-size:12px}.plot .name{font-weight:600}\n"
    ".plot .title{font-size:18px;font-weight:650}\n"
    ".plot .strong{font-weight:650;font-size:12px;letter-spacing:.03em}\n"
    ".plot .grid{stroke:var(--hair)}.plot .axis{stroke:var(--axis)}\n"
    ".plot .one{stroke:var(--soft);stroke-width:1.2}.plot .band{fill:var(--band)}\n"
    ".s0{color:var(--c0)}.s1{color:var(--c1)}.s2{color:var(--c2)}.s3{color:var(--c3)}\n"
    ".s4{color:var(--c4)}.s5{color:var(--c5)}.s6{color:var(--c6)}.s7{color:var(--c7)}\n"
    ".plot .fill{fill:currentColor}.plot .ring{stroke:var(--paper);stroke-width:1.5}\n"
    ".plot .dim{fill:currentColor;fill-opacity:.45}\n"
    ".plot .thread{fill:none;stroke:currentColor;stroke-opacity:.28}\n"
    ".plot .line{fill:none;stroke:currentColor;stroke-width:2;stroke-linejoin:round}\n"
    ".plot .median{stroke:currentColor;stroke-dasharray:4 4;stroke-opacity:.75}\n"
    ".plot .half{fill:currentColor;fill-opacity:.16}.plot .dot{fill:currentColor;fill-opacity:.5}\n"
    ".plot .whisker{stroke:var(--ink);stroke-width:2}.plot .open{stroke-dasharray:3 3}\n"
    ".plot .span{stroke:currentColor;stroke-width:2}.plot .verdict{fill:currentColor;stroke:var(--paper);"
    "stroke-width:1.5}\n"
    ".plot .whiskers .span{stroke-width:1.4;stroke-opacity:.5}\n"
    ".plot .v-faster{color:var(--good)}.plot .v-slower{color:var(--bad)}.plot .v-equivalent{color:var(--even)}\n"
    ".plot .v-trivial,.plot .v-open{color:var(--soft)}\n"
    ".plot .verdict,.plot .v-open .fill,.plot .v-open .hollow{color:inherit}"
    ".plot .hollow{fill:var(--paper);stroke:currentColor;stroke-width:1.6}\n"
    ".plot .front{fill:none;stroke:var(--even);stroke-width:2;stroke-linejoin:round}\n"
    ".plot .v-open .whiskers .span{stroke-opacity:.35;stroke-width:1}\n"
    ".plot .idle{fill:var(--band);stroke:var(--axis);stroke-width:.7}\n"
    ".plot .claim{stroke:var(--claim);stroke-width:2.4}.plot .error{stroke:var(--ink);stroke-width:1.2}\n"
    ".plot .cell{font-size:12px;stroke:none}\n"
    ".plot .last{stroke:var(--ink);stroke-width:1.5}.paper{fill:var(--paper)}\n";

const char *const loom__verdict_style[] = {"v-faster", "v-slower", "v-equivalent", "v-trivial", "v-open", "v-open"};
const char *const loom__verdict_sign[] = {"\xe2\x96\xb2", "\xe2\x96\xbc", "\xe2\x96\xa0",
					  "\xe2\x97\x86", "\xe2\x97\x8b", ""};

/* Appends the rules of the style sheet. Each var(--name) in the rules is replaced by the value of that name in
 * `colours`. */
static void put_rules(struct loom__text *out, const char *colours)
{
	static const char head[] = "var(";
	for (const char *at = strstr(loom__plot_style, ".plot{"), *next; *at; at = next) {
		next = strstr(at, head);
		next = next ? next : at + strlen(at);
		loom__text_put(out, at, (size_t)(next - at));
		if (!*next)
			break;
		const char *name = next + sizeof(head) - 1, *value = colours;
		size_t length = strcspn(name, ")");
		while ((value = strstr(value, "--")) && (strncmp(value, name, length) || value[length] != ':'))
			value += 2;
		if (value)
			loom__text_put(out, value + length + 1, strcspn(value + length + 1, ";}"));
		next = name + length + 1;
	}
}

void loom__plot_style_plain(struct loom__text *out)
{
	put_rules(out, loom__plot_style);
}
