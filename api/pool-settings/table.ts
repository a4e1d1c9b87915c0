import { z } from 'zod';
import { parseDuration } from '../duration.ts';
import { MachineOwner } from '../machine-owner.ts';
import { ObjectName } from '../object.ts';
import { asCount, asFlag, asJson, asLines, asNames, asSeconds, asText } from './former-texts.ts';
import {
  type AlertHold,
  Duration,
  ETCD_PODS,
  FailureDomainLimits,
  FleetLockField,
  type FleetLockSetting,
  HookNames,
  HostPath,
  type MaintenanceWindow,
  MaintenanceWindows,
  NodeCount,
  ONLY_CANARY,
  type PodsSelected,
  type QueryHold,
  QuestionTexts,
  QuorumPods,
  readAlerts,
  readFleetLock,
  readHostPath,
  readQueries,
  readQuorumPods,
  readWaves,
  readWindows,
  UpdateHolds,
  type Wave,
  Waves,
} from './values.ts';

/** A setting that an admin makes for one pool: a field of `spec.shale`. */
interface Setting<Field extends z.ZodType, Value> {
  /** Of the field, without what it means. */
  readonly schema: Field;
  /** For `kubectl explain` and the reference: what it does, in plain text. */
  readonly meaning: string;
  /** What applies without it, as a clause. */
  readonly absent: string;
  /** The same as a value. The operator has its own for some. */
  readonly unset: Value;
  /** @throws Error for what the schema admits and can't be read. */
  readonly read: (field: z.infer<Field>) => Value;
  /**
   * What applies where it can't be read: what disrupts least; without a value what applies without the setting.
   * `closes`: nothing is safe, so no update starts.
   */
  readonly unreadable: { readonly value?: Value; readonly so: string; readonly closes?: true };
  /** The annotation of earlier versions, which is read for one more version, and what its text is as the field. */
  readonly former?: { readonly annotation: string; readonly as: (text: string) => unknown };
}

function setting<Field extends z.ZodType, Value>(row: Setting<Field, Value>): Setting<Field, Value> {
  return row;
}

/** Off unless somebody sets it. */
function flag(
  row: Pick<Setting<z.ZodBoolean, boolean>, 'meaning' | 'absent'> & {
    readonly so: string;
    readonly annotation: string;
  },
): Setting<z.ZodBoolean, boolean> {
  const { meaning, absent, so, annotation } = row;
  return {
    schema: z.boolean({ error: 'true or false' }),
    meaning,
    absent,
    unset: false,
    read: (field) => field,
    unreadable: { value: false, so },
    former: { annotation, as: asFlag },
  };
}

/** Names of which each counts once. One that can't be read may be the one that matters, so nothing starts. */
function names<Field extends z.ZodType<readonly string[]>>(
  row: Pick<Setting<Field, readonly string[]>, 'schema' | 'meaning' | 'absent'> & {
    readonly annotation: string;
  },
): Setting<Field, readonly string[]> {
  const { schema, meaning, absent, annotation } = row;
  return {
    schema,
    meaning,
    absent,
    unset: [],
    read: (field) => [...new Set(field)],
    unreadable: { value: [], so: NOTHING_STARTS, closes: true },
    former: { annotation, as: asNames },
  };
}

/** How many failed nodes stop a rollout. */
export interface FailureThreshold {
  /** Before a node has proven the target. */
  readonly unproven: number;
  readonly proven: number;
}

const NOTHING_STARTS = 'no update starts';

/**
 * The settings of a pool. The schema of `spec.shale`, what reads it (read-settings.ts), what knows the annotations and
 * docs/reference/kinds/machineconfigpool.md all come from here: a new setting is one row.
 */
