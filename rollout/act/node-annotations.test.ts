import { describe, expect, it } from 'vitest';
import { annotations } from '../../api/names.ts';
import { STARTUP_TAINTS } from '../../api/startup-taint.ts';
import { aMachineConfigNode, aNode, condition, image } from '../../test/fixtures/objects.ts';
import { annotationChanges } from './node-annotations.ts';

const CONFIG = 'rendered-worker-1';
const done = aMachineConfigNode(
  'n',
  { configImage: { desiredImage: image('1') } },
  {
    configVersion: { current: CONFIG, desired: CONFIG },
    configImage: { currentImage: image('1') },
    mode: 'Layered',
    conditions: [condition('Updated')],
  },
);
const annotated = (more: Readonly<Record<string, string>>) =>
  aNode('n', { metadata: { name: 'n', annotations: more } });

it('contains what the node runs and its target', () => {
  expect(annotationChanges(aNode('n'), done)).toEqual({
    [annotations.currentConfig]: CONFIG,
    [annotations.desiredConfig]: CONFIG,
    [annotations.currentImage]: image('1'),
    [annotations.desiredImage]: image('1'),
    [annotations.state]: 'Done',
    [annotations.inService]: 'true',
  });
});

it.each([
  ['a startup taint', { spec: { taints: [{ key: STARTUP_TAINTS[0], effect: 'NoSchedule' }] } }],
  [
    'a startup taint of the autoscaler',
    { spec: { taints: [{ key: STARTUP_TAINTS[1], effect: 'NoSchedule' }] } },
  ],
  [
    'a Node that Karpenter has not registered',
    { spec: { taints: [{ key: 'karpenter.sh/unregistered', effect: 'NoExecute' }] } },
  ],
  ['a node that is not Ready', { status: { conditions: [condition('Ready', 'False')] } }],
])('does not say that pods run on %s, and keeps it where they did', (_what, more) => {
  expect(annotationChanges(aNode('n', more), done)?.[annotations.inService]).toBeUndefined();
  const was = { metadata: { name: 'n', annotations: { [annotations.inService]: 'true' } } };
  expect(annotationChanges(aNode('n', { ...more, ...was }), done)).not.toHaveProperty([
    annotations.inService,
  ]);
});

it('takes away what is so no more, and leaves the annotations of others alone', () => {
  const standard = aMachineConfigNode(
    'n',
    {},
    { conditions: [condition('NodeDegraded', 'True', 'no space')] },
  );
  const node = annotated({
    [annotations.desiredConfig]: CONFIG,
    [annotations.currentImage]: image('1'),
    [annotations.state]: 'Done',
    'example.com/own': 'x',
  });
  expect(annotationChanges(node, standard)).toEqual({
    [annotations.currentImage]: null,
    [annotations.state]: 'Degraded',
    [annotations.reason]: 'no space',
    [annotations.inService]: 'true',
  });
});

describe('of a node that runs one config and is to run another', () => {
  const NEXT = 'rendered-worker-2';
  const grant = { level: 'Live', config: NEXT, image: image('2'), leaseHolder: 'shale' } as const;
  const next = (spec: Partial<typeof done.spec>) =>
    aMachineConfigNode(
      'n',
      { configVersion: { desired: NEXT }, configImage: { desiredImage: image('2') }, ...spec },
      { ...done.status, conditions: [condition('Updated', 'False')] },
    );
  const cordoned = annotated({ [annotations.cordonedByShale]: 'true' });

  it('contains what it runs for as long as the rollout has not come to it', () => {
    expect(annotationChanges(aNode('n'), next({}))).toMatchObject({
      [annotations.currentConfig]: CONFIG,
      [annotations.desiredConfig]: CONFIG,
      [annotations.desiredImage]: image('1'),
      [annotations.state]: 'Done',
    });
  });

  it.each([
    ['has its grant', aNode('n'), next({ grant })],
    ['is cordoned', cordoned, next({})],
  ])('contains its target once it %s', (_what, node, machineConfigNode) => {
    expect(annotationChanges(node, machineConfigNode)).toMatchObject({
      [annotations.currentConfig]: CONFIG,
      [annotations.desiredConfig]: NEXT,
      [annotations.desiredImage]: image('2'),
      [annotations.state]: 'Working',
    });
  });
});

it('says nothing when the Node has them right', () => {
  const changes = annotationChanges(aNode('n'), done) ?? {};
  const right = Object.fromEntries(
    Object.entries(changes).filter((entry): entry is [string, string] => entry[1] !== null),
  );
  expect(annotationChanges(annotated(right), done)).toBeUndefined();
});
