import { describe, expect, it } from 'vitest';
import { aMachineConfigNode, aNode, REBOOT } from '../../test/fixtures/objects.ts';
import { decide, observed, running } from '../../test/fixtures/pool-decided.ts';
import { inputs } from '../../test/fixtures/pool-status-inputs.ts';
import { failureDomainsOf, formatDomainWait } from './failure-domains.ts';
import { updatingVerdict } from './pool-conditions.ts';
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
  const waits = [...domainWaits].map(([name, domain]) => [name, formatDomainWait(domain)]);
  return { started: started.sort().join(), waits: Object.fromEntries(waits), slotsTaken };
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
        a2: 'waits: failure domain a has 1 of 1 unavailable: a1',
        b2: 'waits: failure domain b has 1 of 1 unavailable: b1',
        x2: `waits: the failure domain of nodes without the label ${ZONE} has 1 of 1 unavailable: x1`,
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
    expect(found.waits).toEqual({ a2: 'waits: failure domain a has 1 of 1 unavailable: a1' });
    expect(found.slotsTaken).toBe(false);
  });

  it('wait for one that is down before it has a MachineConfigNode', () => {
    const down = observed('new', {
      node: aNode('new', { metadata: { name: 'new', labels: labels('a') }, status: { conditions: [] } }),
      machineConfigNode: undefined,
    });
    expect(starts([down, staged('a2', 'a'), staged('b1', 'b')]).started).toBe('b1');
  });

  it('are none where others use up the share of each domain, and the pool says so by the domain', () => {
    const cordoned = ['a1', 'b1'].map((name) => staged(name, name[0], { spec: { unschedulable: true } }));
    const nodes = [...cordoned, staged('a2', 'a'), staged('a3', 'a')];
    expect(starts(nodes)).toMatchObject({ started: '', slotsTaken: true });
    const decision = decide(nodes, { maxUnavailable: 9 }, {}, { failureDomains: { topologyKey: ZONE } });
    expect(updatingVerdict(inputs({ machineCount: 4, decision }), false, 0)).toEqual({
      status: 'True',
      reason: 'MaxUnavailableReached',
      message: expect.stringMatching(
        /; no node of failure domain a can start: node a1 uses up the domain's maxUnavailable: cordoned, and not by Shale; kubectl uncordon a1; or raise the domain's maxUnavailable; a1: /,
      ),
    });
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
