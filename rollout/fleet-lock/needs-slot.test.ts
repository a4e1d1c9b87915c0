import { describe, expect, it } from 'vitest';
import { annotations } from '../../api/names.ts';
import { aMachineConfigNode, aNode, condition } from '../../test/fixtures/objects.ts';
import { needsSlot } from './needs-slot.ts';

describe('a node needs its slot', () => {
  const marked = { name: 'a', annotations: { [annotations.cordonedByShale]: 'true' } };
  const down = { conditions: [condition('Ready', 'False')] };
  const grant = { level: 'Disrupt', config: 'rendered-worker-1', leaseHolder: 'shale' } as const;
  const needs = (more: Partial<Parameters<typeof needsSlot>[0]>) =>
    needsSlot({
      node: aNode('a'),
      machineConfigNode: aMachineConfigNode('a'),
      lease: { by: 'nobody' },
      ...more,
    });

  it.each<[string, boolean, Partial<Parameters<typeof needsSlot>[0]>]>([
    ['while its lease is Shale’s', true, { lease: { by: 'us' } }],
    ['while it is granted a disruption', true, { machineConfigNode: aMachineConfigNode('a', { grant }) }],
    ['while it is down after its reboot', true, { node: aNode('a', { metadata: marked, status: down }) }],
    ['not once it is untouched', false, {}],
    ['not once it is Ready, under a cordon that stays', false, { node: aNode('a', { metadata: marked }) }],
    ['not while it is down for another reason', false, { node: aNode('a', { status: down }) }],
    ['not once it is deleted', false, { node: undefined, lease: { by: 'us' } }],
    [
      'not once it is powered off on request',
      false,
      {
        node: aNode('a', {
          metadata: { name: 'a', annotations: { ...marked.annotations, [annotations.poweredOff]: '{}' } },
          status: down,
        }),
      },
    ],
  ])('%s', (_what, expected, more) => {
    expect(needs(more)).toBe(expected);
  });
});
