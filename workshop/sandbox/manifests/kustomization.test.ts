import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import type { DaemonSet } from '../../../api/kubernetes.ts';
import { readKustomization } from './kustomization.ts';

const base = path.join(import.meta.dirname, '../../../manifests/base');

test('reads every object of the manifests, labelled, with its image', async () => {
  const objects = await readKustomization(base);
  const kinds = new Set(objects.map(({ kind }) => kind));

  expect(kinds).toContain('CustomResourceDefinition');
  expect(kinds).toContain('ValidatingAdmissionPolicyBinding');
  expect(objects.every(({ metadata }) => metadata.labels?.['app.kubernetes.io/part-of'] === 'shale')).toBe(
    true,
  );
  const daemon = objects.find(({ kind }) => kind === 'DaemonSet') as DaemonSet;
  expect(daemon.spec.template.spec.containers.map(({ image }) => image)).toEqual(['shale:latest']);
});

test.for([
  ['registry.example:5000/shale:v1', 'registry.example:5000/shale:v1'],
  ['shale:v1', 'quay.example/shale:v2'],
  ['shale', 'quay.example/shale:v2'],
])('image %s becomes %s', async ([image, expected]) => {
  const directory = await mkdtemp(path.join(tmpdir(), 'shale-kustomization-'));
  try {
    await writeFile(
      path.join(directory, 'kustomization.yaml'),
      'resources: [pod.yaml]\nimages: [{ name: shale, newName: quay.example/shale, newTag: v2 }]\n',
    );
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'a' },
      spec: { containers: [{ name: 'a', image }] },
    };
    await writeFile(path.join(directory, 'pod.yaml'), JSON.stringify(pod));

    expect(await readKustomization(directory)).toEqual([
      { ...pod, spec: { containers: [{ name: 'a', image: expected }] } },
    ]);
  } finally {
    await rm(directory, { recursive: true });
  }
});

test('refuses what it does not know, by name', async () => {
  const directory = await mkdtemp(path.join(tmpdir(), 'shale-kustomization-'));
  try {
    await writeFile(path.join(directory, 'kustomization.yaml'), 'namePrefix: a-\n');
    await expect(readKustomization(directory)).rejects.toThrow(/kustomization\.yaml: .*"namePrefix"/s);
    const patch = 'patches: [{ target: { kind: Pod, name: a }, patch: "[]" }]\n';
    await writeFile(path.join(directory, 'kustomization.yaml'), patch);
    await expect(readKustomization(directory)).rejects.toThrow('there is no Pod a to patch');
  } finally {
    await rm(directory, { recursive: true });
  }
});
