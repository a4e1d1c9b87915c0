import { Command } from 'commander';
import { z } from 'zod';
import { BuildContents } from '../api/build-contents.ts';
import { changeOf } from '../api/change-id.ts';
import { formatActions, formatAsked } from '../api/disruption-action.ts';
import { type MachineConfig, MachineConfigs } from '../api/machine-config.ts';
import type { UpdatePlan, UpdateRecord } from '../api/machine-config-node.ts';
import { annotations } from '../api/names.ts';
import { inOneLine } from '../api/visible-text.ts';
import { configsWith } from '../machineconfig/owners.ts';
import { failureAtTarget } from '../rollout/pools/progress.ts';
import { contentsOfImage } from '../view/build-contents.ts';
import { objectNamed } from '../view/named.ts';
import { nodeView } from '../view/node-view.ts';
import { disputeOn, type ObservedCluster } from '../view/observed-cluster.ts';
import { triedChanges } from '../view/pool-view.ts';
import {
  type ClusterFlags,
  onCluster,
  readAll,
  withClusterFlags,
  withLeaseNamespace,
} from './command-line/cluster-access.ts';
import { UsageError } from './command-line/exit-codes.ts';
import { outputFlag, print, TABLE_FORMATS } from './command-line/output.ts';
import { printAs } from './command-line/print-as.ts';
import { observeCluster, type Places } from './observe/cluster-watch.ts';
import { formatHandover } from './observe/node-text.ts';

/** `shale explain`: why the last update of a node required what it did, and what the next one requires. */
export function explainCommand(): Command {
  const command = new Command('explain').argument('<node>');
  return withLeaseNamespace(withClusterFlags(command))
    .addOption(outputFlag(...TABLE_FORMATS))
    .action((node: string, flags: ClusterFlags & Places & { output: string }) =>
      onCluster(flags, async (client, signal) => {
        const [cluster, machineConfigs] = await Promise.all([
          observeCluster(client, flags, signal),
          readAll(client, MachineConfigs, { signal }),
        ]);
        const explained = explainNode(node, cluster, machineConfigs, Date.now());
        if (explained === undefined) {
          throw new UsageError(
            `MachineConfigNode ${node} does not exist: ${disputeOn(cluster, node) ?? 'no pool selects such a node'}`,
          );
        }
        if (flags.output === 'table') print(formatExplanation(explained));
        else printAs(flags.output, ExplainOutput, explained);
      }),
    );
}

/** An update of a node, as `-o json` prints it: why it needs what it needs. */
const ExplainedUpdate = z.strictObject({
  config: z.string(),
  /** Identifies the change in logs, events and traces. */
  change: z.string(),
  image: z.string().optional(),
  /** The stream of OS images of the config; absent where that has none, or is gone. */
  osImageStream: z.string().optional(),
  causes: z.array(
    z.strictObject({
      /** MachineConfigs of the pool that set the subject now; empty when it was removed. */
      machineConfigs: z.array(z.string()).readonly(),
      change: z.enum(['added', 'changed', 'removed']),
      subject: z.string(),
      /** The policy or rule that decided. */
      rule: z.string(),
      /** The actions of the rule, as text. */
      actions: z.string(),
    }),
  ),
  /** The actions of all causes together, as text. */
  actions: z.string(),
  /** Where the actions come from: the image label or the policies in force. */
  source: z.string(),
  /** What is different inside the image; absent where its build recorded nothing. */
  contents: BuildContents.optional(),
});
type ExplainedUpdate = z.infer<typeof ExplainedUpdate>;

