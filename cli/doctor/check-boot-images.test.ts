import { expect, test } from 'vitest';
import type { MachineConfigNodeStatus } from '../../api/machine-config-node.ts';
import { aMachineConfigNode, aMachineOSConfig, aNode, aPool } from '../../test/fixtures/objects.ts';
import { observed } from '../../test/fixtures/observed-cluster.ts';
import { judgeBootImages } from './check-boot-images.ts';

const [IMAGE, OTHER] = ['1', '2'].map((digit) => `r.io/os/worker@sha256:${digit.repeat(64)}`) as [
  string,
  string,
];
const TAG = 'r.io/os/worker:current';

const judge = (more: {
  readonly boots?: string;
  readonly tagNames?: string;
  readonly assigned?: readonly string[];
  readonly joining?: MachineConfigNodeStatus;
}) => {
  const { boots = IMAGE, tagNames = IMAGE, assigned = [], joining } = more;
  const pool = {
    ...aPool('worker'),
    status: boots === '' ? {} : { bootImage: { image: boots, proof: 'Rollout' as const } },
  };
  const { spec, ...config } = aMachineOSConfig('worker');
  const machineOSConfig = {
    ...config,
    spec: { ...spec, renderedImagePushSpec: 'r.io/os/worker:latest' },
    status: { publishedImage: { tag: TAG, image: tagNames } },
  };
  const inService = assigned.map((desiredImage, index) =>
    aMachineConfigNode(`n${index}`, { configImage: { desiredImage } }),
  );
  const newNode = aNode('new', {
    metadata: { name: 'new', labels: { 'node-role.kubernetes.io/worker': '' } },
    spec: { taints: [{ key: 'shale.dev/not-configured', effect: 'NoSchedule' }] },
  });
  const findings = judgeBootImages(
    observed({
      pools: [pool],
      machineOSConfigs: [machineOSConfig],
      machineConfigNodes: [
        ...inService,
        ...(joining === undefined ? [] : [aMachineConfigNode('new', {}, joining)]),
      ],
      nodes: joining === undefined ? [] : [newNode],
    }),
  );
  return findings.map(({ level, what }) => `${level} ${what}`);
};

test.each<[string, Parameters<typeof judge>[0], string]>([
  ['all is well', { assigned: [IMAGE, OTHER] }, `ok pool worker: new nodes boot ${IMAGE}`],
  ['no image is proven yet', { boots: '' }, 'ok pool worker: new nodes boot the stock image: no rollout'],
  [
    'the tag is behind',
    { tagNames: OTHER },
    `warning pool worker: ${TAG} does not name ${IMAGE}: the builder`,
  ],
  [
    'the nodes go elsewhere',
    { assigned: [OTHER] },
    `warning pool worker: new nodes boot ${IMAGE}, to which none`,
  ],
  [
    'a machine came with an older image',
    { joining: { mode: 'Layered', configImage: { currentImage: OTHER } } },
    `warning pool worker: new nodes booted something else than ${IMAGE}: new`,
  ],
  [
    'a machine came with the stock image',
    { joining: { mode: 'Standard' } },
    `warning pool worker: new nodes booted something else than ${IMAGE}: new`,
  ],
  [
    'a machine came with the image',
    { joining: { mode: 'Layered', configImage: { currentImage: IMAGE } } },
    `ok pool worker: new nodes boot ${IMAGE}`,
  ],
  ['a machine has not reported', { joining: {} }, `ok pool worker: new nodes boot ${IMAGE}`],
])('of new nodes: %s', (_what, seen, begins) => {
  expect(judge(seen)).toEqual([expect.stringContaining(begins)]);
});
