import { errorMessage } from '../api/error-message.ts';
import { ApiError, ApiUnreachable } from '../cluster/api-client.ts';
import { type FailingSteps, formatFailing } from '../cluster/failing-steps.ts';
import { formatDrifts } from './content/drift/drift.ts';
import { ForeignChangeError } from './content/write/write-content.ts';
import type { NodeChannel } from './node-channel.ts';
import { UnsupportedHostError } from './os/detect-backend.ts';
import { PrepareRefused } from './records/current.ts';
import { ChangedDisk } from './steps/preparation.ts';
import type { Observation, Step } from './steps/step.ts';
import { publish, recordWarning, type StepContext } from './steps/step-context.ts';

/** What the loop itself needs beyond what steps are taken with. */
export interface Daemon extends StepContext {
  readonly channel: NodeChannel;
  /** What the API server does not let it do. */
  readonly failing: FailingSteps;
}

/** Independent of the step: what prevents one usually prevents the next one as well. */
const DOING = 'looking after the node';

/**
 * Reports why a look or a step failed, where an admin will see it: the condition of preparing, drift, or that the node
 * is degraded. What the API server refuses degrades no node.
 *
 * @param step undefined where it was not decided yet. @param observation undefined where the look itself failed.
 */
export async function reportFailure(
  daemon: Daemon,
  error: unknown,
  step: Step | undefined,
  observation: Observation | undefined,
): Promise<void> {
  const why = errorMessage(error);
  daemon.telemetry.log.warn({ err: error, step: step?.kind }, 'Step failed; retrying');
  const { object } = daemon.channel;
  const isOfServer = error instanceof ApiError || error instanceof ApiUnreachable;
  const failing =
    isOfServer && object !== undefined ? daemon.failing.failed(object, DOING, error) : undefined;
  // Nothing can be reported to a server that doesn't answer, and once it does, the node is no worse for it.
  if (error instanceof ApiUnreachable) return;
  const isApi = error instanceof ApiError;
  try {
    if (step?.kind === 'prepare' && observation !== undefined) {
      const refused = error instanceof PrepareRefused;
      const byHand = error instanceof ChangedDisk ? error.drifts : undefined;
      await publish(daemon, observation, { kind: 'preparing', problem: why, refused, byHand });
    } else if (error instanceof ForeignChangeError) {
      await reportDrift(daemon, error);
    } else if (!isApi) {
      const reason = error instanceof UnsupportedHostError ? 'UnsupportedHost' : 'DaemonFailed';
      daemon.telemetry.metrics.is('degraded', reason);
      await daemon.channel.publishTrouble(reason, why, daemon.signal);
    }
    // The node is no worse for it, and no rollout stops: it comes no further until somebody acts.
    if (failing?.isReported === true)
      await daemon.channel.publishFailing(formatFailing(failing), daemon.signal);
  } catch (second) {
    daemon.telemetry.log.warn({ err: second }, 'Could not write the status');
  }
}

/** What the API server refused until now it accepts again. */
export async function reportSuccess({ channel, failing, telemetry, signal }: Daemon): Promise<void> {
  if (channel.object !== undefined) failing.over(channel.object, DOING);
  await channel.publishFailing(undefined, signal).catch((error: unknown) => {
    telemetry.log.warn({ err: error }, 'Could not write the status');
  });
}

/**
 * The disk was changed after the update was prepared: nothing is wrong with the daemon, and the change is reported as
 * any other.
 */
async function reportDrift(daemon: Daemon, { drifts }: ForeignChangeError): Promise<void> {
  const why = formatDrifts(drifts);
  daemon.telemetry.metrics.is('drifted', 'ConfigDrift');
  if (daemon.memory.drift !== why) {
    daemon.telemetry.metrics.driftFound();
    recordWarning(daemon, 'ConfigDriftDetected', why);
    daemon.memory.drift = why;
  }
  await daemon.channel.publishTrouble('ConfigDrift', why, daemon.signal, drifts);
}
