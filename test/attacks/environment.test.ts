/**
 * Who may create ConfigMaps in Shale's namespace wants a variable such as NODE_OPTIONS in the environment of its
 * processes.
 */

import path from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Deployment, EnvironmentVariable } from '../../api/kubernetes.ts';
import type { KubernetesObject } from '../../api/object.ts';
import { builderDeployment } from '../../opt-in/builder-deployment.ts';
import { readKustomization } from '../../workshop/sandbox/manifests/kustomization.ts';

const MANIFESTS = path.join(import.meta.dirname, '../../manifests');
const OTEL = { name: 'OTEL_EXPORTER_OTLP_ENDPOINT', value: 'http://otel-collector.observability.svc:4318' };

const base = await readKustomization(path.join(MANIFESTS, 'base'));
const withComponent = (component: string) =>
  readKustomization(path.join(MANIFESTS, 'components', component), base);
const podSpecOf = (objects: readonly KubernetesObject[], kind: string, name: string) => {
  const found = objects.find((object) => object.kind === kind && object.metadata.name === name);
  if (found === undefined) throw new Error(`no ${kind} ${name}`);
  return (found as Deployment).spec.template.spec;
};
const operatorOf = (objects: readonly KubernetesObject[]) =>
  podSpecOf(objects, 'Deployment', 'shale-operator');
const daemonOf = (objects: readonly KubernetesObject[]) => podSpecOf(objects, 'DaemonSet', 'shale-daemon');
const environmentOf = (spec: ReturnType<typeof podSpecOf>): readonly EnvironmentVariable[] =>
  spec.containers[0]?.env ?? [];
const builderWith = (environment: readonly EnvironmentVariable[]) =>
  builderDeployment('shale-system', 'shale:1', [], { environment }).spec.template.spec;

describe.each([
  ['operator', operatorOf(await readKustomization(path.join(MANIFESTS, 'overlays/complete')))],
  ['daemon', daemonOf(await readKustomization(path.join(MANIFESTS, 'overlays/complete')))],
  ['builder', builderWith([])],
  [
    'page',
    podSpecOf(await readKustomization(path.join(MANIFESTS, 'overlays/complete')), 'Deployment', 'shale-page'),
  ],
])('the %s', (process, spec) => {
  test('has no variables but those that its manifest names', () => {
    for (const container of spec.containers) expect(container).not.toHaveProperty('envFrom');
  });

  test('has none of them from an object that may be created later, but the address of a receiver', () => {
    const elsewhere = environmentOf(spec).filter(
      ({ valueFrom }) => valueFrom !== undefined && !('fieldRef' in (valueFrom as object)),
    );
    expect(elsewhere.map(({ name }) => name)).toEqual(process === 'operator' ? ['SHALE_NOTIFY_URL'] : []);
  });

  test('mounts no ConfigMap', () => {
    expect(JSON.stringify(spec.volumes ?? [])).not.toContain('configMap');
  });
});

test.each<[string, readonly EnvironmentVariable[]]>([
  ['tracing', [OTEL]],
  [
    'egress-proxy',
    [
      { name: 'HTTPS_PROXY', value: 'http://proxy.example.com:3128' },
      { name: 'NO_PROXY', value: '.svc,.cluster.local,10.0.0.0/8' },
    ],
  ],
])(
  'the component %s writes its variables into the manifests, from where the builder has them',
  async (component, added) => {
    const objects = await withComponent(component);
    for (const spec of [operatorOf(objects), daemonOf(objects)])
      expect(environmentOf(spec)).toEqual(expect.arrayContaining([...added]));
    const builder = environmentOf(builderWith(environmentOf(operatorOf(objects))));
    expect(builder.filter(({ name }) => name !== 'POD_NAMESPACE')).toEqual(added);
  },
);

test('the builder has a token from the Secret that the operator names, and nothing that is the operator’s own', () => {
  const valueFrom = { secretKeyRef: { name: 'shale-tracing', key: 'OTEL_EXPORTER_OTLP_HEADERS' } };
  const headers = { name: 'OTEL_EXPORTER_OTLP_HEADERS', valueFrom };
  const others = ['NODE_OPTIONS', 'POD_NAME', 'SHALE_NOTIFY_URL', 'LD_PRELOAD'].map((name) => ({
    name,
    value: 'x',
  }));
  expect(environmentOf(builderWith([headers, ...others])).map(({ name }) => name)).toEqual([
    'POD_NAMESPACE',
    headers.name,
  ]);
});
