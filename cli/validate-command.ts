import { Command } from 'commander';
import { z } from 'zod';
import type { KubernetesObject } from '../api/object.ts';
import { noun, plural } from '../api/plural.ts';
import { limitedInStandardMode } from '../machineconfig/standard-mode.ts';
import { imageProblems } from '../predict/image/image-to-build.ts';
import { formatRefusal, refusingNodes } from '../predict/node/refusing-nodes.ts';
import {
  formatObjectProblem,
  type ObjectProblem,
  type ObjectRef,
  type OfflineCluster,
  offlineCluster,
} from '../predict/objects/offline-cluster.ts';
import { problemsOf, renderingProblems, warningsOf } from '../predict/objects/offline-problems.ts';
import { layeredRenderings, renderOffline } from '../predict/objects/offline-rendering.ts';
import { limitsOf } from '../rollout/limit-flags.ts';
import { type FileFlags, withFilesOrCluster } from './change/file-flags.ts';
import { type LiveCluster, readLiveCluster } from './change/live-cluster.ts';
import { readDocuments } from './change/object-files.ts';
import { failOnWarnings, strictFlag } from './change/report-warnings.ts';
import { withSwitch } from './change/switched-cluster.ts';
import { connect } from './command-line/cluster-access.ts';
import { CommandError, exitCodes } from './command-line/exit-codes.ts';
import { outputFlag, print, TABLE_FORMATS } from './command-line/output.ts';
import { printAs } from './command-line/print-as.ts';

/** As `-o json` prints it. */
export const ValidateOutput = z.strictObject({
  valid: z.boolean(),
  problems: z.array(z.string()),
  warnings: z.array(z.string()),
});

/**
 * `shale validate`: exits with 0 when everything is valid, otherwise after printing every problem: with 2 if a document
 * can't be read, else with 1.
 */
export function validateCommand(): Command {
  return withFilesOrCluster(new Command('validate'))
    .addOption(outputFlag(...TABLE_FORMATS))
    .addOption(strictFlag())
    .action(async (flags: FileFlags & { readonly strict?: boolean }) => {
      const { live, objects, places, unreadable } = await given(flags);
      const reading = { limits: limitsOf(flags), isLive: live !== undefined };
      const cluster = withSwitch(offlineCluster(objects, reading), objects);
      const own = [...unreadable, ...problemsOf(cluster).map((problem) => placed(problem, places))];
      const problems =
        own.length > 0 ? own : [...renderingProblems(cluster, reading), ...unbuildableImages(cluster)];
      const valid = problems.length === 0;
      const warnings = [...warningsOf(cluster), ...(valid ? standardModeWarnings(cluster, live) : [])];
      if (flags.output !== 'table') printAs(flags.output, ValidateOutput, { valid, problems, warnings });
      else if (valid) print([`${validObjects(cluster)} valid`, ...marked(warnings)].join('\n'));
      else print([...problems, ...marked(warnings)].join('\n'));
      const exitCode = unreadable.length > 0 ? exitCodes.usage : exitCodes.failed;
      if (!valid) throw new CommandError(`${plural(problems.length, 'problem')} found`, exitCode);
      if (flags.strict === true) failOnWarnings(warnings);
    });
}

interface Given {
  readonly live: LiveCluster | undefined;
  readonly objects: readonly KubernetesObject[];
  /** Where the objects of a kind and name are in the files, by {@link keyOf} these. */
  readonly places: ReadonlyMap<string, string>;
  /** Problems of the documents that are no objects, with their places. */
  readonly unreadable: readonly string[];
}

async function given(flags: FileFlags): Promise<Given> {
  if (flags.filename.length === 0) {
    const live = await readLiveCluster(await connect(flags), undefined, flags.namespace);
    return { live, objects: live.objects, places: new Map(), unreadable: [] };
  }
  const { objects, problems } = await readDocuments(flags.filename);
  const byName = Map.groupBy(objects, ({ object: { kind, metadata } }) => keyOf({ kind, ...metadata }));
  return {
    live: undefined,
    objects: objects.map(({ object }) => object),
    places: new Map(
      [...byName].map(([name, all]) => [name, [...new Set(all.map(({ place }) => place))].join(', ')]),
    ),
    unreadable: problems.map(({ message }) => message),
  };
}

/** @returns the problem in a line, with the place of its object before it. */
function placed(problem: ObjectProblem, places: Given['places']): string {
  const place = problem.object && places.get(keyOf(problem.object));
  const line = formatObjectProblem(problem);
  return place === undefined ? line : `${place}: ${line}`;
}

function keyOf({ kind, name }: ObjectRef): string {
  return JSON.stringify([kind, name]);
}

/** @returns such as `2 MachineConfigs and 1 other object are`. */
function validObjects({ configs, others }: OfflineCluster): string {
  const count = configs.length;
  if (others === 0) return `${plural(count, 'MachineConfig')} ${noun(count, 'is', 'are')}`;
  if (count === 0) return `${plural(others, 'object')} ${noun(others, 'is', 'are')}`;
  return `${plural(count, 'MachineConfig')} and ${plural(others, 'other object')} are`;
}

const marked = (warnings: readonly string[]): string[] => warnings.map((warning) => `warning: ${warning}`);

/** @returns why the images of layered pools can't be built although they can be rendered; one line each. */
function unbuildableImages(cluster: OfflineCluster): string[] {
  return layeredRenderings(cluster).flatMap(({ pool, machineOSConfig: { spec }, rendering }) =>
    imageProblems(spec, rendering.rendered, rendering.configs).map(
      (problem) => `pool ${pool}: no image can be built: ${problem}`,
    ),
  );
}

/**
 * What is valid but not every host can apply in standard mode. Layered pools have no such limits, and `plan` reports
 * pools that can't be rendered.
 *
 * @param live the cluster, if there is one; without it the backends of the nodes are unknown.
 */
function standardModeWarnings(cluster: OfflineCluster, live: LiveCluster | undefined): string[] {
  const layered = new Set(cluster.machineOSConfigs.map(({ spec }) => spec.machineConfigPool.name));
  return cluster.pools.flatMap((pool) => {
    const { name } = pool.metadata;
    const rendering = layered.has(name) ? undefined : renderOffline(cluster, pool);
    if (rendering?.ok !== true) return [];
    const { rendered, config } = rendering;
    const limits =
      live === undefined
        ? limitedInStandardMode(config, rendered.spec.baseOSExtensionsContainerImage ?? '')
        : refusingNodes(live, { pool: name, rendered, config }).map(formatRefusal);
    return limits.map((limit) => `pool ${name}: ${limit}`);
  });
}
