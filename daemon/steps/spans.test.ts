import { expect, test, vi } from 'vitest';
import type { UpdateRecord } from '../../api/machine-config-node.ts';
import type { Span } from '../../cluster/tracing/span.ts';
import { imageOf, stepUnderTest } from '../../test/fixtures/step-context.ts';
import type { JournalEntry } from '../records/journal.ts';
import { noMetrics } from './node-metrics.ts';
import { applySpans, recordReboot, recordUpdate, stageSpan } from './spans.ts';
import type { StepContext } from './step-context.ts';

const at = (seconds: number) => new Date(seconds * 1000).toISOString();

/** A step whose spans and metrics are collected. */
async function recorded() {
  const spans: Span[] = [];
  const metrics = { ...noMetrics, updated: vi.fn(), rebooted: vi.fn(), applied: vi.fn() };
  const { context } = await stepUnderTest({ context: { metrics } });
  const tracer = { record: (span: Span) => void spans.push(span), flush: async () => undefined };
  const traced: StepContext = { ...context, telemetry: { ...context.telemetry, tracer } };
  return { context: traced, spans, metrics };
}

const record = (more: Partial<UpdateRecord> = {}): UpdateRecord => ({
  config: 'rendered-2',
  result: 'Succeeded',
  actions: [{ type: 'Reboot' }],
  causes: [],
  source: 'test',
  startedAt: at(10),
  finishedAt: at(40),
  bootIDBefore: 'boot-1',
  bootIDAfter: 'boot-2',
  ...more,
});

test.each<[Partial<UpdateRecord>, string]>([
  [{}, 'reboot'],
  [{ softReboot: true }, 'softReboot'],
  [{ bootIDAfter: 'boot-1' }, 'live'],
])('an update %j is counted as %s, with its seconds', async (more, way) => {
  const { context, metrics, spans } = await recorded();
  recordUpdate(context, record(more));
  expect(metrics.updated.mock.calls).toEqual([[way, 'Succeeded', 30]]);
  expect(spans).toMatchObject([
    {
      name: 'update',
      startedAt: 10_000,
      endedAt: 40_000,
      attributes: {
        'shale.pool': 'worker',
        'shale.config': 'rendered-2',
        'k8s.node.name': 'worker-1',
        'shale.result': 'Succeeded',
      },
    },
  ]);
  expect(spans[0]).not.toHaveProperty('failure');
});

test('an update that failed has its result as the failure, and no negative time after a clock was set back', async () => {
  const { context, metrics, spans } = await recorded();
  recordUpdate(context, record({ result: 'RolledBack', startedAt: at(50) }));
  expect(metrics.updated.mock.calls).toEqual([['reboot', 'RolledBack', 0]]);
  expect(spans[0]).toMatchObject({ failure: 'RolledBack' });
});

test('staging is a part of the rollout of its image, and names why it failed', async () => {
  const { context } = await recorded();
  const image = imageOf('2');
  const layered = stageSpan(context, { mode: 'Layered', config: 'rendered-2', image }, 5, 'PrepareFailed');
  expect(layered).toMatchObject({
    name: 'stage',
    startedAt: 5,
    failure: 'PrepareFailed',
    attributes: { 'shale.image': image },
  });
  const standard = stageSpan(context, { mode: 'Standard', config: 'rendered-2' }, 5);
  expect(standard).not.toHaveProperty('failure');
  expect(standard.attributes).not.toHaveProperty('shale.image');
  expect(standard.parent).not.toBe(layered.parent);
});

const entry = (more: Partial<JournalEntry> = {}): JournalEntry =>
  ({
    version: 1,
    step: 'rebooting',
    plan: { config: 'rendered-2', staged: true, actions: [], causes: [], source: 'test' },
    startedAt: at(10),
    bootID: 'boot-1',
    ...more,
  }) as JournalEntry;

test('a reboot lasts from its request, or else from the start of the update', async () => {
  const { context, metrics, spans } = await recorded();
  recordReboot(context, entry({ rebootingSince: at(20) }));
  recordReboot(context, entry());
  expect(spans.map(({ name, startedAt }) => [name, startedAt])).toEqual([
    ['reboot', 20_000],
    ['reboot', 10_000],
  ]);
  const [[first], [second]] = metrics.rebooted.mock.calls as [[number], [number]];
  expect(second - first).toBeCloseTo(10, 0);
});

test('the parts of a live update are its content and each action, each until the next begins', async () => {
  const { context, metrics, spans } = await recorded();
  const { begin, end } = applySpans(context, entry());
  begin({ type: 'DaemonReload' });
  begin({ type: 'Restart', service: 'chronyd.service' });
  end('failed to start');
  expect(spans.map(({ attributes, failure }) => [attributes['shale.step'], failure])).toEqual([
    ['content', undefined],
    ['DaemonReload', undefined],
    ['Restart(chronyd.service)', 'failed to start'],
  ]);
  expect(metrics.applied.mock.calls.map(([part, , result]) => `${part} ${result}`)).toEqual([
    'content done',
    'DaemonReload done',
    'Restart failed',
  ]);
  for (const [index, span] of spans.slice(1).entries()) expect(span.startedAt).toBe(spans[index]?.endedAt);
});
