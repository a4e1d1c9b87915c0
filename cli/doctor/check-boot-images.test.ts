import { expect, test } from 'vitest';
import type { MachineConfigNodeStatus } from '../../api/machine-config-node.ts';
import { annotations } from '../../api/names.ts';
import { type DigestedPullspec, parseDigestedPullspec } from '../../api/references.ts';
import { aMachineConfigNode, aMachineOSConfig, aNode, aPool, aRecord } from '../../test/fixtures/objects.ts';
import { observed } from '../../test/fixtures/observed-cluster.ts';
import { judgeBootImages } from './check-boot-images.ts';

const [IMAGE, OTHER, TARGET] = ['1', '2', '3'].map((digit) =>
  parseDigestedPullspec(`r.io/os/worker@sha256:${digit.repeat(64)}`),
) as [DigestedPullspec, DigestedPullspec, DigestedPullspec];
const TAG = 'r.io/os/worker:current';

const judge = (more: {
  readonly boots?: string;
  readonly tagNames?: string;
  readonly assigned?: readonly string[];
  readonly joining?: MachineConfigNodeStatus;
  /** What the joining node is assigned. */
  readonly joinsTo?: string;
  readonly inServiceSince?: boolean;
  readonly forbidden?: boolean;
}) => {
  const { boots = IMAGE, tagNames = IMAGE, assigned = [], joining, joinsTo = TARGET } = more;
  const pool = {
    ...aPool('worker'),
    status: boots === '' ? {} : { bootImage: { image: boots, proof: 'Rollout' as const } },
  };
  const { spec, ...rest } = aMachineOSConfig('worker');
  const machineOSConfig = {
    ...rest,
    spec: { ...spec, renderedImagePushSpec: 'r.io/os/worker:latest' },
    status: { publishedImage: { tag: TAG, image: tagNames } },
  };
  const inService = assigned.map((desiredImage, index) =>
    aMachineConfigNode(`n${index}`, { configImage: { desiredImage } }),
  );
  const newNode = aNode('new', {
    metadata: {
      name: 'new',
      labels: { 'node-role.kubernetes.io/worker': '' },
      ...(more.inServiceSince === true ? { annotations: { [annotations.inService]: 'true' } } : {}),
    },
    spec: { taints: [{ key: 'shale.dev/not-configured', effect: 'NoSchedule' }] },
  });
  const config = 'rendered-worker-1';
  const record = aRecord(pool, { config }, ...[OTHER, IMAGE, TARGET].map((image) => ({ config, image })));
  const findings = judgeBootImages(
    observed({
      pools: [pool],
      machineOSConfigs: [machineOSConfig],
      machineConfigNodes: [
        ...inService,
        ...(joining === undefined
          ? []
          : [aMachineConfigNode('new', { configImage: { desiredImage: joinsTo } }, joining)]),
      ],
      nodes: joining === undefined ? [] : [newNode],
    }),
    more.forbidden === true ? undefined : record,
  );
  return findings.map(({ level, what }) => `${level} ${what}`);
};

test.each<[string, Parameters<typeof judge>[0], string]>([
  ['all is well', { assigned: [IMAGE, OTHER] }, `ok pool worker: new nodes boot ${IMAGE}`],
  ['no image is proven yet', { boots: '' }, 'ok pool worker: new nodes boot the stock image: no rollout'],
  ['the tag is behind, which is a condition', { tagNames: OTHER }, `ok pool worker: new nodes boot ${IMAGE}`],
  [
    'the nodes go to a later image',
    { assigned: [TARGET] },
    `warning pool worker: new nodes boot ${IMAGE}, to which none of its nodes is assigned (their target is 1 image later), so`,
  ],
  [
    'the nodes go to an earlier image',
    { assigned: [OTHER] },
    `warning pool worker: new nodes boot ${IMAGE}, to which none of its nodes is assigned, so`,
  ],
  [
    'a machine came with an older image',
    { assigned: [IMAGE], joining: { mode: 'Layered', configImage: { currentImage: OTHER } } },
    `warning pool worker: new nodes booted something else than ${IMAGE}: new (another image, 1 image behind)`,
  ],
  [
    'a machine came with the stock image',
    { assigned: [IMAGE], joining: { mode: 'Standard' } },
    `warning pool worker: new nodes booted something else than ${IMAGE}: new (the stock image, 2 images behind)`,
  ],
  [
    'a machine came with an older image, and nobody may read the revisions',
    {
      assigned: [IMAGE],
      joining: { mode: 'Layered', configImage: { currentImage: OTHER } },
      forbidden: true,
    },
    `warning pool worker: new nodes booted something else than ${IMAGE}: new (another image)`,
  ],
  [
    'a machine has its target by now',
    { assigned: [IMAGE], joining: { mode: 'Layered', configImage: { currentImage: TARGET } } },
    `ok pool worker: new nodes boot ${IMAGE}`,
  ],
  [
    'somebody has tainted a node in service',
    { assigned: [IMAGE], joining: { mode: 'Standard' }, inServiceSince: true },
    `ok pool worker: new nodes boot ${IMAGE}`,
  ],
  [
    'a machine came with the image',
    { assigned: [IMAGE], joining: { mode: 'Layered', configImage: { currentImage: IMAGE } } },
    `ok pool worker: new nodes boot ${IMAGE}`,
  ],
  [
    'a machine has not reported',
    { assigned: [IMAGE], joining: {} },
    `ok pool worker: new nodes boot ${IMAGE}`,
  ],
])('of new nodes: %s', (_what, seen, begins) => {
  expect(judge(seen)).toEqual([expect.stringContaining(begins)]);
});
