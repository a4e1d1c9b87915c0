import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import type { KubernetesObject } from '../../api/object.ts';
import { by } from '../../api/order.ts';
import { chartFiles } from '../../charts/chart-files.ts';
import { writeChart } from '../../charts/make.ts';
import { readKustomization } from '../../workshop/sandbox/manifests/kustomization.ts';
import { problemsOf } from './kubernetes-schema.ts';
import { isOnPath } from './on-path.ts';
import { renderChart, renderTemplate } from './render-chart.ts';

const MANIFESTS = path.join(import.meta.dirname, '../../manifests');
let chartDir: string;

beforeAll(async () => {
  chartDir = await mkdtemp(path.join(tmpdir(), 'shale-chart-'));
  await writeChart(chartDir);
});
afterAll(() => rm(chartDir, { recursive: true, force: true }));

test('is made the same each time', async () => {
  expect([...(await chartFiles())]).toEqual([...(await chartFiles())]);
});

test('in the default namespace it is the base with policies for admission and network', async () => {
  const chart = await renderChart(chartDir, { namespace: 'shale-system' });
  let expected = await readKustomization(path.join(MANIFESTS, 'base'));
  for (const component of ['admission-policies', 'network-policies']) {
    expected = await readKustomization(path.join(MANIFESTS, 'components', component), expected);
  }
  expect(sorted(chart)).toEqual(sorted(ofTemplates(expected).map(withLeaseNamespace)));
});

