/**
 * How many commands of a page a test can't run, because they need a cluster, a host or a registry of the reader's: blocks
 * marked `elsewhere`. Numbers and not a list of files, so that one more is seen in a review.
 */
export const ELSEWHERE: Readonly<Record<string, number>> = {
  'README.md': 10,
  'docs/install.md': 9,
  'docs/live-page.md': 4,
  'docs/reference/cli.md': 3,
  'docs/reference/operator.md': 2,
  'docs/runbooks.md': 3,
  'docs/supply-chain.md': 6,
  'docs/tracing.md': 3,
};
