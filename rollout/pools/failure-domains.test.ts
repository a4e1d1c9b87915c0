import { describe, expect, it } from 'vitest';
import { aMachineConfigNode, aNode, REBOOT } from '../../test/fixtures/objects.ts';
import { decide, observed, running } from '../../test/fixtures/pool-decided.ts';
import { failureDomainsOf } from './failure-domains.ts';
import type { ObservedNode } from './pool-observation.ts';

const ZONE = 'topology.kubernetes.io/zone';
const labels = (zone?: string): Record<string, string> => (zone === undefined ? {} : { [ZONE]: zone });

/** A node that has staged its target, a reboot. */
function staged(name: string, zone?: string, node: Partial<ReturnType<typeof aNode>> = {}): ObservedNode {
  const config = 'rendered-worker-2';
  const plan = { config, staged: true, actions: [...REBOOT], causes: [], source: 'x' };
  return observed(name, {
    node: aNode(name, { metadata: { name, labels: labels(zone) }, ...node }),
    machineConfigNode: aMachineConfigNode(
      name,
      { configVersion: { desired: config } },
      { mode: 'Standard', configVersion: { current: 'rendered-worker-1', desired: config }, plan },
    ),
  });
}

function starts(nodes: readonly ObservedNode[], limit?: number | string, most: number | string = 9) {
  const failureDomains = { topologyKey: ZONE, ...(limit === undefined ? {} : { maxUnavailable: limit }) };
  const { steps, domainWaits, slotsTaken } = decide(nodes, { maxUnavailable: most }, {}, { failureDomains });
  const started = [...steps].filter(([, { kind }]) => kind === 'take').map(([name]) => name);
  return { started: started.sort().join(), waits: Object.fromEntries(domainWaits), slotsTaken };
}

describe('nodes that could start', () => {
  const six = [
    staged('a1', 'a'),
    staged('a2', 'a'),
    staged('b1', 'b'),
    staged('b2', 'b'),
    staged('x1'),
    staged('x2'),
  ];

  it('do so one in each domain, where the pool says no number, and those without the label together', () => {
    expect(starts(six)).toEqual({
      started: 'a1,b1,x1',
      waits: {
        a2: 'waits: its failure domain a has 1 of 1 unavailable',
        b2: 'waits: its failure domain b has 1 of 1 unavailable',
        x2: `waits: its failure domain of nodes without the label ${ZONE} has 1 of 1 unavailable`,
      },
      slotsTaken: false,
    });
  });

  it('are no more than maxUnavailable of the pool either', () => {
    expect(starts(six, 1, 2).started).toBe('a1,b1');
  });

  it('are a share of their domain, at least one', () => {
    const four = ['1', '2', '3', '4'].map((name) => staged(name, 'a'));
    expect(starts([...four, staged('b', 'b')], '50%').started).toBe('1,2,b');
    expect(starts(four, '10%').started).toBe('1');
  });

  it('wait for a node of their domain that is unavailable for another reason', () => {
    const cordoned = staged('a1', 'a', { spec: { unschedulable: true } });
    const found = starts([cordoned, staged('a2', 'a'), staged('b1', 'b')]);
    expect(found.started).toBe('b1');
    expect(found.waits).toEqual({ a2: 'waits: its failure domain a has 1 of 1 unavailable' });
  });

  it('wait for one that is down before it has a MachineConfigNode', () => {
    const down = observed('new', {
      node: aNode('new', { metadata: { name: 'new', labels: labels('a') }, status: { conditions: [] } }),
      machineConfigNode: undefined,
    });
    expect(starts([down, staged('a2', 'a'), staged('b1', 'b')]).started).toBe('b1');
  });

  it('say so in place of a use of maxUnavailable', () => {
    const cordoned = staged('a1', 'a', { spec: { unschedulable: true } });
    expect(starts([cordoned, staged('a2', 'a')])).toMatchObject({ started: '', slotsTaken: false });
  });
});

it('a pool without the setting has no domains', () => {
  expect(failureDomainsOf(undefined, [])).toBeUndefined();
});

it('nodes of a pool with domains stay read, because a share of them is of their labels', () => {
  const failureDomains = { topologyKey: ZONE };
  const policyDigest = 'sha256:p';
  const spec = { configVersion: { desired: 'rendered-worker-2' }, policyDigest };
  const { status } = running('a', 'rendered-worker-2');
  const node = observed('a', { machineConfigNode: aMachineConfigNode('a', spec, status) });
  const settled = (more: object) => decide([node], {}, {}, more).newlySettled.length;
  expect([settled({}), settled({ failureDomains })]).toEqual([1, 0]);
});
