import type { Logger } from 'pino';
import type { NormalReason, WarningReason } from '../../api/events.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import type { EventRecorder } from '../../cluster/events.ts';
import type { Tracer } from '../../cluster/tracing/span.ts';
import type { NodePorts } from '../host/node-ports.ts';
import type { NodeChannel } from '../node-channel.ts';
import type { Memory, Observation } from '../observe.ts';
import type { Journal } from '../records/journal.ts';
import type { DriftWatch } from '../standard/drift-watch.ts';
import type { Phase } from '../status.ts';
import type { ActionLimits } from './action-limits.ts';
import type { CertificatePaths } from './certificate.ts';
import type { HealthLimits } from './decide-health.ts';
import { type NodeMetrics, stateOf } from './node-metrics.ts';

/** What steps are taken with. */
export interface Daemon {
  readonly nodeName: string;
  /** Where the objects lie that hold certificates and the pull secret. */
  readonly namespace: string;
  readonly leaseNamespace: string;
  readonly certificatePaths: CertificatePaths;
  readonly actionLimits: ActionLimits;
  readonly healthLimits: HealthLimits;
  /** ms that a soft reboot has to take place before it becomes a full one. */
  readonly softRebootLimitMs: number;
  readonly ports: NodePorts;
  readonly journal: Journal;
  readonly client: ApiClient;
  readonly channel: NodeChannel;
  readonly events: EventRecorder;
  readonly driftWatch: DriftWatch;
  readonly memory: Memory;
  readonly log: Logger;
  readonly tracer: Tracer;
  readonly metrics: NodeMetrics;
  readonly signal: AbortSignal;
}

/** Whether to look again at once, or when the spec has changed or the time is over. */
export type StepOutcome = { readonly kind: 'again' } | { readonly kind: 'wait'; readonly ms: number };

export const again: StepOutcome = { kind: 'again' };

/** Tells where the node is. @throws ApiError */
export async function publish(daemon: Daemon, seen: Observation, phase: Phase): Promise<void> {
  const { current, bootID, bootedImage, certificates, lastUpdate, osBackend } = seen;
  const { withheld } = daemon.memory;
  daemon.metrics.is(...stateOf(phase));
  daemon.metrics.backend(osBackend.name);
  await daemon.channel.publish(
    { phase, current, bootID, bootedImage, certificates, withheld, lastUpdate, osBackend },
    daemon.signal,
  );
}

/** As publish, for what is worth telling but must not keep an update from going on. */
export async function tell(daemon: Daemon, seen: Observation, phase: Phase): Promise<void> {
  await publish(daemon, seen, phase).catch((error: unknown) =>
    daemon.log.warn({ err: error }, 'status could not be written'),
  );
}

/** An event for what an admin looks for, and a line in the log. */
export function normal({ channel, events, log }: Daemon, reason: NormalReason, message: string): void {
  log.info({ reason }, message);
  if (channel.object !== undefined) events.normal(channel.object, reason, message);
}

/** As normal, for what went wrong. */
export function warning({ channel, events, log }: Daemon, reason: WarningReason, message: string): void {
  log.warn({ reason }, message);
  if (channel.object !== undefined) events.warning(channel.object, reason, message);
}
