/**
 * How many commands of a page a test can't run, because they need a cluster, a host or a registry of the reader's: blocks
 * marked `elsewhere`. Numbers and not a list of files, so that one more is seen in a review.
 */
export const ELSEWHERE: Readonly<Record<string, number>> = {
  'CONTRIBUTING.md': 3,
  'README.md': 10,
  'docs/explanation/bootc-operator.md': 9,
  'docs/explanation/from-mco.md': 8,
  'docs/how-to/custom-containerfile.md': 5,
  'docs/how-to/enable-on-bootc.md': 11,
  'docs/how-to/enable-on-ostree.md': 4,
  'docs/how-to/enable-on-rpm-ostree.md': 4,
  'docs/how-to/private-registry.md': 6,
  'docs/how-to/stuck-node.md': 1,
  'docs/install.md': 9,
  'docs/live-page.md': 4,
  'docs/reference/cli.md': 3,
  'docs/reference/operator.md': 2,
  'docs/runbooks.md': 3,
  'docs/supply-chain.md': 6,
  'docs/tracing.md': 3,
};
