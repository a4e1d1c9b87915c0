import type { Logger } from 'pino';
import { DEFAULT_LEASE_NAMESPACE, DEFAULT_NAMESPACE, SHALE_VERSION } from '../api/names.ts';
import type { ApiClient } from '../cluster/api-client.ts';
import { aboutChange, createEventRecorder } from '../cluster/events.ts';
import { FailingSteps, warnOfStep } from '../cluster/failing-steps.ts';
import { watchLogLevel } from '../cluster/log.ts';
import { noTracer, type Tracer } from '../cluster/tracing/span.ts';
import { type Backoff, backoffMs } from '../cluster/work-queue.ts';
import { DriftWatch } from './content/drift/drift-watch.ts';
import { finishOrUndoWrite } from './content/write/write-content.ts';
import { decide } from './decide.ts';
import { retireWatchdog, takeOverFromWatchdog } from './host/boot-watchdog/install.ts';
import { type CertificatePaths, defaultCertificatePaths } from './host/certificates/certificate-files.ts';
import type { NodePorts } from './host/host.ts';
import { waitForChange } from './long-wait.ts';
import { armedPhase, takeArmingStep, takeUpArmedBoot } from './next-boot/arm.ts';
import { NodeChannel } from './node-channel.ts';
import { observe } from './observe.ts';
import { fieldsOf, loggedJournal, openJournal } from './records/journal.ts';
import { type Daemon, reportFailure, reportSuccess } from './report-failure.ts';
import { resumeLive, startLive } from './steps/apply-live.ts';
import { formatAwaitedGrant } from './steps/await-grant.ts';
import type { BackgroundTask } from './steps/background-task.ts';
import { applyCertificate } from './steps/certificate.ts';
import { writeTarget } from './steps/disk-work.ts';
import { fail } from './steps/end-update.ts';
import type { HealthLimits } from './steps/health.ts';
import { beIdle } from './steps/idle.ts';
import { takeUpLeftOut } from './steps/left-out.ts';
import { type NodeMetrics, noMetrics } from './steps/node-metrics.ts';
import { powerOff } from './steps/power-off.ts';
import { prepareTarget } from './steps/prepare.ts';
import { rebootInto, requestReboot } from './steps/reboot.ts';
import { repair } from './steps/repair.ts';
import { awaitReboot } from './steps/requested-reboot.ts';
import { requestsOf } from './steps/requests.ts';
import { finishRollback, recordHostRollback, rollBack } from './steps/roll-back.ts';
import { isTriedAgain, type Observation, type Step } from './steps/step.ts';
import { again, publish, type StepContext, type StepOutcome, untilChanged } from './steps/step-context.ts';
import { takeUpBoot } from './steps/ungranted-boot.ts';
import { recheck, verifyBoot } from './steps/verify.ts';

export interface DaemonOptions {
  readonly ports: NodePorts;
  readonly client: ApiClient;
  readonly nodeName: string;
  readonly namespace?: string;
  readonly leaseNamespace?: string;
  readonly certificatePaths?: CertificatePaths;
  /** ms that one service action may take; default 5 minutes. */
  readonly actionLimitMs?: number;
  /** ms that some of them may take, by the action in words. */
  readonly ownActionLimitsMs?: ReadonlyMap<string, number>;
  /** How long a node that has booted its target has to be found healthy; default 5 and 10 minutes. */
  readonly healthLimits?: HealthLimits;
  /** ms that a soft reboot has to take place before it becomes a full one; default 5 minutes. */
  readonly softRebootLimitMs?: number;
  /** Between two tries of what failed. */
  readonly backoff?: Backoff;
  /** What runs beside the steps of updates. */
  readonly backgroundTasks?: readonly BackgroundTask[];
  /** ms after which certificates that could not be applied are tried again; default a minute. */
  readonly postponedMs?: number;
  readonly log: Logger;
  /** Where updates are recorded as traces; absent: nowhere. */
  readonly tracer?: Tracer;
  /** Receives metrics; absent: none are kept. */
  readonly metrics?: NodeMetrics;
  /** Called once it knows what its node should be. */
  readonly onSynced?: () => void;
  /** ms since the epoch; the clock, unless a test brings its own. */
  readonly now?: () => number;
  readonly signal: AbortSignal;
}

export const ACTION_LIMIT_MS = 300_000;
export const HEALTH_LIMITS: HealthLimits = { checksMs: 300_000, kubeletMs: 600_000 };
/** systemd gives each unit 90 s to stop, and a kubelet may hold it up to end its pods. */
const SOFT_REBOOT_LIMIT_MS = 300_000;
const BACKOFF: Backoff = { firstMs: 1_000, longestMs: 120_000 };
/** Certificates may wait for something that the daemon doesn't watch. */
const POSTPONED_MS = 60_000;

