import { type Command, InvalidArgumentError, Option } from 'commander';
import { errorMessage } from '../api/error-message.ts';
import { DEFAULT_LEASE_NAMESPACE, DEFAULT_NAMESPACE } from '../api/names.ts';
import { readFleetLockUrl } from '../api/pool-settings/values.ts';
import { type LogFlags, withLogFlags } from '../cluster/log-flags.ts';
import { wholeNumber } from '../cluster/process.ts';
import { StartupError } from '../cluster/startup-error.ts';
import { type FleetLockServers, fleetLockServers } from '../rollout/fleet-lock/servers.ts';
import { type LimitFlags, limitsOf, withLimitFlags } from '../rollout/limit-flags.ts';
import { alertmanager, prometheus } from '../rollout/monitoring/endpoints.ts';
import type { Monitoring } from '../rollout/monitoring/lookup.ts';
import { defaultRolloutOptions, type RolloutOptions } from '../rollout/options.ts';
import { type BuilderFlags, withBuilderFlags } from './builder-flags.ts';

export interface OperatorFlags extends LimitFlags, BuilderFlags, LogFlags {
  readonly namespace: string;
  readonly leaseNamespace: string;
  readonly containerRuntimeUnit: string;
  readonly createMachineConfiguration: boolean;
  readonly nodeUser: string;
  readonly keepImages: number;
  readonly metricsPort: number;
  /** Moved to `shale page`, as are the two below ({@link movedFlags}). */
  readonly pagePort?: string;
  readonly pageTlsDir?: string;
  readonly clusterName?: string;
  readonly nodeName?: string;
  readonly stagingLimit: number;
  readonly drainGraceSeconds?: number;
  readonly newNodeReportMinutes: number;
  readonly hookReportMinutes: number;
  readonly alertmanagerUrl?: URL;
  readonly alertmanagerTokenFile?: string;
  readonly alertmanagerCaFile?: string;
  readonly prometheusUrl?: URL;
  readonly prometheusTokenFile?: string;
  readonly prometheusCaFile?: string;
  readonly fleetlockUrl: readonly string[];
  readonly fleetlockTokenFile?: string;
  readonly fleetlockCaFile?: string;
  readonly notifyUrl?: string;
  readonly notifySource: string;
  readonly drainReportMinutes: number;
  readonly drainKeepUnmanaged: boolean;
  readonly drainKeepEmptyDir: boolean;
  readonly image?: string;
  readonly kubeconfig?: string;
}

/** @returns the command with every flag of the operator. */
export function withOperatorFlags(command: Command): Command {
  const groups = [
    withProcessFlags,
    withLogFlags,
    withRolloutFlags,
    withDrainFlags,
    withMonitoringFlags,
    withBuilderFlags,
    withLimitFlags,
  ];
  return groups.reduce((grown, add) => add(grown), command);
}

/** Not an error: an operator that is updated with the arguments that it had must start. */
const MOVED = 'ignored: a flag of the live page, which is a process of its own (shale page)';

/** @returns the flags that were set and that `shale page` has instead. */
export function movedFlags({ pagePort, pageTlsDir, clusterName }: OperatorFlags): string[] {
  const flags = { '--page-port': pagePort, '--page-tls-dir': pageTlsDir, '--cluster-name': clusterName };
  return Object.entries(flags).flatMap(([flag, value]) => (value === undefined ? [] : [flag]));
}

function withProcessFlags(command: Command): Command {
  return command
    .option('--namespace <name>', 'where Shale runs', process.env['POD_NAMESPACE'] ?? DEFAULT_NAMESPACE)
    .option('--image <pullspec>', "Shale image for the builder; default: the image of the operator's own pod")
    .option('--kubeconfig <file>', 'kubeconfig of the cluster, for an operator outside of it')
    .option(
      '--metrics-port <port>',
      'port for /metrics, /healthz and /readyz; 0 disables it',
      wholeNumber(0, 65_535),
      0,
    )
    .addOption(new Option('--page-port <port>', MOVED).hideHelp())
    .addOption(new Option('--page-tls-dir <dir>', MOVED).hideHelp())
    .addOption(new Option('--cluster-name <name>', MOVED).hideHelp());
}

