import { hostname } from 'node:os';
import { Command, Option } from 'commander';
import type { Logger } from 'pino';
import { DEFAULT_NAMESPACE, SHALE_VERSION } from '../api/names.ts';
import { processConnection } from '../cluster/connection.ts';
import { createEventRecorder } from '../cluster/events.ts';
import { createApiClient } from '../cluster/http-api-client.ts';
import { leadWhenElected } from '../cluster/leader-election.ts';
import { createLogger, traceRequests } from '../cluster/log.ts';
import { type LogFlags, withLogFlags } from '../cluster/log-flags.ts';
import { untilShutDown, wholeNumber } from '../cluster/process.ts';
import type { Tracing } from '../cluster/tracing/otlp.ts';
import { startTracing } from '../cluster/tracing/start-tracing.ts';
import { goArchitecture } from '../image/manifest.ts';
import { engineParts, withEngineFlags } from './engine/engine-flags.ts';
import { enginesOf, type PodEngineFlags, withPodEngineFlags } from './engine/pod/pod-flags.ts';
import { removeLeftovers } from './engine/work-dir.ts';
import { imageTime } from './layer/build-facts.ts';
import { runBuilder } from './loop.ts';
import type { BuildMetrics } from './metrics.ts';

interface BuilderFlags extends PodEngineFlags, LogFlags {
  readonly namespace: string;
  readonly insecureRegistry: string[];
  readonly architecture: string;
  readonly parallel: number;
  readonly metricsPort: number;
  readonly baseCheckMinutes: number;
  readonly attest: boolean;
  readonly signingKeySecret?: string;
  readonly parallelEngine: number;
  readonly kubeconfig?: string;
}

const LEASE = 'machine-os-builder';

/** `shale machine-os-builder`: the process of the builder's Deployment. */
export function builderCommand(): Command {
  const command = new Command('machine-os-builder')
    .description(
      'Run the Machine OS Builder: builds the images of the pools; runs in the cluster while layering is enabled.',
    )
    .option(
      '--namespace <name>',
      'namespace that Shale runs in',
      process.env['POD_NAMESPACE'] ?? DEFAULT_NAMESPACE,
    )
    .option('--insecure-registry <host...>', 'registries (host:port) to contact over plain HTTP', [])
    .addOption(
      new Option(
        '--architecture <name>',
        'architecture of images for pools whose nodes have not reported theirs',
      ).default(goArchitecture(process.arch), "the builder's own"),
    )
    .option(
      '--base-check-minutes <count>',
      'minutes between checks for a new digest of a base image named by tag',
      wholeNumber(1),
      15,
    )
    .option(
      '--metrics-port <port>',
      'port of /metrics, /healthz and /readyz; 0 serves none of them',
      wholeNumber(0, 65_535),
      0,
    )
    .option('--parallel <count>', 'maximum number of images built at once', wholeNumber(1), 8)
    .option('--no-attest', 'attach no provenance and no list of files to images')
    .option('--signing-key-secret <name>', 'Secret whose cosign.key signs images')
    .option('--kubeconfig <file>', 'kubeconfig file, when not running in a pod of the cluster')
    .option(
      '--parallel-engine <count>',
      'maximum number of images built by a container engine at once',
      wholeNumber(1),
      2,
    );
  return withPodEngineFlags(withEngineFlags(withLogFlags(command))).action((flags: BuilderFlags) =>
    untilShutDown((signal) => run(flags, signal)),
  );
}

async function run(flags: BuilderFlags, signal: AbortSignal): Promise<void> {
  // The client library of the metrics is loaded only where they are served.
  const telemetry =
    flags.metricsPort === 0
      ? undefined
      : await (await import('./metrics.ts')).serveBuildMetrics(flags.metricsPort);
  const log = createLogger(LEASE, flags.logLevel, flags.logFormat);
  const tracing = await startTracing({ service: LEASE, log, env: process.env });
  try {
    await build(flags, { log, tracing, metrics: telemetry?.metrics }, signal);
  } finally {
    await telemetry?.close();
    await tracing.close();
  }
}

/** Where the process reports what it does. */
interface Reporting {
  readonly log: Logger;
  readonly tracing: Tracing;
  readonly metrics: BuildMetrics | undefined;
}

async function build(
  flags: BuilderFlags,
  { log, tracing, metrics }: Reporting,
  signal: AbortSignal,
): Promise<void> {
  const client = createApiClient(await processConnection(flags.kubeconfig, process.env), {
    fieldManager: 'shale-builder',
    onRequest: traceRequests(log),
  });
  const { namespace } = flags;
  await leadWhenElected({
    client,
    lease: { namespace, name: LEASE, holder: `${hostname()}-${process.pid}`, version: SHALE_VERSION },
    log,
    signal,
    lead: async (leading) => {
      await removeLeftovers(flags.engineWorkDir);
      const events = createEventRecorder(client, LEASE, log);
      return runBuilder({
        client,
        events,
        log,
        logLevel: flags.logLevel,
        metrics,
        tracer: tracing,
        signal: leading,
        ...imageOptions(flags),
        engine: engineParts(flags, enginesOf(flags, { client, log }), flags.parallelEngine),
        parallel: flags.parallel,
        baseCheckMs: flags.baseCheckMinutes * 60_000,
      });
    },
  });
}

/** What the images of all pools have in common. */
function imageOptions(flags: BuilderFlags) {
  const { namespace, insecureRegistry, architecture, attest, signingKeySecret } = flags;
  return {
    namespace,
    architecture,
    attest,
    signingKeySecret,
    version: SHALE_VERSION,
    plainHttp: new Set(insecureRegistry),
    created: imageTime(process.env),
  };
}
