import { describe, expect, test } from 'vitest';
import type { DaemonSet, Deployment, Node, Pod } from '../../../api/kubernetes.ts';
import {
  isOfTemplate,
  nextDeploymentStep,
  outdatedDaemons,
  TEMPLATE_LABELS,
  templateHash,
} from './plan-rollout.ts';
import { daemonSetStatus, deploymentStatus } from './workload-status.ts';

const template = { metadata: {}, spec: { containers: [{ name: 'a', image: 'a' }] } };
const NOW = new Date('2026-01-01T00:00:00Z');

function daemonSet(updateStrategy: DaemonSet['spec']['updateStrategy'] = {}): DaemonSet {
  return {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { name: 'd', namespace: 's', uid: 'u', generation: 2 },
    spec: { selector: {}, template, updateStrategy },
  };
}

function deployment(replicas: number, strategy?: Deployment['spec']['strategy']): Deployment {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'd', namespace: 's', uid: 'u', generation: 2 },
    spec: { replicas, selector: {}, template, ...(strategy === undefined ? {} : { strategy }) },
  };
}

type Trait = 'old' | 'unready' | 'leaving';

/**
 * @returns pods `p0`, `p1`, …, each on a node of its own: of the present template and ready unless they say otherwise.
 */
function pods(owner: Deployment | DaemonSet, ...traits: readonly (readonly Trait[])[]): Pod[] {
  const label = owner.kind === 'DaemonSet' ? TEMPLATE_LABELS.DaemonSet : TEMPLATE_LABELS.Deployment;
  return traits.map((own, index) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: `p${index}`,
      namespace: 's',
      labels: { [label]: own.includes('old') ? 'another' : templateHash(owner) },
      ownerReferences: [{ apiVersion: 'apps/v1', kind: 'X', name: 'd', uid: 'u' }],
      ...(own.includes('leaving') ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}),
    },
    spec: { nodeName: `n${index}`, containers: [] },
    status: { conditions: [{ type: 'Ready', status: own.includes('unready') ? 'False' : 'True' }] },
  }));
}

const names = (of: readonly Pod[]) => of.map(({ metadata }) => metadata.name);
const nodes = ['n0', 'n1', 'n2'].map(
  (name): Node => ({ apiVersion: 'v1', kind: 'Node', metadata: { name } }),
);

test('templates differ by their content, not by the order of their fields', () => {
  const owner = daemonSet();
  const reordered = {
    ...owner,
    spec: { ...owner.spec, template: { spec: template.spec, metadata: template.metadata } },
  };
  const changed = {
    ...owner,
    spec: { ...owner.spec, template: { ...template, metadata: { labels: { a: 'b' } } } },
  };
  expect(templateHash(reordered)).toBe(templateHash(owner));
  expect(templateHash(changed)).not.toBe(templateHash(owner));
});

describe('a DaemonSet whose template has changed deletes', () => {
  test.each<[string, DaemonSet['spec']['updateStrategy'], Trait[][], string[]]>([
    ['one pod at a time', {}, [['old'], ['old'], ['old']], ['p0']],
    ['none while another is not ready', {}, [['old'], ['old'], ['unready']], []],
    [
      'those that are not ready first, all of them',
      {},
      [['old'], ['old', 'unready'], ['old', 'unready']],
      ['p1', 'p2'],
    ],
    [
      'as many as may be unavailable',
      { rollingUpdate: { maxUnavailable: 2 } },
      [['old'], ['old'], ['old']],
      ['p0', 'p1'],
    ],
    ['of 10% one', { rollingUpdate: { maxUnavailable: '10%' } }, [['old'], ['old'], []], ['p0']],
    ['none by itself if that is how it is set', { type: 'OnDelete' }, [['old'], ['old'], ['old']], []],
    ['none once all are new', {}, [[], [], []], []],
  ])('%s', (_, updateStrategy, traits, expected) => {
    const owner = daemonSet(updateStrategy);
    expect(names(outdatedDaemons(owner, pods(owner, ...traits), traits.length))).toEqual(expected);
  });
});

describe('a Deployment whose template has changed', () => {
  const oneMore = { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } } as const;
  test.each<[string, Deployment['spec']['strategy'], Trait[][], number, string[]]>([
    ['creates before it deletes', oneMore, [['old'], ['old']], 1, []],
    ['waits for what it has created', oneMore, [['old'], ['old'], ['unready']], 0, []],
    ['deletes one for each that is ready', oneMore, [['old'], ['old'], []], 0, ['p0']],
    [
      'deletes first where no more may be there',
      { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } },
      [['old'], ['old']],
      0,
      ['p0'],
    ],
    ['takes a quarter more unless it says otherwise', undefined, [['old'], ['old']], 1, []],
    ['that recreates deletes all', { type: 'Recreate' }, [['old'], ['old']], 0, ['p0', 'p1']],
    ['and creates once they are gone', { type: 'Recreate' }, [['old', 'leaving']], 0, []],
    ['which they are then', { type: 'Recreate' }, [], 2, []],
    ['is at its end when all are new', oneMore, [[], []], 0, []],
  ])('%s', (_, strategy, traits, create, deleted) => {
    const owner = deployment(2, strategy);
    const step = nextDeploymentStep(owner, pods(owner, ...traits));
    expect([step.create, names(step.delete)]).toEqual([create, deleted]);
  });
});

describe('the status', () => {
  test('of a DaemonSet says how many nodes are to have a pod, and how many have one of the present template', () => {
    const owner = daemonSet();
    const own = pods(owner, ['old'], []);
    expect(daemonSetStatus(owner, own, nodes, ({ metadata }) => metadata.name === 'p1')).toEqual({
      observedGeneration: 2,
      desiredNumberScheduled: 3,
      currentNumberScheduled: 2,
      updatedNumberScheduled: 1,
      numberReady: 1,
      numberAvailable: 1,
      numberUnavailable: 2,
      numberMisscheduled: 0,
    });
  });

  test('of a Deployment says how many pods are of the present template, and whether enough are ready', () => {
    const owner = deployment(2);
    const own = pods(owner, ['old'], ['old'], []);
    const before = deploymentStatus(owner, own, ({ metadata }) => metadata.name === 'p2', NOW);
    expect(before).toMatchObject({ replicas: 3, updatedReplicas: 1, availableReplicas: 1 });
    const condition = (status: string, lastTransitionTime: string) =>
      expect.objectContaining({ type: 'Available', status, lastTransitionTime });
    expect(before.conditions).toEqual([condition('False', '2026-01-01T00:00:00Z')]);
    const later = new Date('2026-01-01T00:01:00Z');
    const again = deploymentStatus({ ...owner, status: before }, own, () => true, later);
    expect(again.conditions).toEqual([condition('True', '2026-01-01T00:01:00Z')]);
    const same = deploymentStatus({ ...owner, status: again }, own, () => true, new Date());
    expect(same).toEqual(again);
  });

  test('takes a pod that does not say of which template it is for one of the present one', () => {
    const [pod] = pods(daemonSet(), []);
    expect(isOfTemplate({ ...(pod as Pod), metadata: { name: 'p', labels: {} } }, 'x')).toBe(true);
  });
});
