/* SPDX-License-Identifier: Apache-2.0 */
/* Made by make_stats.R with R version 4.2.2 Patched (2022-11-10 r83330):
 * Quantile (k - 1) / (n - 1) of a resample of 1..n is its k-th smallest value,
 * at most j with probability 1 - pbinom(k - 1, n, j / n): low and high are where that passes
 * 0.025 and 0.975.
 */
static const struct {
	size_t n, k;
	double low, high;
} boot_rows[] = {
	{21, 11, 7, 15},
	{101, 51, 41, 61},
	{101, 91, 84, 96},
	{101, 100, 96, 101},
	{201, 199, 194, 201},
};