export const poolSettingsTable = {
  maintenanceWindows: setting<typeof MaintenanceWindows, readonly MaintenanceWindow[] | undefined>({
    schema: MaintenanceWindows,
    meaning: 'When updates may start. What has started is finished outside of the windows, too.',
    absent: 'updates start at any time',
    unset: undefined,
    read: readWindows,
    unreadable: { value: [], so: 'no window opens' },
    former: { annotation: 'shale.dev/maintenance-windows', as: asJson },
  }),
  liveOutsideWindows: flag({
    meaning: 'Updates that neither drain nor reboot also start outside the maintenance windows.',
    absent: 'they wait for a window, too',
    so: 'live updates wait for a window too',
    annotation: 'shale.dev/live-outside-windows',
  }),
  waves: setting<typeof Waves, readonly Wave[]>({
    schema: Waves,
    meaning:
      "Parts of a rollout: once the nodes of a wave run the target, no further node starts until they have run it for the wave's time to bake. Rollbacks don't wait.",
    absent: 'no node waits for others to bake',
    unset: [],
    read: readWaves,
    unreadable: { value: ONLY_CANARY, so: 'no node follows the first one' },
    former: { annotation: 'shale.dev/waves', as: asJson },
  }),
  dependsOn: names({
    schema: z.array(ObjectName).max(50),
    meaning:
      "Names of pools: no node of this pool starts an update until each of them is Updated and has baked. Rollbacks don't wait.",
    absent: 'the pool waits for no other',
    annotation: 'shale.dev/depends-on',
  }),
  holdOnAlerts: setting<typeof QuestionTexts, AlertHold>({
    schema: QuestionTexts,
    meaning:
      'Sets of matchers of Alertmanager, each such as severity="critical", team="storage": while an alert that meets all matchers of a set is active, neither silenced nor inhibited, no node of the pool starts an update. Needs --alertmanager-url of the operator. Rollbacks don\'t wait.',
    absent: 'no alert holds updates',
    unset: { kind: 'none' },
    read: readAlerts,
    unreadable: { value: { kind: 'unreadable' }, so: 'updates wait as if an alert were firing' },
    former: { annotation: 'shale.dev/hold-on-alerts', as: asLines },
  }),
  holdOnQueries: setting<typeof QuestionTexts, QueryHold>({
    schema: QuestionTexts,
    meaning:
      "Queries of PromQL: while one has a result, as an alerting rule has when it fires, no node of the pool starts an update. Needs --prometheus-url of the operator. Rollbacks don't wait.",
    absent: 'no query holds updates',
    unset: { kind: 'none' },
    read: readQueries,
    unreadable: { value: { kind: 'unreadable' }, so: 'updates wait as if a query had a result' },
    former: { annotation: 'shale.dev/hold-on-queries', as: asLines },
  }),
  holds: setting<typeof UpdateHolds, z.infer<typeof UpdateHolds>>({
    schema: UpdateHolds,
    meaning: "What an update must not bring: nodes whose update brings it wait. Rollbacks don't wait.",
    absent: 'nothing that an update brings holds it',
    unset: {},
    read: (holds) => holds,
    unreadable: { so: NOTHING_STARTS, closes: true },
  }),
  failureDomains: setting<typeof FailureDomainLimits, z.infer<typeof FailureDomainLimits> | undefined>({
    schema: FailureDomainLimits,
    meaning:
      'Limits how many nodes of a failure domain, such as a rack or a zone, are unavailable at once, in addition to maxUnavailable of the pool. Nodes that are unavailable for whatever reason count.',
    absent: 'maxUnavailable of the pool alone applies',
    unset: undefined,
    read: (domains) => domains,
    unreadable: { so: NOTHING_STARTS, closes: true },
  }),
  quorumPods: setting<typeof QuorumPods, readonly PodsSelected[]>({
    schema: QuorumPods,
    meaning:
      'Pods that vote: a node of the pool that runs one is drained or rebooted only while a majority of all of them is Ready without it.',
    absent: 'they are the static pods of etcd',
    unset: ETCD_PODS,
    read: readQuorumPods,
    unreadable: { value: ETCD_PODS, so: NOTHING_STARTS, closes: true },
  }),
  fleetLock: setting<typeof FleetLockField, FleetLockSetting>({
    schema: FleetLockField,
    meaning:
      'A lock service that speaks the FleetLock protocol: each node of the pool takes a slot of it before Shale reboots it, for a rollback, too, and gives it back once it serves again. Needs --fleetlock-url of the operator.',
    absent: 'no lock service is asked',
    unset: { kind: 'none' },
    read: readFleetLock,
    unreadable: { value: { kind: 'unreadable' }, so: 'no node reboots' },
  }),
  drivenBy: setting<typeof MachineOwner, MachineOwner | undefined>({
    schema: MachineOwner,
    meaning:
      "The owner of the pool's Machines in Cluster API, which decides which nodes are updated and when: a node gets a grant only while the owner has handed its Machine over (shale.dev/cluster-api-update on the MachineConfigNode), also for a rollback. maxUnavailable, canaries, soak and waves don't limit nodes that were handed over. New nodes don't wait.",
    absent: 'Shale decides',
    unset: undefined,
    read: (owner) => owner,
    unreadable: { so: NOTHING_STARTS, closes: true },
  }),
  hooksBefore: names({
    schema: HookNames,
    meaning:
      'Names of hooks: the operator requests them on each node of the pool that it has cordoned, and drains the node once other controllers have cleared all of them.',
    absent: 'nodes are drained at once',
    annotation: 'shale.dev/hooks-before',
  }),
  hooksAfter: names({
    schema: HookNames,
    meaning:
      'Names of hooks: the operator requests them on each node that was drained or rebooted and runs its target, and uncordons the node once all of them are cleared.',
    absent: 'nodes are uncordoned at once',
    annotation: 'shale.dev/hooks-after',
  }),
  soak: setting<typeof Duration, number>({
    schema: Duration,
    meaning: 'How long a live update must stay healthy before further nodes are updated.',
    absent: "the operator's --soak-seconds apply, 0 by default",
    unset: 0,
    read: parseDuration,
    unreadable: { value: Number.POSITIVE_INFINITY, so: 'live updates go one node at a time' },
    former: { annotation: 'shale.dev/soak-seconds', as: asSeconds },
  }),
  failureThreshold: setting({
    schema: z.object({
      canary: z.int().min(1).describe('Before the first node has succeeded.'),
      after: z.int().min(1).describe('After that.'),
    }),
    meaning: 'Number of failed nodes that stops a rollout.',
    absent: "the operator's own apply, by default 1 and 2",
    unset: { unproven: 1, proven: 2 },
    read: ({ canary, after }): FailureThreshold => ({ unproven: canary, proven: after }),
    unreadable: { value: { unproven: 1, proven: 1 }, so: 'one failed node stops a rollout' },
    former: { annotation: 'shale.dev/failure-threshold', as: asJson },
  }),
  unhealthyAfter: setting<typeof Duration, number>({
    schema: Duration,
    meaning: 'How long a node may be down after its update before it counts as failed.',
    absent: "the operator's --unhealthy-after-seconds apply, 10 minutes by default",
    unset: 600_000,
    read: parseDuration,
    // No time at all would take every reboot for a failure.
    unreadable: { so: "the operator's own setting applies" },
    former: { annotation: 'shale.dev/unhealthy-after-seconds', as: asSeconds },
  }),
  autoRollback: flag({
    meaning: "A rollout that was stopped by failed nodes rolls back to the pool's previous target, once.",
    absent: 'it stays where it stopped',
    so: 'nothing is rolled back automatically',
    annotation: 'shale.dev/auto-rollback',
  }),
  rebootPolicy: setting({
    schema: z.enum(['Automatic', 'AtNextReboot']),
    meaning:
      'AtNextReboot: a layered image that needs a reboot is made the next boot of nodes, and applies when somebody else reboots them; Shale neither drains nor reboots them for it. Automatic: Shale drains and reboots.',
    absent: 'Automatic applies',
    unset: 'Automatic',
    read: (policy) => policy,
    unreadable: { value: 'AtNextReboot', so: 'Shale reboots no node' },
    former: { annotation: 'shale.dev/reboot-policy', as: asText },
  }),
  maxArmed: setting<typeof NodeCount, number | string | undefined>({
    schema: NodeCount,
    meaning:
      'With rebootPolicy AtNextReboot: number or percentage of the nodes of the pool that may have their target as the next boot at the same time, those included that are unavailable.',
    absent: 'maxUnavailable applies',
    unset: undefined,
    read: (count) => count,
    unreadable: { value: 1, so: 'one node is armed at a time' },
    former: { annotation: 'shale.dev/max-armed', as: asCount },
  }),
  rebootSentinel: setting<typeof HostPath, string | undefined>({
    schema: HostPath,
    meaning:
      'A file on the host, such as /var/run/reboot-required of Debian and Ubuntu: a node on which it has appeared since it booted is rebooted as by an update.',
    absent: 'no file requests a reboot',
    unset: undefined,
    read: readHostPath,
    unreadable: { so: 'no file on a node requests a reboot' },
  }),
  softReboot: flag({
    meaning:
      'If the node can soft-reboot into the target (bootc, plain ostree), nodes that need a reboot restart their userspace and keep the kernel running.',
    absent: 'every reboot is a full one',
    so: 'every reboot is a full reboot',
    annotation: 'shale.dev/soft-reboot',
  }),
  prefetch: flag({
    meaning:
      'While the pool is paused, its nodes stage the target ahead, with the OS image of a layered pool. No node is drained, rebooted or changed before the pool is resumed.',
    absent: 'nothing is staged while the pool is paused',
    so: 'nothing is staged while the pool is paused',
    annotation: 'shale.dev/prefetch',
  }),
  updateCordoned: flag({
    meaning: 'Nodes that somebody else cordoned are drained and rebooted like others.',
    absent: 'Shale leaves them alone until they are uncordoned',
    so: 'nodes that others cordoned are left alone',
    annotation: 'shale.dev/update-cordoned',
  }),
  containerRuntime: setting<
    z.ZodEnum<{ 'cri-o': 'cri-o'; containerd: 'containerd' }>,
    'cri-o' | 'containerd' | 'unreadable' | undefined
  >({
    schema: z.enum(['cri-o', 'containerd']),
    meaning:
      'The container runtime that ContainerRuntimeConfigs are rendered for and that pulls pinned images.',
    absent: 'it is what all nodes of the pool report',
    unset: undefined,
    read: (runtime) => runtime,
    unreadable: { value: 'unreadable', so: 'nothing is rendered for the container runtime' },
    former: { annotation: 'shale.dev/container-runtime', as: asText },
  }),
} as const;

type Table = typeof poolSettingsTable;
export type SettingName = keyof Table;
/** What each setting means, by the name of its field. */
export type SettingValues = { readonly [Name in SettingName]: ReturnType<Table[Name]['read']> };
/** The settings as `spec.shale` has them. */
export type SettingFields = { readonly [Name in SettingName]?: z.infer<Table[Name]['schema']> };

export const settingNames = Object.keys(poolSettingsTable) as readonly SettingName[];

/** The schema of `spec.shale`. It has no defaults: a field that the API server fills in would hide the annotation. */
export const PoolSettingsFields = z.object(
  Object.fromEntries(
    Object.entries(poolSettingsTable).map(([name, { schema, meaning, absent }]) => [
      name,
      (schema as z.ZodType).exactOptional().describe(`${meaning} Absent: ${absent}.`),
    ]),
  ),
) as unknown as z.ZodType<SettingFields>;