/** The last and the next update of a node, as `-o json` prints them. */
export const ExplainOutput = z.strictObject({
  node: z.string(),
  pool: z.string(),
  mode: z.enum(['Standard', 'Layered']).optional(),
  /** The rendered config that it runs; absent until the daemon reports it. */
  config: z.string().optional(),
  image: z.string().optional(),
  /** The stream of OS images of the config that it runs; absent where that has none. */
  osImageStream: z.string().optional(),
  /** Why it is in no pool, `pool` being the one that it was in last. */
  dispute: z.string().optional(),
  /** Its state, as in `shale status`, and what it does or waits for; absent where `next` has them. */
  state: z.string().optional(),
  what: z.string().optional(),
  /** Cluster API has handed it over for its update: the owner that did, and its Machine. */
  handedOver: z.strictObject({ owner: z.string(), machine: z.string(), since: z.string() }).optional(),
  /** The target at which it failed and which it doesn't try again by itself, and what to do about that. */
  failed: z.strictObject({ config: z.string(), advice: z.string() }).optional(),
  /** Which MachineConfigs of the pool are undone unless somebody confirms them, as text. */
  tried: z.string().optional(),
  last: ExplainedUpdate.extend({
    result: z.enum(['Succeeded', 'RolledBack', 'Failed']),
    startedAt: z.string(),
    finishedAt: z.string(),
    rebooted: z.boolean(),
    /** Present when it was a soft reboot, which keeps the kernel. */
    softly: z.literal(true).optional(),
    message: z.string().optional(),
  }).optional(),
  next: ExplainedUpdate.extend({ state: z.string(), what: z.string().optional() }).optional(),
});
type NodeExplanation = z.infer<typeof ExplainOutput>;

/**
 * @param machineConfigs every MachineConfig of the cluster. @param now ms since the epoch.
 * @returns undefined for a node that no pool selects.
 */
export function explainNode(
  name: string,
  cluster: ObservedCluster,
  machineConfigs: readonly MachineConfig[],
  now: number,
): NodeExplanation | undefined {
  const object = objectNamed(cluster.machineConfigNodes, name);
  if (object === undefined) return undefined;
  const view = nodeView(object, cluster, now);
  const pool = objectNamed(cluster.pools, view.pool);
  const sources = (pool?.spec.configuration?.source ?? []).flatMap(
    (source) => objectNamed(machineConfigs, source.name ?? '') ?? [],
  );
  const { lastUpdate, plan } = object.status ?? {};
  const situation = { state: view.state, what: view.what };
  const explain = (update: UpdatePlan | UpdateRecord) => ({
    ...updateOf(update, sources),
    osImageStream: streamOf(update.config, machineConfigs),
    contents: update.image === undefined ? undefined : contentsOfImage(cluster.builds, update.image),
  });
  return {
    node: name,
    pool: view.pool,
    mode: view.mode,
    config: view.config.current,
    image: view.image?.current,
    osImageStream: streamOf(view.config.current, machineConfigs),
    dispute: disputeOn(cluster, name),
    tried: pool === undefined ? undefined : triedChanges(pool),
    handedOver: view.handedOver,
    ...(plan === undefined ? situation : {}),
    failed:
      plan === undefined &&
      view.advice !== undefined &&
      failureAtTarget(object.spec, object.status) !== undefined
        ? { config: object.spec.configVersion.desired, advice: view.advice }
        : undefined,
    last: lastUpdate && { ...explain(lastUpdate), ...resultOf(lastUpdate) },
    next: plan && { ...explain(plan), ...situation },
  };
}

type UpdateResult = Omit<NonNullable<NodeExplanation['last']>, keyof ExplainedUpdate>;

function resultOf(update: UpdateRecord): UpdateResult {
  const { result, startedAt, finishedAt, message, softReboot } = update;
  const rebooted = update.bootIDBefore !== update.bootIDAfter;
  return { result, startedAt, finishedAt, rebooted, softly: softReboot || undefined, message };
}

/** Which stream a pool has now may be another, and a custom pool inherits worker's: what was rendered counts. */
function streamOf(config: string | undefined, machineConfigs: readonly MachineConfig[]): string | undefined {
  return objectNamed(machineConfigs, config ?? '')?.metadata.annotations?.[annotations.osImageStream];
}

