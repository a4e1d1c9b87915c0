import { Command } from 'commander';
import { asRendered, asRunning } from '../../predict/pool-change.ts';
import { diffPools, formatDiffs, type PoolDiff } from '../change/diff.ts';
import { readChangeFlags, withChange } from '../change/file-flags.ts';
import { exitCodes, noSuchPool, UsageError } from '../command-line/exit-codes.ts';
import { outputFlag, print, TABLE_FORMATS } from '../command-line/output.ts';
import { DiffOutput } from '../command-line/output-schemas.ts';
import { printAs } from '../command-line/print-as.ts';
import { withArchitecture, withRegistryFlags } from '../command-line/registry-flags.ts';
import { type DiffNamedFlags, diffNamed } from './diff-named.ts';

const EXAMPLES = `
Examples:
  shale diff -f new.yaml                              what new.yaml changes on the cluster's nodes
  shale diff --from old/ -f new/ --prune              the same from files, without a cluster
  shale diff --running --pool worker                  what the MachineConfigs specify and nodes do not run yet
  shale diff rendered-worker-1f3c rendered-worker-9b   two MachineConfigs of the cluster, or of the files given with -f
  shale diff was.yaml will-be.yaml                    two MachineConfigs, each in its own file
  shale diff worker-0                                 what node worker-0 runs, and its target
  shale diff pool/worker worker-0                     the target of pool worker, and what this node runs
  shale diff worker-0 r.example.com/os/worker@sha256:…   what a node runs, and what an image contains
  shale diff r.example.com/os/worker@sha256:… r.example.com/os/worker@sha256:…   two images, by their contents`;

/**
 * `shale diff`: what changes on the disks of nodes. Exits like kubectl diff: 0 no changes, 1 changes, above 1 an error.
 */
export function diffCommand(): Command {
  const command = new Command('diff').argument(
    '[what...]',
    'two things to compare: each a MachineConfig, pool or node of the cluster, a file, or an image; or a single pool or node',
  );
  return withArchitecture(withRegistryFlags(withChange(command)))
    .option('--pool <name>', 'show only this pool')
    .option(
      '--running',
      'compare with what the nodes of the pools run, not with what the MachineConfigs specify',
    )
    .addOption(outputFlag(...TABLE_FORMATS, 'text'))
    .addHelpText('after', EXAMPLES)
    .action(async (named: readonly string[], flags: DiffNamedFlags) => {
      const diffs = named.length > 0 ? [await diffNamed(named, flags)] : await diffChange(flags);
      if (flags.output === 'json' || flags.output === 'yaml') printAs(flags.output, DiffOutput, diffs);
      else print(formatDiffs(diffs));
      if (diffs.some((diff) => 'problems' in diff)) {
        throw new UsageError("some pools can't be rendered");
      }
      if (diffs.some((diff) => 'changes' in diff && diff.changes.length > 0)) {
        process.exitCode = exitCodes.failed;
      }
    });
}

async function diffChange(flags: DiffNamedFlags): Promise<readonly PoolDiff[]> {
  if (flags.filename.length === 0 && flags.running !== true) {
    throw new UsageError(
      'diff: specify what to compare: files with -f, a pool, a node, two names, or --running',
    );
  }
  const { before, after, live } = await readChangeFlags(flags);
  if (flags.running === true && live === undefined) {
    throw new UsageError("diff: --running needs a cluster and can't be combined with --from");
  }
  const from =
    flags.running === true && live !== undefined ? asRunning(before, live.rendered) : asRendered(before);
  const all = diffPools(from, after);
  const diffs = all.filter(({ pool }) => flags.pool === undefined || pool === flags.pool);
  if (diffs.length > 0) return diffs;
  throw noSuchPool(
    flags.pool ?? '',
    all.map(({ pool }) => pool),
  );
}
