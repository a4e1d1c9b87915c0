import type { Logger } from 'pino';
import { present } from '../../../api/present.ts';
import { createApiClient } from '../../../cluster/http-api-client.ts';
import { createRegistryClient } from '../../../image/registry/registry-client.ts';
import { type ControlPlaneChoice, connectWith } from '../control-plane.ts';
import { sandboxLayout } from '../layout.ts';
import { applyObjects } from '../manifests/apply.ts';
import type { NodeKindName } from '../node-kind.ts';
import { watchMemory } from '../process-table.ts';
import { type StartedSandbox, startSandbox } from '../start.ts';
import { WaitTimeout, waitUntil } from '../wait-until.ts';
import {
  collectUpdates,
  readLogTails,
  type StepReport,
  type TourReport,
  type UpdateCollector,
} from './report.ts';
import { RolloutFailed } from './rollout-look.ts';
import {
  CheckFailed,
  openClusterView,
  readExamples,
  StepSkipped,
  type TourContext,
  type TourSecrets,
  type TourStep,
} from './step.ts';
import { certificates, liveChange, mixedChange, rebootChange, revertChange } from './steps/changes.ts';
import { commands } from './steps/commands.ts';
import { newBase } from './steps/new-base.ts';
import { clusterUp, standardMode } from './steps/standard-mode.ts';
import { switchOff, switchOn } from './steps/switch.ts';

/** The main job from the first node to the last trace, in order: each step begins where the one before ended. */
export const TOUR: readonly TourStep[] = [
  clusterUp,
  standardMode,
  switchOn,
  liveChange,
  revertChange,
  rebootChange,
  mixedChange,
  newBase,
  certificates,
  commands,
  switchOff,
];

/** Shows the progress of the tour. */
export interface TourListener {
  onStep(number: number, title: string): void;
  /** @param part of the whole that is done, 0 to 1, where that is known. */
  onProgress(seen: string, part: number | undefined): void;
  onCheck(what: string): void;
  onStepEnd(report: StepReport): void;
}

export interface TourOptions {
  readonly dir: string;
  readonly choice: ControlPlaneChoice;
  readonly nodes: NodeKindName;
  readonly listener: TourListener;
  readonly secrets?: TourSecrets;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

export interface FinishedTour {
  readonly report: TourReport;
  /** Still running: the caller keeps or stops it. */
  readonly sandbox: StartedSandbox;
}

/** A wait of a step; a machine that is slower than this is not one to try things out on. */
const WAIT_MS = 120_000;

/**
 * Brings a sandbox up and takes the tour; it ends with the first step that fails.
 *
 * @throws the error that prevented the sandbox from starting, or ended it; the signal's reason. Then nothing is left of
 *   it.
 */
export async function runTour(options: TourOptions): Promise<FinishedTour> {
  const { listener, dir, choice, nodes, signal } = options;
  const began = performance.now();
  const memory = watchMemory([process.pid]);
  listener.onStep(1, TOUR[0]?.title ?? '');
  const onProgress = (what: string) => listener.onProgress(what, undefined);
  const sandbox = await startSandbox({ dir, choice, nodes, onProgress, signal });
  try {
    const steps = await Promise.race([runTourSteps(options, sandbox, began), sandbox.failed]);
    signal.throwIfAborted();
    const seconds = secondsSince(began);
    return { report: { steps, totalSteps: TOUR.length, seconds, peakMemory: memory.stop() }, sandbox };
  } catch (error) {
    await sandbox.stop();
    throw error;
  } finally {
    memory.stop();
  }
}

async function runTourSteps(
  options: TourOptions,
  sandbox: StartedSandbox,
  began: number,
): Promise<StepReport[]> {
  const { record } = sandbox;
  const { signal, listener } = options;
  const client = createApiClient(await connectWith(record.access));
  const view = await openClusterView(client, options.log, signal);
  const updates = collectUpdates(view.machineConfigNodes);
  const parts = {
    client,
    view,
    record,
    secrets: options.secrets ?? {},
    layout: sandboxLayout(options.dir),
    registry: createRegistryClient({
      caFor: (host) => (host === record.registryHost ? record.registryCA : undefined),
    }),
  };
  const reports: StepReport[] = [];
  try {
    for (const [index, step] of TOUR.entries()) {
      const number = index + 1;
      // The first began with the sandbox itself.
      if (number > 1) listener.onStep(number, step.title);
      const start = number > 1 ? performance.now() : began;
      const report = await runTourStep({ number, step, start, parts, updates, options });
      reports.push(report);
      listener.onStepEnd(report);
      if (report.failure !== undefined) break;
    }
    return reports;
  } finally {
    await view.close();
  }
}

interface StepToTake {
  readonly number: number;
  readonly step: TourStep;
  readonly start: number;
  readonly parts: Pick<TourContext, 'client' | 'view' | 'record' | 'secrets' | 'layout' | 'registry'>;
  readonly updates: UpdateCollector;
  readonly options: TourOptions;
}

async function runTourStep({
  number,
  step,
  start,
  parts,
  updates,
  options,
}: StepToTake): Promise<StepReport> {
  const { listener, log, signal } = options;
  const checks: string[] = [];
  let waitedFor: readonly string[] = [];
  const tour: TourContext = {
    ...parts,
    signal,
    apply: (objects) => applyObjects(parts.client, objects, { log, signal }),
    applyExamples: async (...names) =>
      applyObjects(parts.client, await readExamples(...names), { log, signal }),
    until(what, look, workloads) {
      waitedFor = workloads;
      const onProgress = (seen: string, part: number | undefined) => listener.onProgress(seen, part);
      return waitUntil({ what, look, changes: parts.view.changes, deadlineMs: WAIT_MS, signal, onProgress });
    },
    check(what, holds, seen) {
      if (!holds) throw new CheckFailed(what, seen);
      checks.push(what);
      listener.onCheck(what);
    },
  };
  const ended = (failure?: StepReport['failure']): StepReport => ({
    number,
    title: step.title,
    seconds: secondsSince(start),
    checks,
    rows: updates.take(),
    ...present({ failure }),
  });
  try {
    await step.run(tour);
    return ended();
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof StepSkipped) return { ...ended(), skipped: error.message };
    const workloads = workloadsToAsk(error, waitedFor);
    const expected =
      error instanceof RolloutFailed || error instanceof CheckFailed || error instanceof WaitTimeout;
    const text = error instanceof Error ? error : new Error(String(error));
    // What no step foresees is a mistake of the tour or of Shale: then the place in the code helps.
    const message = expected ? text.message : (text.stack ?? text.message);
    return ended({ message, logs: await readLogTails(parts.layout.logs, workloads) });
  }
}

/** The workloads whose logs may show why. What a check found is in its message. */
function workloadsToAsk(error: unknown, waitedFor: readonly string[]): readonly string[] {
  if (error instanceof CheckFailed) return [];
  return error instanceof RolloutFailed ? error.workloads : waitedFor;
}

function secondsSince(start: number): number {
  return (performance.now() - start) / 1000;
}
