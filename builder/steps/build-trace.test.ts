import { expect, test } from 'vitest';
import { changeOf } from '../../api/change-id.ts';
import { parseDigestedPullspec } from '../../api/references.ts';
import { type Span, spanIds } from '../../cluster/tracing/span.ts';
import { image } from '../../test/fixtures/objects.ts';
import { BuildFailure } from '../build-failure.ts';
import { BuildTrace } from './build-trace.ts';

const change = changeOf('rendered-worker-1');

function setUp() {
  const spans: Span[] = [];
  const tracer = { record: (span: Span) => void spans.push(span), flush: async () => undefined };
  const attempted = { pool: 'worker', config: 'rendered-worker-1', build: 'worker-1', attempt: 2 };
  return { spans, trace: new BuildTrace(tracer, attempted) };
}

const about = {
  'shale.pool': 'worker',
  'shale.config': 'rendered-worker-1',
  'shale.build': 'worker-1',
  'shale.build.attempt': 2,
};
const times = { startedAt: expect.any(Number), endedAt: expect.any(Number) };

test('a build that succeeded is a span of its change, with what it made and moved', () => {
  const { spans, trace } = setUp();
  trace.succeeded({
    image: parseDigestedPullspec(image('a')),
    baseImage: parseDigestedPullspec(image('b')),
    way: 'Append',
    transitions: [],
    summary: '',
    bytes: { sent: 3, mounted: 4 },
  });
  const attributes = {
    ...about,
    'shale.image': image('a'),
    'shale.build.way': 'Append',
    'shale.build.bytes_sent': 3,
    'shale.build.bytes_mounted': 4,
  };
  const parent = spanIds.render(change, 'worker');
  expect(spans).toEqual([{ name: 'build', change, parent, id: expect.any(String), ...times, attributes }]);
});

test('a build that failed has its reason, and so has the step that made it fail', async () => {
  const { spans, trace } = setUp();
  const failure = new BuildFailure('ContainerfileFailed', 'exit 1');
  expect(await trace.step('layer', async () => 'done')).toBe('done');
  await expect(trace.step('engine', () => Promise.reject(failure))).rejects.toBe(failure);
  trace.failed(failure);
  const parent = spans[2]?.id;
  expect(parent).toBeDefined();
  expect(spans).toEqual([
    { name: 'layer', change, parent, ...times, attributes: {} },
    { name: 'engine', change, parent, ...times, attributes: {}, failure: 'ContainerfileFailed' },
    expect.objectContaining({ name: 'build', attributes: about, failure: 'ContainerfileFailed' }),
  ]);
});
