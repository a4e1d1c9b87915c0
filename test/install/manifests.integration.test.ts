/** The manifests against Kubernetes' own schema and an API server: fields, labels, a second apply. */
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import type { Deployment } from '../../api/kubernetes.ts';
import type { KubernetesObject } from '../../api/object.ts';
import { by } from '../../api/order.ts';
import { tokenConnection } from '../../cluster/connection.ts';
import { createApiClient } from '../../cluster/http-api-client.ts';
import { builderDeployment } from '../../opt-in/builder-deployment.ts';
import { type ApiServer, startApiServer } from '../../workshop/apiserver/start.ts';
import { applyObjects } from '../../workshop/sandbox/manifests/apply.ts';
import { readKustomization } from '../../workshop/sandbox/manifests/kustomization.ts';
import { log } from '../e2e/cluster-under-test.ts';
import { problemsOf } from './kubernetes-schema.ts';
import { isOnPath } from './on-path.ts';

const MANIFESTS = path.join(import.meta.dirname, '../../manifests');
const overlays = (await readdir(path.join(MANIFESTS, 'overlays'))).map((name) => `overlays/${name}`);
/** Of other operators, which not every cluster has: the embedded API server doesn't know them. */
const FOREIGN = /^(monitoring\.coreos\.com|cert-manager\.io|runtime\.cluster\.x-k8s\.io)\//;
const isForeign = ({ apiVersion }: KubernetesObject) => FOREIGN.test(apiVersion);

let server: ApiServer;
beforeAll(async () => {
  server = await startApiServer();
});
afterAll(() => server.stop());

describe.each(['base', ...overlays])('manifests/%s', (name) => {
  const directory = path.join(MANIFESTS, name);

  test('has only fields that Kubernetes has, and all that it asks for', async () => {
    const problems = (await readKustomization(directory)).flatMap((object) =>
      (problemsOf(object) ?? []).map((problem) => `${object.kind} ${object.metadata.name}${problem}`),
    );
    expect(problems).toEqual([]);
  });

  test('is labelled, and names each object once', async () => {
    const objects = await readKustomization(directory);
    const names = objects.map(({ kind, metadata }) => `${kind} ${metadata.namespace ?? ''}/${metadata.name}`);
    expect(new Set(names).size).toBe(names.length);
    for (const { metadata } of objects) {
      expect(metadata.labels, metadata.name).toMatchObject({ 'app.kubernetes.io/part-of': 'shale' });
    }
  });

  test('is taken by an API server, and a second time', async () => {
    const client = createApiClient(tokenConnection(server.url, server.adminToken, server.caPem));
    const objects = (await readKustomization(directory)).filter((object) => !isForeign(object));
    const { signal } = new AbortController();
    await applyObjects(client, objects, { log, signal });
    await applyObjects(client, objects, { log, signal });
  });

  test.runIf(isOnPath('kubectl'))('is to kubectl what it is here', async () => {
    const { stdout } = await execa('kubectl', ['kustomize', directory]);
    const theirs = parseAllDocuments(stdout).map((document) => document.toJS() as KubernetesObject);
    expect(sorted(theirs)).toEqual(sorted(await readKustomization(directory)));
  });
});

test("the builder's Deployment, which the operator makes, is one of Kubernetes too", () => {
  const deployment = builderDeployment('shale-system', 'shale:1', [], { metricsPort: 8080 });
  expect(problemsOf(deployment as Deployment)).toEqual([]);
});

test.each<[string, object, string[]]>([
  [
    'an unknown field',
    { spec: { podSelector: {}, ports: [] } },
    ['.spec.ports: unknown field of V1NetworkPolicySpec'],
  ],
  [
    'a wrong type',
    { spec: { podSelector: {}, policyTypes: 'Ingress' } },
    ['.spec.policyTypes: expected a list'],
  ],
  [
    'a missing field',
    { spec: { podSelector: { matchExpressions: [{ key: 'a' }] } } },
    ['.spec.podSelector.matchExpressions[0].operator: missing in V1LabelSelectorRequirement'],
  ],
])('%s is found', (_, rest, problems) => {
  const object = {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name: 'a' },
    ...rest,
  };
  expect(problemsOf(object as KubernetesObject)).toEqual(problems);
});

function sorted(objects: readonly KubernetesObject[]): KubernetesObject[] {
  const key = ({ kind, metadata }: KubernetesObject) =>
    `${kind} ${metadata.namespace ?? ''}/${metadata.name}`;
  return [...objects].sort(by(key));
}
