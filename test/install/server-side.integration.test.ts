/**
 * What an API server says to the manifests: kube-apiserver where KUBEBUILDER_ASSETS names one, else the embedded one.
 */
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { KubernetesObject } from '../../api/object.ts';
import { writeChart } from '../../charts/make.ts';
import { type Answer, type Api, startApi } from '../../workshop/apiserver/conformance/api.ts';
import { readKustomization } from '../../workshop/sandbox/manifests/kustomization.ts';
import { patience } from '../fixtures/patience.ts';
import { isOnPath } from './on-path.ts';
import { renderChart } from './render-chart.ts';

const MANIFESTS = path.join(import.meta.dirname, '../../manifests');
const overlays = (await readdir(path.join(MANIFESTS, 'overlays'))).map((name) => `overlays/${name}`);
/** kubectl takes its time with some fifty objects. */
const KUBECTL_MS = 90_000;
let api: Api;
let dir: string;

beforeAll(async () => {
  api = await startApi();
  dir = await mkdtemp(path.join(tmpdir(), 'shale-server-side-'));
  await writeFile(path.join(dir, 'kubeconfig'), api.kubeconfig(), { mode: 0o600 });
  await writeChart(path.join(dir, 'chart'));
}, patience(90_000));
afterAll(async () => {
  await api.stop();
  await rm(dir, { recursive: true, force: true });
});

async function kubectl(args: readonly string[], objects?: readonly object[]): Promise<string> {
  const { stdout } = await execa('kubectl', args, {
    env: { KUBECONFIG: path.join(dir, 'kubeconfig'), HOME: dir },
    ...(objects === undefined ? {} : { input: objects.map((object) => JSON.stringify(object)).join('\n') }),
  });
  return stdout;
}

/** @returns a definition of another operator's kind, as far as an API server must know it to take objects. */
function foreignDefinition(
  kind: string,
  group = 'monitoring.coreos.com',
  { version = 'v1', scope = 'Namespaced' } = {},
): object {
  const plural = `${kind.toLowerCase()}s`;
  const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope,
      names: { kind, plural },
      versions: [{ name: version, served: true, storage: true, schema }],
    },
  };
}

describe.runIf(isOnPath('kubectl'))(
  'kubectl (skipped where there is none)',
  { timeout: patience(KUBECTL_MS) },
  () => {
    beforeAll(async () => {
      await kubectl(
        ['apply', '-f', '-'],
        [
          foreignDefinition('ServiceMonitor'),
          foreignDefinition('PrometheusRule'),
          foreignDefinition('Certificate', 'cert-manager.io'),
          foreignDefinition('Issuer', 'cert-manager.io'),
          foreignDefinition('ExtensionConfig', 'runtime.cluster.x-k8s.io', {
            version: 'v1beta2',
            scope: 'Cluster',
          }),
        ],
      );
      // What is tried needs its namespaces and definitions.
      await kubectl(['apply', '-k', path.join(MANIFESTS, 'base')]);
      await kubectl(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=60s']);
    }, patience(KUBECTL_MS));

    test.each(['base', ...overlays])('manifests/%s passes a server-side dry run', async (name) => {
      const told = await kubectl(['apply', '--dry-run=server', '-k', path.join(MANIFESTS, name)]);
      expect(told.split('\n').filter((line) => !line.endsWith('(server dry run)'))).toEqual([]);
    });

    test("the chart's objects pass it", async () => {
      const operator = { replicas: 2, arguments: [] };
      const values = { monitoring: true, livePage: true, operator };
      const objects = await renderChart(path.join(dir, 'chart'), { namespace: 'shale-system', values });
      const told = await kubectl(['apply', '--dry-run=server', '-f', '-'], objects);
      expect(told.split('\n')).toHaveLength(objects.length);
    });

    test('applying by the server twice changes nothing the second time', async () => {
      const overlay = path.join(MANIFESTS, 'overlays/complete');
      const versions = async () => {
        await kubectl(['apply', '--server-side', '--force-conflicts', '-k', overlay]);
        const { items } = JSON.parse(await kubectl(['get', '-k', overlay, '-o', 'json'])) as {
          readonly items: readonly { kind: string; metadata: { name: string; generation?: number } }[];
        };
        return items.map(({ kind, metadata }) => [kind, metadata.name, metadata.generation]);
      };
      const first = await versions();
      expect(await versions()).toEqual(first);
    });
  },
);

interface Workload extends KubernetesObject {
  readonly spec: { readonly template: { readonly metadata: object; readonly spec: object } };
}

/** @returns the answer to a pod of one of Shale's workloads in a namespace. */
async function tryPod(of: string, namespace: string): Promise<Answer> {
  const objects = await readKustomization(path.join(MANIFESTS, 'overlays/complete'));
  const { template } = (
    objects.find(({ metadata, kind }) => metadata.name === of && /Deployment|Set/.test(kind)) as Workload
  ).spec;
  return api.call('POST', `/api/v1/namespaces/${namespace}/pods?dryRun=All`, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { ...template.metadata, name: 'tried' },
    spec: template.spec,
  });
}

describe('Pod Security', () => {
  beforeAll(async () => {
    const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' };
    for (const [name, more] of [
      ['restricted', { labels }],
      ['privileged', { labels: { 'pod-security.kubernetes.io/enforce': 'privileged' } }],
    ] as const) {
      const metadata = { name, ...more };
      await api.call('POST', '/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata });
    }
  });

  test.each([
    ['the operator', 'restricted', 'shale-operator'],
    ['the page', 'restricted', 'shale-page'],
    ['the daemon', 'privileged', 'shale-daemon'],
  ])('lets %s run where pods are %s', async (_, namespace, of) => {
    const { status, body, headers } = await tryPod(of, namespace);
    expect([status, body.message, headers['warning']]).toEqual([201, undefined, undefined]);
  });

  test('keeps the daemon out of where pods are restricted', async (context) => {
    if (!api.isReal) context.skip('the embedded API server enforces no pod security');
    expect((await tryPod('shale-daemon', 'restricted')).status).toBe(403);
  });
});
