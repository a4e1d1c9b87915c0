import path from 'node:path';
import { expect, test } from 'vitest';
import type { KubernetesObject } from '../../api/object.ts';
import { builderDeployment } from '../../opt-in/builder-deployment.ts';
import { readKustomization } from '../../workshop/sandbox/manifests/kustomization.ts';

const MANIFESTS = path.join(import.meta.dirname, '../../manifests/overlays/complete');

interface Workload extends KubernetesObject {
  readonly spec: {
    readonly template: {
      readonly spec: {
        readonly containers: readonly Readonly<Record<string, { readonly timeoutSeconds?: number }>>[];
      };
    };
  };
}

/** A process that computes on a busy node answers late; the kubelet gives it a second unless told otherwise. */
test('no process is restarted, or taken for not ready, because it answers after a second', async () => {
  const builder = builderDeployment('shale-system', 'shale:1', [], { metricsPort: 8080 });
  const installed = await readKustomization(MANIFESTS);
  const workloads = [...installed, builder as unknown as KubernetesObject].filter(({ kind }) =>
    ['DaemonSet', 'Deployment'].includes(kind),
  ) as Workload[];
  expect(workloads.map(({ metadata }) => metadata.name).sort()).toEqual([
    ...['machine-os-builder', 'shale-daemon', 'shale-operator', 'shale-page'],
  ]);
  for (const { metadata, spec } of workloads) {
    for (const container of spec.template.spec.containers) {
      const seconds = (probe: string) => container[probe]?.timeoutSeconds ?? 1;
      expect([metadata.name, seconds('livenessProbe')]).toEqual([metadata.name, 10]);
      expect([metadata.name, seconds('readinessProbe')]).toEqual([metadata.name, 5]);
    }
  }
});
