import { formatAsked } from '../../api/disruption-action.ts';
import { type MachineConfigNode, PREPARE_REFUSED } from '../../api/machine-config-node.ts';
import type { Step } from '../decide.ts';
import type { Observation } from '../observe.ts';
import { applyCertificate } from './certificate.ts';
import { endRolledBack, fail } from './end-update.ts';
import { hostWentBack } from './host-went-back.ts';
import { watchOver } from './idle.ts';
import { settleNextBoot } from './next-boot.ts';
import { prepare } from './prepare.ts';
import { applyLiveFrom, beginLive, rebootInto, requestReboot } from './reboot.ts';
import { rollBack } from './roll-back.ts';
import { stageSpan } from './spans.ts';
import { again, type Daemon, normal, publish, type StepOutcome, tell } from './step-context.ts';
import { targetInWords } from './target.ts';
import { recheck, verifyBoot } from './verify.ts';

/** Nothing but a change of the spec is waited for; the look in between is for what changes without telling. */
const untilTold: StepOutcome = { kind: 'wait', ms: 600_000 };
const PROGRESS_EVERY_MS = 1_000;

/**
 * Takes one step.
 *
 * @throws what keeps the step from being taken; the step is decided anew then.
 */
export async function takeStep(daemon: Daemon, step: Step, seen: Observation): Promise<StepOutcome> {
  // What the daemon changes itself is no drift.
  if (step.kind !== 'idle') daemon.driftWatch.disarm();
  switch (step.kind) {
    case 'idle':
      return beIdle(daemon, seen);
    case 'degraded':
      await publish(daemon, seen, { kind: 'degraded', why: step.why, reason: step.reason });
      return untilTold;
    case 'recheck':
      return recheck(daemon, step.why, seen);
    case 'awaitGrant':
      await publish(daemon, seen, {
        kind: 'waiting',
        plan: step.update.plan,
        why: `waits for leave (${step.level}) to do: ${formatAsked(step.update.plan)}`,
      });
      return untilTold;
    case 'prepare':
      return prepareTarget(daemon, step, seen);
    case 'apply':
      return beginLive(daemon, step.update, seen);
    case 'applyAgain':
      return applyLiveFrom(daemon, step.entry, seen, true);
    case 'reboot':
      return rebootInto(daemon, step.update, seen);
    case 'rebootAgain':
      return requestReboot(daemon, step.entry);
    case 'verify':
      return verifyBoot(daemon, step.entry, seen);
    case 'rollBack':
      return rollBack(daemon, step.entry, seen);
    case 'hostWentBack':
      return hostWentBack(daemon, step, seen);
    case 'rolledBack':
      return endRolledBack(daemon, step.entry, seen);
    case 'fail':
      return fail(daemon, step, seen);
    case 'applyCertificate':
      await applyCertificate(daemon, step, seen);
      return again;
  }
}

async function beIdle(daemon: Daemon, seen: Observation): Promise<StepOutcome> {
  const { memory, ports, signal } = daemon;
  memory.prepared = undefined;
  const running = JSON.stringify([seen.current?.config, seen.bootID, seen.lastUpdate?.finishedAt]);
  const why = await watchOver(daemon, seen.current);
  await publish(daemon, seen, why === undefined ? { kind: 'updated' } : { kind: 'drifted', why });
  if (memory.settledFor !== running) {
    await settleNextBoot(ports.backend, seen.current, signal);
    await ports.backend.cleanup(signal);
    memory.settledFor = running;
  }
  return untilTold;
}

async function prepareTarget(
  daemon: Daemon,
  { target, stuck }: Extract<Step, { kind: 'prepare' }>,
  seen: Observation,
): Promise<StepOutcome> {
  const { client, memory, metrics, ports, signal } = daemon;
  memory.prepared = undefined;
  metrics.staging(0, 0);
  memory.settledFor = undefined;
  // Tried again in case the host has changed; until that helps, the refusal stays where the admin reads it.
  if (!isRefused(daemon.channel.object)) await publish(daemon, seen, { kind: 'preparing' });
  const progress = progressTeller(daemon, seen);
  const startedAt = Date.now();
  try {
    memory.prepared = await prepare(
      {
        client,
        backend: ports.backend,
        root: ports.host.root,
        spec: seen.spec,
        current: seen.current,
        stuck,
        onProgress: progress.onProgress,
        signal,
      },
      target,
    );
    daemon.tracer.record(stageSpan(daemon, target, startedAt));
  } catch (error) {
    if (!signal.aborted) {
      const failure = error instanceof Error ? error.name : 'Error';
      daemon.tracer.record(stageSpan(daemon, target, startedAt, failure));
    }
    throw error;
  } finally {
    await progress.told();
  }
  const { plan } = memory.prepared;
  normal(daemon, 'Staged', `${targetInWords(target)}: ${formatAsked(plan)}, by ${plan.source}`);
  return again;
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
function progressTeller(daemon: Daemon, seen: Observation) {
  let telling = Promise.resolve();
  let lastTold = performance.now();
  return {
    onProgress: (bytesDone: number, bytesTotal: number) => {
      daemon.metrics.staging(bytesDone, bytesTotal);
      if (performance.now() - lastTold < PROGRESS_EVERY_MS) return;
      lastTold = performance.now();
      telling = telling.then(() =>
        tell(daemon, seen, { kind: 'preparing', staging: { bytesDone, bytesTotal } }),
      );
    },
    told: () => telling,
  };
}
