import { changeOf } from '../../api/change-id.ts';
import { type DisruptionAction, formatAction, formatAsked } from '../../api/disruption-action.ts';
import type { UpdateRecord } from '../../api/machine-config-node.ts';
import { present } from '../../api/present.ts';
import { type Span, type SpanId, spanIds } from '../../cluster/tracing/span.ts';
import { wayOf } from '../reboot/reboot-words.ts';
import type { JournalEntry } from '../records/journal.ts';
import type { TimedPart } from './node-metrics.ts';
import type { StepContext } from './step-context.ts';
import type { Target } from './update.ts';

/**
 * Spans and seconds of an update, for traces and metrics. An update outlives the daemon, so each span is recorded when
 * its work is over, with the times of the journal.
 */

type Goal = Pick<UpdateRecord, 'config' | 'image'>;

/** Brought to the disk; `failure` where it was not. */
export function stageSpan(context: StepContext, target: Target, startedAt: number, failure?: string): Span {
  const goal = target.mode === 'Layered' ? target : { config: target.config };
  return {
    ...partOfRollout(context, goal),
    name: 'stage',
    startedAt,
    endedAt: Date.now(),
    ...present({ failure }),
  };
}

/** The whole update, from its grant to its end. */
export function recordUpdate(context: StepContext, record: UpdateRecord): void {
  const span = partOfRollout(context, record);
  const startedAt = Date.parse(record.startedAt);
  const endedAt = Date.parse(record.finishedAt);
  context.telemetry.metrics.updated(wayOf(record), record.result, secondsBetween(startedAt, endedAt));
  context.telemetry.tracer.record({
    ...span,
    name: 'update',
    id: updateId(context, record),
    startedAt,
    endedAt,
    attributes: {
      ...span.attributes,
      'shale.actions': formatAsked(record),
      'shale.result': record.result,
    },
    ...(record.result === 'Succeeded' ? {} : { failure: record.result }),
  });
}

/** From the request to the first look of a daemon in the new boot. */
export function recordReboot(context: StepContext, entry: JournalEntry): void {
  const startedAt = Date.parse(
    (entry.step === 'rebooting' ? entry.rebootingSince : undefined) ?? entry.startedAt,
  );
  const endedAt = Date.now();
  context.telemetry.metrics.rebooted(secondsBetween(startedAt, endedAt));
  context.telemetry.tracer.record({ ...partOfUpdate(context, entry), name: 'reboot', startedAt, endedAt });
}

/** A clock may have been set back between. */
function secondsBetween(startedAt: number, endedAt: number): number {
  return Math.max(0, endedAt - startedAt) / 1000;
}

/**
 * The steps of an update to the running system, each until the next begins.
 *
 * @returns how to record them.
 */
export function applySpans(context: StepContext, entry: JournalEntry) {
  let step = 'content';
  let part: TimedPart = 'content';
  let startedAt = Date.now();
  const end = (failure?: string) => {
    const span = partOfUpdate(context, entry);
    const endedAt = Date.now();
    context.telemetry.metrics.applied(
      part,
      secondsBetween(startedAt, endedAt),
      failure === undefined ? 'done' : 'failed',
    );
    context.telemetry.tracer.record({
      ...span,
      name: 'apply',
      startedAt,
      endedAt,
      attributes: { ...span.attributes, 'shale.step': step },
      ...present({ failure }),
    });
    startedAt = endedAt;
  };
  return {
    begin(action: DisruptionAction): void {
      end();
      step = formatAction(action);
      part = action.type;
    },
    end,
  };
}

function partOfRollout(context: StepContext, { config, image }: Goal) {
  const pool = poolOf(context);
  const change = changeOf(config);
  return {
    change,
    parent: spanIds.rollout(change, pool, image),
    attributes: {
      'shale.pool': pool,
      'shale.config': config,
      ...present({ 'shale.image': image }),
      'k8s.node.name': context.settings.nodeName,
    },
  };
}

function partOfUpdate(context: StepContext, { plan }: JournalEntry) {
  return { ...partOfRollout(context, plan), parent: updateId(context, plan) };
}

function updateId({ settings }: StepContext, { config, image }: Goal): SpanId {
  return spanIds.update(changeOf(config), settings.nodeName, image);
}

function poolOf({ channel }: StepContext): string {
  return channel.object?.spec.pool.name ?? '';
}
