# SPDX-License-Identifier: Apache-2.0
# Writes the reference tables of tests/test_stats.c:  cd tests/tables && Rscript make_stats.R
# Base R only. The build and the tests need no R: the tables are committed.
set.seed(20261)
num <- function(x) ifelse(is.infinite(x), ifelse(x > 0, "INFINITY", "-INFINITY"),
			  trimws(formatC(x, digits = 17, format = "g")))
out <- NULL
start <- function(file, ...) {
	out <<- file(file, "w")
	cat("/* SPDX-License-Identifier: Apache-2.0 */\n/* Made by make_stats.R with ",
	    R.version.string, ":\n", paste0(" * ", c(...), "\n"), " */\n", sep = "", file = out)
}
finish <- function() close(out)
wrap <- function(items) strwrap(paste(items, collapse = ", "), width = 90, prefix = "\t")
# A pool of values that the rows cut by {at, n}.
pool <- c()
keep <- function(x) { at <- length(pool); pool <<- c(pool, x); at }
write_pool <- function(name) {
	cat("static const double ", name, "[] = {\n", sep = "", file = out)
	writeLines(paste0(wrap(num(pool)), ""), out)
	cat("};\n", file = out)
	pool <<- c()
}
rows <- c()
row <- function(...) rows <<- c(rows, paste0("\t{", paste(..., sep = ", "), "},"))
write_rows <- function(name, fields) {
	cat("static const struct {\n\t", fields, "\n} ", name, "[] = {\n", sep = "", file = out)
	writeLines(rows, out)
	cat("};\n", file = out)
	rows <<- c()
}

start("stats_order.h", "quantile(x, q, type = 7), mad(x, constant = 1),",
      "acf(x, lag.max = 1, plot = FALSE)$acf[2]")
for (x in list(c(3), c(2, 9), round(rnorm(7), 2), rexp(20), round(rnorm(51, 5), 1),
	       rcauchy(100))) {
	q <- quantile(x, c(0.25, 0.5, 0.9, 0.99), type = 7)
	r <- if (length(x) > 1) acf(x, lag.max = 1, plot = FALSE)$acf[2] else 0
	row(keep(x), length(x), num(q[1]), num(q[2]), num(q[3]), num(q[4]),
	    num(mad(x, constant = 1)), num(r))
}
write_pool("order_x")
write_rows("order_rows", "size_t at, n;\n\tdouble q25, q50, q90, q99, mad, lag1;")
finish()

start("stats_quantile_ci.h", "low = qbinom((1 - level) / 2, n, q), 0 where open;",
      "high = qbinom((1 + level) / 2, n, q) + 1, n + 1 where open;",
      "coverage = pbinom(high - 1, n, q) - pbinom(low - 1, n, q)")
for (q in c(0.5, 0.9, 0.99)) for (level in c(0.9, 0.95, 0.99))
	for (n in c(1, 5, 6, 8, 20, 21, 60, 473, 2000)) {
		low <- qbinom((1 - level) / 2, n, q)
		high <- qbinom((1 + level) / 2, n, q) + 1
		row(n, q, level, low, high, num(pbinom(high - 1, n, q) - pbinom(low - 1, n, q)))
	}
write_rows("ci_rows", "size_t n;\n\tdouble q, level;\n\tsize_t low, high;\n\tdouble coverage;")
finish()

start("stats_signed.h",
      "no ties or zeros, n <= 60: wilcox.test(d, exact = TRUE, conf.int = TRUE),",
      "coverage = 1 - 2 * psignrank(qsignrank(0.025, n) - 1, n);",
      "ties or zeros, n <= 16: all signs of rank(abs(d[d != 0])) enumerated, no interval;",
      "n > 60: wilcox.test(d, exact = FALSE, correct = TRUE), no interval (coverage 0);",
      "shift = median of outer(d, d, \"+\") / 2 with i <= j")
walsh <- function(d) { w <- outer(d, d, "+") / 2; median(w[upper.tri(w, diag = TRUE)]) }
signed <- function(d, p, w, exact, low = 0, high = 0, coverage = 0)
	row(keep(d), length(d), num(w), num(p), exact, num(walsh(d)), num(low), num(high),
	    num(coverage))
for (n in c(1, 2, 5, 6, 12, 20, 33, 60)) for (s in c(0, 0.5, 2)) {
	d <- rnorm(n, s)
	k <- qsignrank(0.025, n)
	t <- wilcox.test(d, exact = TRUE, conf.int = k > 0)
	ends <- if (k > 0) t$conf.int else c(-Inf, Inf)
	if (k > 0) stopifnot(abs(t$estimate - walsh(d)) < 1e-12)
	signed(d, t$p.value, t$statistic, 1, ends[1], ends[2], 1 - 2 * psignrank(k - 1, n))
}
for (n in c(3, 8, 12, 16)) for (s in c(0, 1, 2)) {
	d <- round(rnorm(n, s))
	if (n == 3 && s == 0) d <- c(0, 0, 0)
	z <- d[d != 0]
	r <- rank(abs(z))
	w <- sum(r[z > 0])
	sums <- 0
	for (v in r) sums <- c(sums, sums + v)
	p <- min(1, 2 * min(mean(sums <= w), mean(sums >= w)))
	signed(d, p, w, 1)
}
for (n in c(70, 150)) for (digits in c(0, 9)) for (s in c(0, 0.3)) {
	d <- round(rnorm(n, s), digits)
	t <- wilcox.test(d, exact = FALSE, correct = TRUE)
	if (sum(d != 0) > 60) signed(d, t$p.value, t$statistic, 0)
}
write_pool("signed_x")
write_rows("signed_rows",
	   "size_t at, n;\n\tdouble w, p;\n\tint exact;\n\tdouble shift, low, high, coverage;")
