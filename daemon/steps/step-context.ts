import type { Logger } from 'pino';
import type { NormalReason, WarningReason } from '../../api/events.ts';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import type { CertificateName } from '../../api/node-certificates.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import type { EventRecorder } from '../../cluster/events.ts';
import type { Tracer } from '../../cluster/tracing/span.ts';
import type { DriftWatch } from '../content/drift/drift-watch.ts';
import type { CertificatePaths } from '../host/certificates/certificate-files.ts';
import type { NodePorts } from '../host/host.ts';
import type { HolderChannel } from '../host/while-free.ts';
import type { Journal } from '../records/journal.ts';
import type { ActionLimits } from './act-on-services.ts';
import type { HealthLimits } from './health.ts';
import type { NodeMetrics } from './node-metrics.ts';
import type { NodeReport, Phase } from './phase.ts';
import { stateOf } from './phase.ts';
import type { Observation, Withheld } from './step.ts';
import type { PreparedUpdate } from './update.ts';

/** The node's own MachineConfigNode, as far as a step has to do with it. */
export interface StatusChannel extends HolderChannel {
  /** The object as it is last known; undefined while the operator has not created it. */
  readonly object: MachineConfigNode | undefined;
  /** @throws ApiError */
  publish(report: NodeReport, signal: AbortSignal): Promise<void>;
}

/** What the daemon was started with. */
export interface StepSettings {
  readonly nodeName: string;
  /** Where the objects lie that hold certificates and the pull secret. */
  readonly namespace: string;
  readonly leaseNamespace: string;
  readonly certificatePaths: CertificatePaths;
  readonly actionLimits: ActionLimits;
  readonly healthLimits: HealthLimits;
  /** ms that a soft reboot has to take place before it becomes a full one. */
  readonly softRebootLimitMs: number;
}

/** Where the daemon reports what it does, beside the node's status. */
export interface StepTelemetry {
  readonly events: EventRecorder;
  readonly log: Logger;
  readonly tracer: Tracer;
  readonly metrics: NodeMetrics;
}

/** What steps are taken with. */
export interface StepContext {
  readonly settings: StepSettings;
  readonly ports: NodePorts;
  readonly journal: Journal;
  readonly client: ApiClient;
  readonly channel: StatusChannel;
  readonly driftWatch: DriftWatch;
  readonly memory: Memory;
  readonly telemetry: StepTelemetry;
  readonly signal: AbortSignal;
}

/** Whether to look again at once, or when the spec has changed or the time is over. */
export type StepOutcome = { readonly kind: 'again' } | { readonly kind: 'wait'; readonly ms: number };

export const again: StepOutcome = { kind: 'again' };

/** Reports the phase of the node. @throws ApiError */
export async function publish(context: StepContext, observation: Observation, phase: Phase): Promise<void> {
  const { osBackend } = observation;
  const { log, metrics } = context.telemetry;
  metrics.is(...stateOf(phase));
  metrics.backend(osBackend.name);
  if (osBackend.versionUnknown !== undefined) {
    log.warn({ reason: osBackend.versionUnknown }, 'the version of the OS tool is not known');
  }
  const { imagePolicy, withheld } = context.memory;
  await context.channel.publish({ ...observation, phase, imagePolicy, withheld }, context.signal);
}

/** As publish, for what is worth reporting but must not stop an update. */
export async function tryPublish(
  context: StepContext,
  observation: Observation,
  phase: Phase,
): Promise<void> {
  await publish(context, observation, phase).catch((error: unknown) =>
    context.telemetry.log.warn({ err: error }, 'Could not write the status'),
  );
}

/** An event for what an admin looks for, and a line in the log. */
export function recordEvent(
  { channel, telemetry }: StepContext,
  reason: NormalReason,
  message: string,
): void {
  const { events, log } = telemetry;
  log.info({ reason }, message);
  if (channel.object !== undefined) events.normal(channel.object, reason, message);
}

/** As recordEvent, for what went wrong. */
export function recordWarning(
  { channel, telemetry }: StepContext,
  reason: WarningReason,
  message: string,
): void {
  const { events, log } = telemetry;
  log.warn({ reason }, message);
  if (channel.object !== undefined) events.warning(channel.object, reason, message);
}

/** What the daemon keeps between two looks; a restart may lose it. */
export interface Memory {
  prepared: PreparedUpdate | undefined;
  /** Certificates that could not be applied. */
  readonly withheld: Map<CertificateName, Withheld>;
  /** What the next boot was last seen to be right for. */
  settledFor: string | undefined;
  /** The boot whose required health checks have all passed. */
  checkedBoot: string | undefined;
  /** What the host's own tools do with the pool's images; undefined until it was looked at. */
  imagePolicy: NodeReport['imagePolicy'];
  /** How the disk was last seen to differ from the config, as text. */
  drift: string | undefined;
  /** Requests that were reported as invalid, by their annotation. */
  readonly invalidRequests: Map<string, string>;
}

/** Nothing but a change of the spec is waited for; the look in between is for what changes without telling. */
export const untilChanged: StepOutcome = { kind: 'wait', ms: 600_000 };