function withRolloutFlags(command: Command): Command {
  return command
    .option('--lease-namespace <name>', 'namespace of the node leases', DEFAULT_LEASE_NAMESPACE)
    .option(
      '--container-runtime-unit <name>',
      'systemd unit of the container runtime, to which the default policies apply',
      defaultRolloutOptions.hosts.containerRuntimeUnit,
    )
    .option(
      '--no-create-machine-configuration',
      'do not create the MachineConfiguration cluster if it is missing: Helm or another tool creates it, and images wait for it',
    )
    .option(
      '--node-user <name>',
      'user whose SSH keys and password MachineConfigs may change',
      defaultRolloutOptions.hosts.nodeUser,
    )
    .addOption(
      new Option(
        '--node-name <name>',
        'node that the operator runs on; it is updated last of the control plane',
      ).env('NODE_NAME'),
    )
    .option(
      '--staging-limit <count>',
      'number of nodes of a pool that may stage an update at the same time',
      wholeNumber(1),
      defaultRolloutOptions.pace.stagingLimit,
    )
    .option(
      '--new-node-report-minutes <minutes>',
      'a node that has its startup taint for longer is reported in an event, a condition and a metric',
      wholeNumber(1),
      defaultRolloutOptions.reports.newNodeAfterSeconds / 60,
    )
    .option(
      '--hook-report-minutes <minutes>',
      'hooks of a node that are not cleared after that time are reported in an event and make its pool Degraded',
      wholeNumber(1),
      defaultRolloutOptions.reports.hookAfterSeconds / 60,
    )
    .option(
      '--keep-images <count>',
      'number of images that a pool keeps for rollbacks, beyond those in use',
      wholeNumber(0),
      3,
    );
}

function withDrainFlags(command: Command): Command {
  const { drain } = defaultRolloutOptions;
  return command
    .option(
      '--drain-grace-seconds <seconds>',
      "termination grace period of drained pods; default: each pod's own",
      wholeNumber(0),
    )
    .option(
      '--drain-report-minutes <minutes>',
      'a drain that takes longer is reported in an event and makes its pool Degraded',
      wholeNumber(1),
      drain.reportAfterSeconds / 60,
    )
    .option(
      '--drain-keep-unmanaged',
      'let pods without a controller block a drain instead of evicting them',
      false,
    )
    .option(
      '--drain-keep-empty-dir',
      'let pods with emptyDir volumes block a drain instead of evicting them',
      false,
    );
}

function withMonitoringFlags(command: Command): Command {
  return command
    .option(
      '--alertmanager-url <url>',
      'root of an Alertmanager, for pools that alerts hold back (spec.shale.holdOnAlerts)',
      httpUrl,
    )
    .option('--alertmanager-token-file <file>', 'file with a bearer token for --alertmanager-url')
    .option(
      '--alertmanager-ca-file <file>',
      "file with the certificates to trust for --alertmanager-url; default: the system's",
    )
    .option(
      '--prometheus-url <url>',
      'root of a Prometheus, for pools that queries hold back (spec.shale.holdOnQueries)',
      httpUrl,
    )
    .option('--prometheus-token-file <file>', 'file with a bearer token for --prometheus-url')
    .option(
      '--prometheus-ca-file <file>',
      "file with the certificates to trust for --prometheus-url; default: the system's",
    )
    .option(
      '--fleetlock-url <url...>',
      'base URLs of the lock services (FleetLock) that pools may name (spec.shale.fleetLock)',
      fleetLockUrls,
      [],
    )
    .option('--fleetlock-token-file <file>', 'file with a bearer token for --fleetlock-url')
    .option(
      '--fleetlock-ca-file <file>',
      "file with the certificates to trust for --fleetlock-url; default: the system's",
    )
    .addOption(
      new Option('--notify-url <url>', "receiver of the operator's events as CloudEvents").env(
        'SHALE_NOTIFY_URL',
      ),
    )
    .option(
      '--notify-source <uri>',
      'attribute source of these CloudEvents, which tells this cluster from others',
      '/shale',
    );
}