for (n in c(4, 10, 25, 50, 60))
	for (w in unique(round(n * (n + 1) / 4 * c(0, 0.3, 0.5, 0.7, 1))))
		row(n, w, num(min(1, 2 * psignrank(w, n))))
cat("/* min(1, 2 * psignrank(w, n)) */\n", file = out)
write_rows("psignrank_rows", "size_t n;\n\tunsigned w;\n\tdouble p;")
finish()

start("stats_ranksum.h", "no ties, n, m <= 50: wilcox.test(b, a, exact = TRUE, conf.int = TRUE,",
      "conf.level = level), coverage = 1 - 2 * pwilcox(qwilcox((1 - level) / 2, n, m) - 1, n, m);",
      "else wilcox.test(b, a, exact = FALSE, correct = TRUE) and coverage 0 (no interval given);",
      "shift = median(outer(b, a, \"-\")), cliff = mean(sign(outer(b, a, \"-\")))")
for (nm in list(c(1, 1), c(3, 4), c(5, 5), c(10, 7), c(20, 20), c(49, 3), c(50, 50),
		c(30, 70)))
	for (s in c(0, 0.7)) for (digits in c(0, 9)) {
		a <- round(rnorm(nm[1]), digits)
		b <- round(rnorm(nm[2], s), digits)
		ties <- length(unique(c(a, b))) < sum(nm)
		if (max(nm) == 1 && ties) next
		level <- if (s == 0) 0.95 else 0.9
		low <- high <- coverage <- 0
		exact <- !ties && max(nm) <= 50
		if (exact) {
			k <- qwilcox((1 - level) / 2, nm[1], nm[2])
			coverage <- 1 - 2 * pwilcox(k - 1, nm[1], nm[2])
			t <- wilcox.test(b, a, exact = TRUE, conf.int = k > 0, conf.level = level)
			low <- if (k > 0) t$conf.int[1] else -Inf
			high <- if (k > 0) t$conf.int[2] else Inf
		} else {
			t <- wilcox.test(b, a, exact = FALSE, correct = TRUE)
		}
		p <- if (is.nan(t$p.value)) 1 else t$p.value
		d <- outer(b, a, "-")
		row(keep(a), nm[1], keep(b), nm[2], num(t$statistic), num(p), as.integer(exact),
		    level, num(median(d)), num(low), num(high), num(coverage), num(mean(sign(d))))
	}
write_pool("ranksum_x")
write_rows("ranksum_rows", paste0("size_t a, n, b, m;\n\tdouble u, p;\n\tint exact;\n\t",
				  "double level, shift, low, high, coverage, cliff;"))
for (n in c(1, 4, 13, 50)) for (m in c(2, 9, 50))
	for (u in unique(floor(n * m * c(0, 0.2, 0.4, 0.5))))
		row(n, m, u, num(min(1, 2 * pwilcox(u, n, m))))
cat("/* min(1, 2 * pwilcox(u, n, m)) */\n", file = out)
write_rows("pwilcox_rows", "size_t n, m, u;\n\tdouble p;")
finish()

start("stats_adjust.h", "p.adjust(p, \"holm\"), p.adjust(p, \"BH\")")
for (p in list(0.03, c(0.01, 0.04, 0.03), c(0.2, 0.2, 1e-9, 1), round(runif(12)^2, 3),
	       runif(40)^4)) {
	at <- keep(p)
	keep(p.adjust(p, "holm"))
	keep(p.adjust(p, "BH"))
	row(at, length(p))
}
cat("/* a row is n values of p, then of Holm's, then of Benjamini and Hochberg's */\n", file = out)
write_pool("adjust_x")
write_rows("adjust_rows", "size_t at, n;")
finish()

start("stats_trend.h", "cor.test(x, seq_along(x), method = \"kendall\", continuity = TRUE,",
      "exact = no ties and n <= 50)")
for (n in c(2, 3, 5, 10, 25, 50, 51, 200)) for (slope in c(0, 1, -3)) for (digits in c(0, 9)) {
	x <- round(rnorm(n) + slope * seq_len(n) / n, digits)
	if (length(unique(x)) == 1) next
	exact <- length(unique(x)) == n && n <= 50
	t <- cor.test(x, seq_len(n), method = "kendall", exact = exact, continuity = TRUE)
	row(keep(x), n, num(t$estimate), num(t$p.value), as.integer(exact))
}
write_pool("trend_x")
write_rows("trend_rows", "size_t at, n;\n\tdouble tau, p;\n\tint exact;")
finish()

start("stats_boot.h",
      "Quantile (k - 1) / (n - 1) of a resample of 1..n is its k-th smallest value,",
      "at most j with probability 1 - pbinom(k - 1, n, j / n): low and high are where that passes",
      "0.025 and 0.975.")
for (nk in list(c(21, 11), c(101, 51), c(101, 91), c(101, 100), c(201, 199))) {
	cdf <- 1 - pbinom(nk[2] - 1, nk[1], seq_len(nk[1]) / nk[1])
	row(nk[1], nk[2], which(cdf >= 0.025)[1], which(cdf >= 0.975)[1])
}
write_rows("boot_rows", "size_t n, k;\n\tdouble low, high;")
finish()
