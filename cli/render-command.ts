import { Command } from 'commander';
import { z } from 'zod';
import { type OfflineCluster, offlineCluster } from '../predict/objects/offline-cluster.ts';
import { warningsOf } from '../predict/objects/offline-problems.ts';
import { renderOffline } from '../predict/objects/offline-rendering.ts';
import { limitsOf } from '../rollout/limit-flags.ts';
import { type FileFlags, objectsOf, refuseMalformed, withFilesOrCluster } from './change/file-flags.ts';
import { failOnWarnings, reportWarnings, strictFlag } from './change/report-warnings.ts';
import { CommandError, poolNamed } from './command-line/exit-codes.ts';
import { outputFlag, print } from './command-line/output.ts';
import { printAs } from './command-line/print-as.ts';

/** A MachineConfig; its spec is as the operator writes it. */
export const RenderOutput = z.strictObject({
  apiVersion: z.string(),
  kind: z.literal('MachineConfig'),
  metadata: z.looseObject({ name: z.string() }),
  spec: z.looseObject({}),
});

/** `shale render`: the rendered MachineConfig of a pool. */
export function renderCommand(): Command {
  const command = new Command('render').requiredOption('--pool <name>', 'name of the MachineConfigPool');
  return withFilesOrCluster(command)
    .addOption(outputFlag('yaml', 'json', 'name'))
    .addOption(strictFlag())
    .action(async (flags: FileFlags & { readonly pool: string; readonly strict?: boolean }) => {
      const cluster = offlineCluster(await objectsOf(flags), {
        limits: limitsOf(flags),
        isLive: flags.filename.length === 0,
      });
      refuseMalformed(cluster);
      const { rendered } = renderingOfPool(cluster, flags.pool);
      const warnings = warningsOf(cluster);
      reportWarnings(warnings);
      if (flags.output === 'name') print(rendered.metadata.name);
      else printAs(flags.output, RenderOutput, rendered);
      if (flags.strict === true) failOnWarnings(warnings);
    });
}

/** @returns what the pool of a name is rendered to. @throws {CommandError} where there is none, or it can't be. */
export function renderingOfPool(cluster: OfflineCluster, name: string) {
  const rendering = renderOffline(cluster, poolNamed(cluster.pools, name));
  if (rendering.ok) return rendering;
  throw new CommandError(`pool ${name} can't be rendered:\n  ${rendering.problems.join('\n  ')}`);
}
