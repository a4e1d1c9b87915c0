import { formatAsked } from '../../api/disruption-action.ts';
import { asError } from '../../api/error-message.ts';
import { type MachineConfigNode, PREPARE_REFUSED } from '../../api/machine-config-node.ts';
import { NodeHeld, whileFree } from '../host/while-free.ts';
import { PrepareRefused } from '../records/current.ts';
import { policeImages, requireSigned } from './image-policy.ts';
import type { Preparation } from './preparation.ts';
import { settleNextBoot } from './prepare-boot.ts';
import { prepareLayered } from './prepare-layered.ts';
import { prepareStandard } from './prepare-standard.ts';
import { stageSpan } from './spans.ts';
import type { Observation, Step } from './step.ts';
import {
  again,
  publish,
  recordEvent,
  type StepContext,
  type StepOutcome,
  tryPublish,
} from './step-context.ts';
import { formatNodeTarget } from './update.ts';

const PROGRESS_EVERY_MS = 1_000;

/**
 * Brings the target to the disk and works out what it asks of the node. Not disruptive, and harmless to repeat.
 *
 * @throws PrepareRefused, ApiError, and what OsBackend.fetch throws.
 */
export async function prepareTarget(
  context: StepContext,
  { target, stuck }: Extract<Step, { kind: 'prepare' }>,
  observation: Observation,
): Promise<StepOutcome> {
  const { client, memory, ports, signal } = context;
  const { metrics } = context.telemetry;
  memory.prepared = undefined;
  metrics.staging(0, 0);
  memory.settledFor = undefined;
  // Tried again in case the host has changed; until that helps, the refusal stays where the admin reads it.
  if (!isRefused(context.channel.object)) await publish(context, observation, { kind: 'preparing' });
  const progress = progressReporter(context, observation);
  const { spec, current, kernelArguments } = observation;
  const startedAt = Date.now();
  try {
    refuseIrreconcilable(observation);
    // What an earlier target, or an earlier daemon, has left. An update under way has been granted its next boot.
    if (stuck === undefined) await settleNextBoot(ports.backend, observation.current, signal);
    memory.prepared = await whileFree(context.channel, (held) => {
      const preparation: Preparation = {
        spec,
        current,
        runningArguments: kernelArguments.running,
        stuck,
        client,
        ports,
        admit: (image) =>
          image === 'any'
            ? policeImages(context, observation, [])
            : requireSigned(context, observation, image),
        onProgress: progress.onProgress,
        held,
        signal,
      };
      const prepare =
        target.mode === 'Layered'
          ? prepareLayered(preparation, target)
          : prepareStandard(preparation, target);
      return prepare.catch((error: unknown) => {
        throw held.aborted ? held.reason : error;
      });
    });
    context.telemetry.tracer.record(stageSpan(context, target, startedAt));
  } catch (error) {
    if (error instanceof NodeHeld && !signal.aborted) {
      context.telemetry.log.info({ why: error.message }, 'Stopped staging: somebody else holds the node');
      return again;
    }
    if (!signal.aborted) {
      context.telemetry.tracer.record(stageSpan(context, target, startedAt, asError(error).name));
    }
    throw error;
  } finally {
    await progress.reported();
  }
  const { plan } = memory.prepared;
  recordEvent(context, 'Staged', `${formatNodeTarget(target)}: ${formatAsked(plan)} (${plan.source})`);
  return again;
}

/**
 * The operator compares what the target asks with what the node runs; nothing of the target is touched before they fit.
 */
function refuseIrreconcilable({ spec: { irreconcilable } }: Observation): void {
  if (irreconcilable !== undefined) throw new PrepareRefused(irreconcilable);
}

/** @returns whether the status says that the very target that is wanted was refused. */
function isRefused({ spec, status }: Partial<MachineConfigNode> = {}): boolean {
  return (
    status?.configVersion?.desired === spec?.configVersion.desired &&
    status?.configImage?.desiredImage === spec?.configImage?.desiredImage &&
    status?.conditions?.find(({ type }) => type === 'UpdatePrepared')?.reason === PREPARE_REFUSED
  );
}

/** Tells how far the pull is, at most once a second and never two at a time. */
function progressReporter(context: StepContext, observation: Observation) {
  let reporting = Promise.resolve();
  let lastReported = performance.now();
  return {
    onProgress: (bytesDone: number, bytesTotal: number) => {
      context.telemetry.metrics.staging(bytesDone, bytesTotal);
      if (performance.now() - lastReported < PROGRESS_EVERY_MS) return;
      lastReported = performance.now();
      reporting = reporting.then(() =>
        tryPublish(context, observation, { kind: 'preparing', staging: { bytesDone, bytesTotal } }),
      );
    },
    reported: () => reporting,
  };
}