/**
 * The node's daemon: looks at what the node is and should be, decides one step, takes it, reports, and looks again.
 *
 * @returns when the signal is aborted. What fails before is reported in the node's status and tried again.
 */
export async function runDaemon(options: DaemonOptions): Promise<void> {
  const { ports, client, nodeName, log, signal } = options;
  const channel = new NodeChannel({ client, nodeName, log });
  const events = createEventRecorder(client, 'shale-daemon', log);
  const failing = new FailingSteps({
    now: options.now ?? Date.now,
    onReport: (step) => warnOfStep(events, step),
  });
  const daemon: Daemon = {
    settings: {
      nodeName,
      namespace: options.namespace ?? DEFAULT_NAMESPACE,
      leaseNamespace: options.leaseNamespace ?? DEFAULT_LEASE_NAMESPACE,
      certificatePaths: options.certificatePaths ?? defaultCertificatePaths,
      actionLimits: {
        anyMs: options.actionLimitMs ?? ACTION_LIMIT_MS,
        ownMs: options.ownActionLimitsMs ?? new Map(),
      },
      healthLimits: options.healthLimits ?? HEALTH_LIMITS,
      softRebootLimitMs: options.softRebootLimitMs ?? SOFT_REBOOT_LIMIT_MS,
    },
    ports,
    journal: loggedJournal(openJournal(ports.host.root), log),
    client,
    channel,
    failing,
    driftWatch: new DriftWatch(() => channel.lookAgain(), log),
    memory: {
      prepared: undefined,
      withheld: new Map(),
      settledFor: undefined,
      checkedBoot: undefined,
      drift: undefined,
      invalidRequests: new Map(),
      imagePolicy: undefined,
    },
    telemetry: {
      events,
      log,
      tracer: options.tracer ?? noTracer,
      metrics: options.metrics ?? noMetrics,
    },
    signal,
  };
  const watching = Promise.all([channel.run(signal), watchLogLevel(client, log, signal)]);
  // An API server that is away must not leave a node between two configs. A failure is reported at start-up.
  await undoWrite(daemon).catch((error: unknown) =>
    log.warn({ err: error }, 'Could not undo an interrupted write'),
  );
  await takeOverBoot(daemon).catch((error: unknown) =>
    log.warn({ err: error }, 'Could not take over from the boot watchdog'),
  );
  await channel.synced();
  options.onSynced?.();
  const backgroundTasks = (options.backgroundTasks ?? []).map((run) => run(daemon));
  await loop(daemon, {
    backoff: options.backoff ?? BACKOFF,
    postponedMs: options.postponedMs ?? POSTPONED_MS,
  });
  daemon.driftWatch.stop();
  await Promise.all([watching, ...backgroundTasks]);
}

async function loop(
  daemon: Daemon,
  { backoff, postponedMs }: { readonly backoff: Backoff; readonly postponedMs: number },
): Promise<void> {
  const { channel, memory, signal } = daemon;
  let started = false;
  let failures = 0;
  while (!signal.aborted) {
    const { changes } = channel;
    const result = await pass(daemon, started);
    started ||= result.started;
    failures = result.outcome === undefined ? failures + 1 : 0;
    const outcome = result.outcome ?? { kind: 'wait', ms: backoffMs(backoff, failures, Math.random()) };
    if (outcome.kind === 'again') continue;
    const triedAgain = [...memory.withheld].filter(([, withheld]) => isTriedAgain(withheld));
    const ms = triedAgain.length > 0 ? Math.min(outcome.ms, postponedMs) : outcome.ms;
    await waitForChange(channel, changes, ms, signal);
    for (const [name, withheld] of triedAgain) memory.withheld.set(name, { ...withheld, isDue: true });
  }
}

interface PassResult {
  readonly started: boolean;
  /** Absent: something failed, and was reported. */
  readonly outcome: StepOutcome | undefined;
}

/** One look and one step. */
async function pass(daemon: Daemon, started: boolean): Promise<PassResult> {
  const { channel, ports, journal, memory, signal } = daemon;
  const { metrics } = daemon.telemetry;
  let began = performance.now();
  let observation: Observation | undefined;
  let step: Step | undefined;
  let hasStarted = started;
  let traced = daemon;
  try {
    if (!hasStarted) await startUp(daemon);
    hasStarted = true;
    // The operator creates the object; until then there is nothing to do and nowhere to report it.
    if (channel.object === undefined) {
      daemon.telemetry.log.info('Waiting for the operator to create the MachineConfigNode');
      return { started: true, outcome: { kind: 'wait', ms: POSTPONED_MS } };
    }
    const { spec, metadata } = channel.object;
    const requested = { spec, generation: metadata.generation, ...requestsOf(daemon) };
    observation = await observe(ports, journal, requested, memory, signal);
    step = decide(observation);
    if (!started) logStart(daemon, observation, step);
    // An update that was begun is ended before another begins, whatever the operator wants by then.
    const config = observation.journal?.plan.config ?? observation.spec.configVersion.desired;
    traced = { ...daemon, telemetry: { ...daemon.telemetry, ...aboutChange(daemon.telemetry, config) } };
    began = performance.now();
    traced.telemetry.log.debug({ step: step.kind }, 'Taking a step');
    const outcome = await takeStep(traced, step, observation);
    metrics.step(step.kind, (performance.now() - began) / 1000, 'done');
    await reportSuccess(daemon);
    return { started: true, outcome };
  } catch (error) {
    if (!signal.aborted) {
      metrics.step(step?.kind ?? 'observe', (performance.now() - began) / 1000, 'failed');
      await reportFailure(traced, error, step, observation);
    }
    return { started: hasStarted, outcome: undefined };
  }
}

