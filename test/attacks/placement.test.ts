import path from 'node:path';
import { expect, test } from 'vitest';
import type { Deployment } from '../../api/kubernetes.ts';
import { builderDeployment } from '../../opt-in/builder-deployment.ts';
import { readKustomization } from '../../workshop/sandbox/manifests/kustomization.ts';

/** A worker that was taken over has the tokens of what runs on it: the operator's decides what every node runs. */

const BASE = path.join(import.meta.dirname, '../../manifests/base');
const CONTROL_PLANE = 'node-role.kubernetes.io/control-plane';

test.each([
  [
    'operator',
    async () =>
      (await readKustomization(BASE)).find(
        ({ kind, metadata }) => kind === 'Deployment' && metadata.name === 'shale-operator',
      ) as Deployment | undefined,
  ],
  [
    'page',
    async () =>
      (await readKustomization(path.join(BASE, '../overlays/complete'))).find(
        ({ kind, metadata }) => kind === 'Deployment' && metadata.name === 'shale-page',
      ) as Deployment | undefined,
  ],
  ['builder', async () => builderDeployment('shale-system', 'shale:1', [])],
])('the %s prefers control-plane nodes, and tolerates their taint', async (_name, read) => {
  const pod = (await read())?.spec.template.spec;
  expect(pod?.affinity).toEqual({
    nodeAffinity: {
      preferredDuringSchedulingIgnoredDuringExecution: [
        { weight: 100, preference: { matchExpressions: [{ key: CONTROL_PLANE, operator: 'Exists' }] } },
      ],
    },
  });
  expect(pod?.tolerations).toContainEqual({ key: CONTROL_PLANE, operator: 'Exists', effect: 'NoSchedule' });
});
