import { type Command, Option } from 'commander';
import { DEFAULT_LEASE_NAMESPACE, DEFAULT_NAMESPACE } from '../api/names.ts';
import { present } from '../api/present.ts';
import { wholeNumber } from '../cluster/process.ts';
import type { BuilderSurroundings } from '../opt-in/builder-deployment.ts';
import { defaultRolloutOptions, type RolloutOptions } from '../rollout/options.ts';
import { type LimitFlags, limitsOf, withLimitFlags } from './limit-flags.ts';

export interface OperatorFlags extends LimitFlags {
  readonly namespace: string;
  readonly leaseNamespace: string;
  readonly containerRuntimeUnit: string;
  readonly nodeUser: string;
  readonly insecureRegistry: string[];
  readonly attest: boolean;
  readonly signingKeySecret?: string;
  readonly engine?: string;
  readonly engineTlsDir?: string;
  readonly engineImage: string;
  readonly keepImages: number;
  readonly builderMetricsPort: number;
  readonly metricsPort: number;
  readonly pagePort: number;
  readonly pageTlsDir?: string;
  readonly nodeName?: string;
  readonly stagingLimit: number;
  readonly drainGraceSeconds?: number;
  readonly drainReportMinutes: number;
  readonly drainKeepUnmanaged: boolean;
  readonly drainKeepEmptyDir: boolean;
  readonly image?: string;
  readonly kubeconfig?: string;
  readonly logLevel: string;
}

/** Value of `--engine` that means a Podman beside the builder. */
const PODMAN_SIDECAR = 'podman-sidecar';
/** Podman's own image, which is made for running it in a container without privileges. */
const PODMAN_IMAGE = 'quay.io/podman/stable:v5';

/** @returns the command with every flag of the operator. */
export function withOperatorFlags(command: Command): Command {
  const { drain } = defaultRolloutOptions;
  const withFlags = command
    .option('--namespace <name>', 'where Shale runs', process.env['POD_NAMESPACE'] ?? DEFAULT_NAMESPACE)
    .option('--lease-namespace <name>', 'namespace of the node leases', DEFAULT_LEASE_NAMESPACE)
    .option(
      '--container-runtime-unit <name>',
      'the unit that default policies mean by the container runtime',
      defaultRolloutOptions.containerRuntimeUnit,
    )
    .option(
      '--node-user <name>',
      'the user whose SSH keys and password MachineConfigs may change',
      defaultRolloutOptions.nodeUser,
    )
    .option('--insecure-registry <host...>', 'registries (host:port) to contact over plain HTTP', [])
    .option('--no-attest', 'attach no provenance and no list of files to images')
    .option('--signing-key-secret <name>', 'the Secret whose cosign.key signs images')
    .option(
      '--engine <what>',
      'container engine of the builder, for what needs commands to run in an image: podman-sidecar, or the address of one; without it such images are refused',
    )
    .option(
      '--engine-tls-dir <dir>',
      "in the builder's pod: ca.pem, cert.pem and key.pem of an engine on TCP",
    )
    .option('--engine-image <pullspec>', 'image of the podman sidecar', PODMAN_IMAGE)
    .option(
      '--builder-metrics-port <port>',
      "where the builder's pod has /metrics, /healthz and /readyz; 0: nowhere",
      wholeNumber(0, 65_535),
      0,
    )
    .option(
      '--metrics-port <port>',
      'where this process has /metrics, /healthz and /readyz; 0: nowhere',
      wholeNumber(0, 65_535),
      0,
    )
    .option(
      '--page-port <port>',
      'where this process serves the live page, on loopback unless --page-tls-dir is set; 0: nowhere',
      wholeNumber(0, 65_535),
      0,
    )
    .option('--page-tls-dir <dir>', 'tls.crt and tls.key of the live page, for every address of the pod')
    .addOption(
      new Option('--node-name <name>', 'the node it runs on, which is updated last of the control plane').env(
        'NODE_NAME',
      ),
    )
    .option(
      '--staging-limit <count>',
      'nodes of a pool that may bring an update to their disks at once',
      wholeNumber(1),
      defaultRolloutOptions.stagingLimit,
    )
    .option(
      '--drain-grace-seconds <seconds>',
      "time that drained pods have to end; without it each pod's own",
      wholeNumber(0),
    )
    .option(
      '--drain-report-minutes <minutes>',
      'a drain that takes longer makes its pool Degraded and is told in an event',
      wholeNumber(1),
      drain.reportAfterSeconds / 60,
    )
    .option(
      '--drain-keep-unmanaged',
      'let pods without a controller block a drain, in place of evicting them',
      false,
    )
    .option(
      '--drain-keep-empty-dir',
      'let pods with emptyDir volumes block a drain, in place of evicting them',
      false,
    )
    .option(
      '--keep-images <count>',
      'images that a pool keeps beyond those in use, to go back to',
      wholeNumber(0),
      3,
    )
    .option(
      '--image <pullspec>',
      "Shale's image, for the builder; by default the one of this process's own pod",
    )
    .option('--kubeconfig <file>', 'the cluster, where this is not one of its pods')
    .option('--log-level <level>', "pino's: debug, info, warn, error", 'info');
  return withLimitFlags(withFlags);
}