/** @returns what the flags set about rollouts, and the defaults for what they don't set. */
export function rolloutOptions(flags: OperatorFlags): RolloutOptions {
  const { leases, rendering, pace, drain } = defaultRolloutOptions;
  return {
    namespace: flags.namespace,
    leases: { ...leases, namespace: flags.leaseNamespace },
    rendering: { ...rendering, limits: limitsOf(flags) },
    hosts: { nodeUser: flags.nodeUser, containerRuntimeUnit: flags.containerRuntimeUnit },
    createsMachineConfiguration: flags.createMachineConfiguration,
    pace: { ...pace, stagingLimit: flags.stagingLimit, operatorNode: flags.nodeName },
    reports: {
      newNodeAfterSeconds: flags.newNodeReportMinutes * 60,
      hookAfterSeconds: flags.hookReportMinutes * 60,
    },
    drain: {
      ...drain,
      reportAfterSeconds: flags.drainReportMinutes * 60,
      evictUnmanagedPods: !flags.drainKeepUnmanaged,
      evictEmptyDirPods: !flags.drainKeepEmptyDir,
      gracePeriodSeconds: flags.drainGraceSeconds,
    },
  };
}

/** @returns whom to ask for alerts and queries. */
export function monitoringOf(flags: OperatorFlags): Monitoring {
  const { alertmanagerUrl, alertmanagerTokenFile, alertmanagerCaFile } = flags;
  const { prometheusUrl, prometheusTokenFile, prometheusCaFile } = flags;
  return {
    ...(alertmanagerUrl === undefined
      ? {}
      : {
          askAlerts: alertmanager({
            url: alertmanagerUrl,
            tokenFile: alertmanagerTokenFile,
            caFile: alertmanagerCaFile,
          }),
        }),
    ...(prometheusUrl === undefined
      ? {}
      : {
          askQueries: prometheus({
            url: prometheusUrl,
            tokenFile: prometheusTokenFile,
            caFile: prometheusCaFile,
          }),
        }),
  };
}

/** @returns the lock services that pools may name. */
export function fleetLockOf({
  fleetlockUrl,
  fleetlockTokenFile,
  fleetlockCaFile,
}: Pick<OperatorFlags, 'fleetlockUrl' | 'fleetlockTokenFile' | 'fleetlockCaFile'>): FleetLockServers {
  const files = { tokenFile: fleetlockTokenFile, caFile: fleetlockCaFile };
  return fleetLockServers(fleetlockUrl, files);
}

/**
 * @returns where events go; undefined without a receiver.
 * @throws {StartupError} without the URL, which may contain a token: commander would print it.
 */
export function receiverOf({ notifyUrl }: Pick<OperatorFlags, 'notifyUrl'>): URL | undefined {
  if (notifyUrl === undefined) return undefined;
  const url = URL.canParse(notifyUrl) ? new URL(notifyUrl) : undefined;
  if (url !== undefined && /^https?:$/.test(url.protocol)) return url;
  throw new StartupError('refused', '--notify-url or SHALE_NOTIFY_URL must be an http or https URL');
}

/** @throws InvalidArgumentError that says what would be right. */
function fleetLockUrls(value: string, before: readonly string[]): readonly string[] {
  try {
    return [...before, readFleetLockUrl(value)];
  } catch (error) {
    throw new InvalidArgumentError(errorMessage(error));
  }
}

function httpUrl(value: string): URL {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== '' || url.search !== '')
    throw new InvalidArgumentError('Expected an http or https URL without credentials and without a query');
  return url;
}