test('with all that values switch on it is the overlay with everything', async () => {
  const operator = { replicas: 2, arguments: [] };
  const values = { monitoring: true, livePage: true, operator };
  const chart = await renderChart(chartDir, { namespace: 'shale-system', values });
  const expected = await readKustomization(path.join(MANIFESTS, 'overlays/complete'));
  const names = (objects: readonly KubernetesObject[]) =>
    objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`).sort();
  expect(names(chart)).toEqual(names(ofTemplates(expected)));
  expect(operatorOf(chart)).toMatchObject({ spec: { replicas: 2 } });
  const flags = argumentsOf(operatorOf(chart)).filter(
    (word) => !['--lease-namespace', 'medik8s-leases'].includes(word),
  );
  expect(flags.toSorted()).toEqual(argumentsOf(operatorOf(expected)).toSorted());
  // Their braces are Prometheus' and Grafana's to fill in.
  const foreign = (objects: readonly KubernetesObject[]) =>
    sorted(objects.filter(({ kind }) => kind === 'PrometheusRule' || kind === 'ConfigMap'));
  expect(foreign(chart)).toEqual(foreign(expected));
});

test('takes namespaces, image and flags from its values, everywhere', async () => {
  const values = {
    image: 'registry.example.com/shale@sha256:abc',
    leaseNamespace: 'leases',
    monitoring: true,
    operator: { replicas: 1, arguments: ['--container-runtime-unit', 'containerd.service'] },
    daemon: { arguments: ['--log-level', 'debug'] },
  };
  const chart = await renderChart(chartDir, { namespace: 'os', values });
  const text = JSON.stringify(chart);
  expect(/shale-system|medik8s-leases|@@|"shale:latest"/.exec(text)?.[0]).toBeUndefined();
  expect(text).toContain('system:serviceaccount:os:shale-daemon');
  const namespaces = chart.filter(({ kind }) => kind === 'Namespace').map(({ metadata }) => metadata.name);
  expect(namespaces.sort()).toEqual(['leases', 'shale-builds']);
  expect(argumentsOf(operatorOf(chart)).slice(-4)).toEqual([
    ...['--lease-namespace', 'leases'],
    ...['--container-runtime-unit', 'containerd.service'],
  ]);
  expect(argumentsOf(chart.find(({ kind }) => kind === 'DaemonSet')).slice(-2)).toEqual([
    '--log-level',
    'debug',
  ]);
  expect(chart.flatMap((object) => problemsOf(object) ?? [])).toEqual([]);
});

test('serves the page on a Service where there is a certificate', async () => {
  const values = { livePage: true, livePageTlsSecret: 'shale-page-tls' };
  const chart = await renderChart(chartDir, { namespace: 'shale-system', values });
  let expected = await readKustomization(path.join(MANIFESTS, 'base'));
  for (const component of ['admission-policies', 'network-policies', 'live-page', 'live-page-service']) {
    expected = await readKustomization(path.join(MANIFESTS, 'components', component), expected);
  }
  // Which flag stands before which is of no matter.
  const ordered = (objects: readonly KubernetesObject[]) => {
    argumentsOf(operatorOf(objects)).sort();
    return sorted(objects);
  };
  expect(ordered(chart)).toEqual(ordered(ofTemplates(expected).map(withLeaseNamespace)));
});

test('leaves out what values switch off', async () => {
  const values = { admissionPolicies: false, networkPolicies: false, createLeaseNamespace: false };
  const chart = await renderChart(chartDir, { namespace: 'os', values });
  const kinds = chart.map(({ kind }) => kind);
  expect(kinds).not.toContain('NetworkPolicy');
  const namespaces = chart.filter(({ kind }) => kind === 'Namespace');
  expect(namespaces.map(({ metadata }) => metadata.name)).toEqual(['shale-builds']);
  expect(kinds).not.toContain('PodDisruptionBudget');
  // Those that hold the limits of a daemon's and the builder's token, and of the pods of builds, are no matter of taste.
  expect(kinds.filter((kind) => kind === 'ValidatingAdmissionPolicy')).toHaveLength(4);
});

test.runIf(isOnPath('helm'))('is to Helm what it is here', async () => {
  const { stdout } = await execa('helm', [
    'template',
    'shale',
    chartDir,
    '--namespace',
    'os',
    '--set',
    'monitoring=true',
  ]);
  const theirs = parseAllDocuments(stdout).map((document) => document.toJS() as KubernetesObject);
  const ours = await renderChart(chartDir, { namespace: 'os', values: { monitoring: true } });
  expect(sorted(theirs)).toEqual(sorted(ours));
});

test.each<[string, string, string]>([
  ['a value', 'a: {{ .Values.a }}!', 'a: 1!'],
  ['an if that holds', 'a\n{{- if .Values.a }}\nb\n{{- end }}\nc', 'a\nb\nc'],
  ['an if that does not', 'a\n{{- if .Values.none }}\nb\n{{- end }}\nc', 'a\nc'],
  [
    'a range within an if',
    '{{ if .Values.a }}{{ range .Values.list }}-{{ . | quote }}{{ end }}.{{ end }}',
    '-"x"-"y".',
  ],
  ['braces', '{{ "{{" }} $value }}', '{{ $value }}'],
])("the renderer knows %s, as Go's templates do", (_, template, expected) => {
  const root = { Values: { a: 1, none: false, list: ['x', 'y'] } };
  expect(renderTemplate(template, { root, dot: root })).toBe(expected);
});

test('the renderer refuses what it does not know', () => {
  expect(() => renderTemplate('{{ include "a" . }}', { root: {}, dot: {} })).toThrow('include "a" .');
});

/** A chart's definitions lie in crds/, and Helm makes the release's namespace. */
function ofTemplates(objects: readonly KubernetesObject[]): KubernetesObject[] {
  return objects.filter(
    ({ kind, metadata }) =>
      kind !== 'CustomResourceDefinition' && !(kind === 'Namespace' && metadata.name === 'shale-system'),
  );
}

interface WithPods extends KubernetesObject {
  readonly spec: { readonly template: { readonly spec: { readonly containers: { args: string[] }[] } } };
}

function argumentsOf(object: KubernetesObject | undefined): string[] {
  return (object as WithPods | undefined)?.spec.template.spec.containers[0]?.args ?? [];
}

function operatorOf(objects: readonly KubernetesObject[]): KubernetesObject | undefined {
  return objects.find(({ kind, metadata }) => kind === 'Deployment' && metadata.name === 'shale-operator');
}

/** The chart says where leases are even where the default says so. */
function withLeaseNamespace(object: KubernetesObject): KubernetesObject {
  if (object.kind !== 'Deployment' && object.kind !== 'DaemonSet') return object;
  const copy = structuredClone(object) as WithPods;
  for (const container of copy.spec.template.spec.containers) {
    container.args.push('--lease-namespace', 'medik8s-leases');
  }
  return copy;
}

function sorted(objects: readonly KubernetesObject[]): KubernetesObject[] {
  const key = ({ kind, metadata }: KubernetesObject) =>
    `${kind} ${metadata.namespace ?? ''}/${metadata.name}`;
  return [...objects].sort(by(key));
}