/** @returns what the flags set about rollouts, and the defaults for what they don't set. */
export function rolloutOptions(flags: OperatorFlags): RolloutOptions {
  const { drain } = defaultRolloutOptions;
  return {
    ...defaultRolloutOptions,
    namespace: flags.namespace,
    leaseNamespace: flags.leaseNamespace,
    containerRuntimeUnit: flags.containerRuntimeUnit,
    nodeUser: flags.nodeUser,
    limits: limitsOf(flags),
    stagingLimit: flags.stagingLimit,
    ...(flags.nodeName === undefined ? {} : { operatorNode: flags.nodeName }),
    drain: {
      ...drain,
      reportAfterSeconds: flags.drainReportMinutes * 60,
      evictUnmanagedPods: !flags.drainKeepUnmanaged,
      evictEmptyDirPods: !flags.drainKeepEmptyDir,
      ...(flags.drainGraceSeconds === undefined ? {} : { gracePeriodSeconds: flags.drainGraceSeconds }),
    },
  };
}

type BuilderFlags = Pick<
  OperatorFlags,
  'insecureRegistry' | 'attest' | 'signingKeySecret' | 'engine' | 'engineTlsDir' | 'builderMetricsPort'
>;

/** What the operator was told about images is for the builder to do. */
export function builderArguments({
  insecureRegistry,
  attest,
  signingKeySecret,
  engine,
  engineTlsDir,
  builderMetricsPort,
}: BuilderFlags): readonly string[] {
  return [
    ...(insecureRegistry.length === 0 ? [] : ['--insecure-registry', ...insecureRegistry]),
    ...(attest ? [] : ['--no-attest']),
    ...(signingKeySecret === undefined ? [] : ['--signing-key-secret', signingKeySecret]),
    ...(engine === undefined || engine === PODMAN_SIDECAR ? [] : ['--engine', engine]),
    ...(builderMetricsPort === 0 ? [] : ['--metrics-port', String(builderMetricsPort)]),
    ...(engineTlsDir === undefined ? [] : ['--engine-tls-dir', engineTlsDir]),
  ];
}

/** @returns what runs around the builder's container: Podman beside it, and the port that is probed. */
export function builderSurroundings({
  engine,
  engineImage,
  builderMetricsPort,
}: Pick<OperatorFlags, 'engine' | 'engineImage' | 'builderMetricsPort'>): BuilderSurroundings {
  return present({
    podmanImage: engine === PODMAN_SIDECAR ? engineImage : undefined,
    metricsPort: builderMetricsPort === 0 ? undefined : builderMetricsPort,
  });
}
