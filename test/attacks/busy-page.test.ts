/**
 * What is on the live page, others wrote: they decide how long it is computed. No process that changes nodes may wait
 * for that.
 */

import path from 'node:path';
import { expect, test } from 'vitest';
import type { DaemonSet, Deployment } from '../../api/kubernetes.ts';
import { builderDeployment } from '../../opt-in/builder-deployment.ts';
import { readKustomization } from '../../workshop/sandbox/manifests/kustomization.ts';
import { readImportGraph } from '../checks/import-graph.ts';

const ROOT = path.join(import.meta.dirname, '../..');
const ROOMS = [
  ...[
    'api',
    'builder',
    'cluster',
    'daemon',
    'disruption',
    'image',
    'machineconfig',
    'oci',
    'operator',
    'opt-in',
  ],
  ...['page', 'predict', 'rollout', 'view', 'x509'],
];
const graph = readImportGraph(ROOT, ROOMS);

/** @returns the files that a program has, with those that it loads later. */
function filesOf(program: string): ReadonlySet<string> {
  const files = new Set([program]);
  for (const file of files) for (const imported of graph.get(file) ?? []) files.add(imported);
  return files;
}

test.each(['operator', 'builder', 'daemon'])('the %s has no code of the page', (process) => {
  const files = [...filesOf(`${process}/main.ts`)];
  expect(files.length).toBeGreaterThan(50);
  expect(files.filter((file) => file.startsWith('page/'))).toEqual([]);
});

test('the page has code that only reads: none of the controllers, and no leader election', () => {
  const files = [...filesOf('page/main.ts')];
  expect(files.filter((file) => file.startsWith('page/')).length).toBeGreaterThan(15);
  expect(files.filter((file) => /^rollout\/(act|controllers)\/|leader-election/.test(file))).toEqual([]);
});

const complete = await readKustomization(path.join(ROOT, 'manifests/overlays/complete'));
const withService = await readKustomization(
  path.join(ROOT, 'manifests/components/live-page-service'),
  complete,
);
const workload = (name: string) => {
  const found = withService.find(
    ({ kind, metadata }) => /^(Deployment|DaemonSet)$/.test(kind) && metadata.name === name,
  );
  if (found === undefined) throw new Error(`no workload ${name}`);
  return (found as Deployment | DaemonSet).spec.template.spec;
};

test('it is a pod of its own, with an account that no other process has', () => {
  const page = workload('shale-page');
  expect(page.containers.map(({ args }) => args?.[0])).toEqual(['page']);
  const others = [
    workload('shale-operator'),
    workload('shale-daemon'),
    builderDeployment('shale-system', 'shale:1', []).spec.template.spec,
  ];
  expect(page.serviceAccountName).toBe('shale-page');
  for (const { serviceAccountName, containers } of others) {
    expect(serviceAccountName).not.toBe('shale-page');
    expect(containers.flatMap(({ args = [] }) => args.filter((flag) => /page|tls-dir/.test(flag)))).toEqual(
      [],
    );
  }
});

test('nothing of it can be taken from others without limit, and it can change nothing of its node', () => {
  const [container] = workload('shale-page').containers as readonly {
    readonly resources?: { readonly limits?: object };
    readonly securityContext?: object;
  }[];
  expect(container?.resources?.limits).toEqual({ cpu: expect.any(String), memory: expect.any(String) });
  expect(container?.securityContext).toEqual({
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    runAsNonRoot: true,
    runAsUser: 65532,
    capabilities: { drop: ['ALL'] },
    seccompProfile: { type: 'RuntimeDefault' },
  });
  expect(workload('shale-page')).not.toHaveProperty('hostNetwork');
});
