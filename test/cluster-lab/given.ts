import { execFileSync } from 'node:child_process';
import { noLab } from '../node-lab/lab.ts';
import { ASSETS, findPrograms, type GivenPrograms, tooOldContainerd } from './given-programs.ts';

/** Set by `make cluster-lab`, which starts the test in a network namespace of its own. */
const OWN_NETWORK = 'SHALE_CLUSTER_LAB';

/** The programs of a cluster, or why none can be had here. */
export type Given = { readonly programs: GivenPrograms } | { readonly why: string };

/** @returns what the tests of this directory run on. */
export function givenCluster(): Given {
  if (process.env[OWN_NETWORK] === undefined) return { why: `make cluster-lab ${ASSETS}=/path/to/programs` };
  if (noLab !== undefined) return { why: noLab };
  const programs = findPrograms(process.env[ASSETS], process.env['PATH'] ?? '');
  if ('missing' in programs) {
    return { why: `neither in ${ASSETS} nor in PATH: ${programs.missing.join(', ')}` };
  }
  const why = tooOldContainerd(execFileSync(programs.containerd, ['--version'], { encoding: 'utf8' }));
  return why === undefined ? { programs } : { why };
}
