import { describe, expect, test } from 'vitest';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import { annotations } from '../../api/names.ts';
import { quietChannel, stepUnderTest } from '../../test/fixtures/step-context.ts';
import { type Requests, requestsOf } from './requests.ts';

const AT = '2026-01-01T00:00:00Z';
const repair = { id: 'r-1', by: 'ann', at: AT };
const NONE = { repair: undefined, retry: undefined, reboot: undefined, powerOff: undefined };
const reboot = { bootID: 'boot-1', by: 'ann', reason: 'new kernel arguments', at: AT };
const retry = { config: 'rendered-2', failedAt: '2026-01-01T00:01:00.000Z', by: 'ann', at: AT };

function objectWith(texts: Readonly<Record<string, string>>): MachineConfigNode {
  return {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfigNode',
    metadata: { name: 'worker-1', annotations: texts },
    spec: {
      node: { name: 'worker-1' },
      pool: { name: 'worker' },
      configVersion: { desired: 'rendered-1' },
    },
  };
}

async function node() {
  const { context, events } = await stepUnderTest({});
  const read = (texts: Readonly<Record<string, string>>) =>
    requestsOf({ ...context, channel: { ...quietChannel, object: objectWith(texts) } });
  return { events, read };
}

describe.each<[keyof Requests, object, string[]]>([
  ['repair', repair, ['', 'yes', '{}', '{"id":""}', '{"id":1}', `{"id":"${'x'.repeat(65)}"}`]],
  [
    'retry',
    retry,
    [
      '',
      'yes',
      '{}',
      '{"config":"rendered-2"}',
      '{"config":"","failedAt":"x"}',
      '{"config":"rendered-2","failedAt":""}',
      '{"config":"rendered-2","failedAt":"x","image":"r.io/os:latest"}',
    ],
  ],
  ['powerOff', { ...reboot, leaseHolder: 'shale-maintenance/ann' }, ['now', '{"bootID":"boot-1"}']],
  ['reboot', reboot, ['now', '{"by":"ann"}', '{"bootID":""}']],
])('the annotation of a %s', (kind, request, invalid) => {
  const annotation = annotations[kind];

  test('requests what it says, and nothing else', async () => {
    const { events, read } = await node();
    const found = read({ [annotation]: JSON.stringify(request) });
    expect(found).toEqual({ ...NONE, [kind]: request });
    expect(events).toEqual([]);
  });

  test('that is absent requests nothing', async () => {
    const { events, read } = await node();
    expect(read({})).toEqual(NONE);
    expect(events).toEqual([]);
  });

  test('that can’t be read is reported again once it was absent or could be read meanwhile', async () => {
    const { events, read } = await node();
    for (const text of ['yes', undefined, 'yes', JSON.stringify(request), 'yes', 'no'])
      read(text === undefined ? {} : { [annotation]: text });
    expect(events).toHaveLength(4);
  });

  test.each(invalid)('that can’t be read requests nothing, which is reported once: %s', async (text) => {
    const { events, read } = await node();
    for (const _ of [1, 2]) expect(read({ [annotation]: text })[kind]).toBeUndefined();
    expect(events).toHaveLength(1);
    expect(events[0]).toContain(`Annotation ${annotation}: expected JSON {`);
  });
});

test('an invalid request of one kind keeps none of the other from being read', async () => {
  const { events, read } = await node();
  const found = read({ [annotations.repair]: 'yes', [annotations.retry]: JSON.stringify(retry) });
  expect(found).toEqual({ ...NONE, retry });
  expect(events).toHaveLength(1);
});