/** The first line of most daemons: until a node gets another target there is nothing else to log. */
function logStart(
  { settings: { nodeName: node }, telemetry: { log } }: Daemon,
  { current, spec, bootedImage, osBackend }: Observation,
  step: Step,
): void {
  const runs = current && { config: current.config, mode: current.mode };
  const target = spec.configVersion.desired;
  const version = SHALE_VERSION;
  const fields = { node, version, osBackend, ...runs, bootedImage, target, step: step.kind };
  log.info(fields, 'Observed the node');
}

/** Undoes what a daemon that was killed had written half-way. */
async function undoWrite({ ports, telemetry: { log } }: Daemon): Promise<void> {
  if ((await finishOrUndoWrite(writeTarget(ports))) === 'undone') {
    log.warn('Undid an interrupted write');
  }
}

/** Reads the journal first: if it is unreadable, the boot watchdog stays in charge and rolls back. */
async function takeOverBoot({ ports, journal, signal }: Daemon): Promise<void> {
  await journal.read();
  await takeOverFromWatchdog(ports, signal);
}

/** After a restart of the daemon or of the node, before anything is decided. */
async function startUp(daemon: Daemon): Promise<void> {
  const { ports, journal, signal } = daemon;
  await ports.host.bootSettled(signal);
  await undoWrite(daemon);
  const entry = await journal.read();
  if (entry !== undefined) {
    daemon.telemetry.log.info(fieldsOf(entry), 'Resuming the update that the journal holds');
    return;
  }
  // Before the watchdog's mark is removed, which shows what became of an armed target.
  if (await takeUpArmedBoot(daemon)) {
    daemon.telemetry.log.info('Verifying the target that was armed');
    return;
  }
  await retireWatchdog(ports.host.root);
  await takeUpBoot(daemon);
  await takeUpLeftOut(ports, signal);
}

/**
 * Takes one step.
 *
 * @throws what keeps the step from being taken; the step is decided again then.
 */
async function takeStep(context: StepContext, step: Step, observation: Observation): Promise<StepOutcome> {
  // What the daemon changes itself is no drift.
  if (step.kind !== 'idle') context.driftWatch.stop();
  switch (step.kind) {
    case 'idle':
      return beIdle(context, observation);
    case 'repair':
      return repair(context, step.request, observation);
    case 'powerOff':
      return powerOff(context, step.request);
    case 'degraded':
      await publish(context, observation, { kind: 'degraded', why: step.why, reason: step.reason });
      return untilChanged;
    case 'recheck':
      return recheck(context, step.why, observation);
    case 'awaitGrant':
      await publish(context, observation, {
        kind: 'waiting',
        plan: step.update.plan,
        why: formatAwaitedGrant(step.update.plan),
      });
      return untilChanged;
    case 'awaitReboot':
      return awaitReboot(context, step.update, observation);
    case 'arm':
    case 'stayArmed':
    case 'disarm':
      return takeArmingStep(context, step, observation);
    case 'leaveAlone':
      await publish(
        context,
        observation,
        observation.armed === undefined ? { kind: 'held', why: step.why } : armedPhase(observation.armed),
      );
      return untilChanged;
    case 'prepare':
      return prepareTarget(context, step, observation);
    case 'apply':
      return startLive(context, step.update, observation);
    case 'applyAgain':
      return resumeLive(context, step.entry, observation);
    case 'reboot':
      return rebootInto(context, step.update, observation);
    case 'rebootAgain':
      return requestReboot(context, step.entry);
    case 'verify':
      return verifyBoot(context, step.entry, observation);
    case 'rollBack':
      return rollBack(context, step.entry, observation);
    case 'recordHostRollback':
      return recordHostRollback(context, step, observation);
    case 'finishRollback':
      return finishRollback(context, step.entry, observation);
    case 'fail':
      return fail(context, step, observation);
    case 'applyCertificate':
      await applyCertificate(context, step, observation);
      return again;
  }
}