function updateOf(
  { config, image, causes, actions, softReboot = false, source }: UpdatePlan | UpdateRecord,
  sources: readonly MachineConfig[],
): Omit<ExplainedUpdate, 'osImageStream' | 'contents'> {
  return {
    config,
    change: changeOf(config),
    image,
    causes: causes.map((cause) => ({
      machineConfigs: cause.change === 'removed' ? [] : configsWith(cause, sources),
      change: cause.change,
      subject: cause.subject,
      rule: cause.rule,
      actions: formatActions(cause.actions),
    })),
    actions: formatAsked({ actions, softReboot }),
    source,
  };
}

/** @returns the explanation as text, with one line for each cause. */
export function formatExplanation(explained: NodeExplanation): string {
  const { node, pool, mode, config, image, osImageStream } = explained;
  const { state, what, dispute, tried, handedOver, failed, last, next } = explained;
  return [
    `node ${node} of pool ${pool} ${config === undefined ? 'has not reported what it runs' : `runs ${config}`}`,
    ...streamLine(osImageStream),
    ...(mode === undefined ? [] : [`  mode: ${mode}${image === undefined ? '' : `, ${image}`}`]),
    ...(state === undefined || (state === 'updated' && what === undefined) ? [] : [formatState(state, what)]),
    ...(dispute === undefined ? [] : [`  skipped: ${dispute}`]),
    ...(tried === undefined ? [] : [`  tried: ${tried}; shale try cancel undoes it now`]),
    ...(handedOver === undefined ? [] : [`  handed over: ${formatHandover(handedOver)}`]),
    '',
    ...(last === undefined
      ? ['last update: none recorded']
      : [
          `last update: to ${last.config}, from ${last.startedAt} to ${last.finishedAt}`,
          ...linesOf(last),
          `  result: ${last.result}, ${formatReboot(last)}${last.message === undefined ? '' : `: ${inOneLine(last.message)}`}`,
        ]),
    '',
    ...(next === undefined
      ? [formatNone(failed)]
      : [`next update: to ${next.config}`, ...linesOf(next), formatState(next.state, next.what)]),
  ].join('\n');
}

function formatState(state: string, what: string | undefined): string {
  return `  state: ${state}${what === undefined ? '' : `: ${inOneLine(what)}`}`;
}

function formatNone(failed: NodeExplanation['failed']): string {
  return failed === undefined
    ? 'next update: none'
    : `next update: to ${failed.config}, which failed and is not tried again by itself: ${failed.advice}`;
}

function formatReboot({ rebooted, softly }: NonNullable<NodeExplanation['last']>): string {
  if (softly === true) return 'with a soft reboot';
  return rebooted ? 'with a reboot' : 'without a reboot';
}

function streamLine(osImageStream: string | undefined): string[] {
  return osImageStream === undefined ? [] : [`  OS image stream: ${osImageStream}`];
}

/** The image that the pool had is what most nodes run; one that skipped it is compared by `shale image diff`. */
function contentsLines({ summary, previousImage, unreadable = [] }: BuildContents = {}): string[] {
  if (summary === undefined) return [];
  const than = previousImage === undefined ? '' : `, compared with ${previousImage}`;
  return [`  contents: ${inOneLine([summary, ...unreadable].join('; '))}${than}`];
}

function linesOf({ change, osImageStream, causes, actions, source, contents }: ExplainedUpdate): string[] {
  return [
    `  change ${change}`,
    ...streamLine(osImageStream),
    ...causes.map((cause) => {
      const who =
        cause.machineConfigs.length === 0 ? 'no MachineConfig (removed)' : cause.machineConfigs.join(', ');
      return `  ${who} -> ${cause.change} ${cause.subject} -> ${cause.rule} -> ${cause.actions}`;
    }),
    `  actions: ${actions} (from ${source})`,
    ...contentsLines(contents),
  ];
}
