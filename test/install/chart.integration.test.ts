/** The chart whole, with each of its values, beside the manifests; helm renders it too where it is installed. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import type { KubernetesObject } from '../../api/object.ts';
import { by } from '../../api/order.ts';
import { chartFiles } from '../../charts/chart-files.ts';
import { writeChart } from '../../charts/make.ts';
import { chartValues } from '../../charts/values-schema.ts';
import { parseBuilderPod } from '../../opt-in/builder-pod.ts';
import { readKustomization } from '../../workshop/sandbox/manifests/kustomization.ts';
import { problemsOf } from './kubernetes-schema.ts';
import { isOnPath } from './on-path.ts';
import { renderChart, renderTemplate } from './render-chart.ts';

const MANIFESTS = path.join(import.meta.dirname, '../../manifests');
const withoutHelm = isOnPath('helm') ? '' : ' (skipped: there is no helm on the PATH)';
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
    (word) => !['--lease-namespace', 'medik8s-leases', '--builder-pod', NO_SETTINGS].includes(word),
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
  expect(argumentsOf(operatorOf(chart)).slice(-6)).toEqual([
    ...['--lease-namespace', 'leases', '--builder-pod', NO_SETTINGS],
    ...['--container-runtime-unit', 'containerd.service'],
  ]);
  expect(argumentsOf(chart.find(({ kind }) => kind === 'DaemonSet')).slice(-2)).toEqual([
    '--log-level',
    'debug',
  ]);
  expect(chart.flatMap((object) => problemsOf(object) ?? [])).toEqual([]);
});

test('has alerts name the page of runbooks that is set', async () => {
  const page = 'https://wiki.example.com/shale';
  const chart = await renderChart(chartDir, {
    namespace: 'os',
    values: { monitoring: true, runbooks: page },
  });
  const text = JSON.stringify(chart.find(({ kind }) => kind === 'PrometheusRule'));
  const named = [...text.matchAll(/"runbook_url":"([^"#]*)#(\w+)"/g)];
  expect(new Set(named.map(([, url]) => url))).toEqual(new Set([page]));
  expect(named.map(([, , section]) => section)).toContain('shalenodesdegraded');
  expect(text).not.toContain('shale.dev/docs');
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
    for (const { kind, metadata } of objects)
      if (kind === 'Deployment') argumentsOf(deploymentOf(objects, metadata.name)).sort();
    return sorted(objects);
  };
  expect(ordered(chart)).toEqual(ordered(ofTemplates(expected).map(withLeaseNamespace)));
});

test('has the update extension of Cluster API, its certificate and its rights as the components have them', async () => {
  const components = ['cluster-api', 'cluster-api-certificate', 'cluster-api-workload'];
  const values = { clusterApi: true, clusterApiCertificate: true, clusterApiWorkload: true };
  const chart = await renderChart(chartDir, { namespace: 'shale-system', values });
  let expected = await readKustomization(path.join(MANIFESTS, 'base'));
  for (const component of ['admission-policies', 'network-policies', ...components]) {
    expected = await readKustomization(path.join(MANIFESTS, 'components', component), expected);
  }
  expect(sorted(chart)).toEqual(sorted(ofTemplates(expected).map(withLeaseNamespace)));
});

test('gives the page flags of its own, and the operator none of the page', async () => {
  const page = { arguments: ['--cluster-name', 'production'] };
  const chart = await renderChart(chartDir, { namespace: 'os', values: { livePage: true, page } });
  expect(argumentsOf(deploymentOf(chart, 'shale-page'))).toEqual([
    ...['page', '--port', '8090', '--metrics-port', '8080'],
    ...['--lease-namespace', 'medik8s-leases', '--cluster-name', 'production'],
  ]);
  expect(argumentsOf(operatorOf(chart)).join(' ')).not.toMatch(/page|cluster-name/);
});

test("sets each process's resources, where it runs, and what its image is pulled with", async () => {
  const spread = { podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [] } };
  const pod = {
    nodeSelector: { disk: 'fast' },
    podAnnotations: { 'sidecar.istio.io/inject': 'false' },
    podLabels: { team: 'os' },
    resources: { requests: { cpu: '1', memory: '1Gi' }, limits: { memory: '2Gi' } },
  };
  const placed = { ...pod, affinity: spread, tolerations: [{ key: 'os', operator: 'Exists' }] };
  const values = {
    livePage: true,
    imagePullSecrets: [{ name: 'pull' }],
    operator: placed,
    page: placed,
    builder: placed,
    daemon: pod,
  };
  const chart = await renderChart(chartDir, { namespace: 'shale-system', values });
  const [operator, page, daemon] = [
    operatorOf(chart),
    deploymentOf(chart, 'shale-page'),
    chart.find(({ kind }) => kind === 'DaemonSet'),
  ].map((object) => (object as WithPods | undefined)?.spec.template);
  for (const template of [operator, page, daemon]) {
    expect(template?.metadata).toMatchObject({
      annotations: { 'sidecar.istio.io/inject': 'false' },
      labels: { team: 'os' },
    });
    expect(template?.spec).toMatchObject({
      imagePullSecrets: [{ name: 'pull' }],
      nodeSelector: { 'kubernetes.io/os': 'linux', disk: 'fast' },
      containers: [{ resources: pod.resources }],
    });
  }
  expect(operator?.spec).toMatchObject({ affinity: spread });
  expect(operator?.spec.tolerations).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ key: 'node-role.kubernetes.io/control-plane' }),
      { key: 'os', operator: 'Exists' },
    ]),
  );
  const flags = argumentsOf(operatorOf(chart));
  const settings = parseBuilderPod(flags[flags.indexOf('--builder-pod') + 1] ?? '');
  expect(settings).toEqual(placed);
  expect(chart.flatMap((object) => problemsOf(object) ?? [])).toEqual([]);
});

test('its schema takes its own values, and rejects one that is misspelt or of another kind', async () => {
  const values = parse(await chartFile('values.yaml')) as Readonly<Record<string, unknown>>;
  expect(chartValues.safeParse(values).error).toBeUndefined();
  expect(chartValues.safeParse({ ...values, replicas: 2 }).error?.message).toContain('replicas');
  expect(chartValues.safeParse({ ...values, tracingEndpoint: 'collector:4318' }).success).toBe(false);
  const schema = JSON.parse(await chartFile('values.schema.json'));
  expect(schema).toMatchObject({ type: 'object', additionalProperties: false });
});

test('its README names every value with its default', async () => {
  const readme = await chartFile('README.md');
  expect(readme).toContain('| `operator.replicas` | `1` | more than one: the others wait to take over |');
  expect(readme).toContain('| `imagePullSecrets` | `[]` |');
  const rows = readme.split('\n').filter((line) => line.startsWith('| `'));
  const leaves = (value: unknown, depth: number): number =>
    depth > 0 && typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.values(value).reduce((sum: number, item) => sum + leaves(item, depth - 1), 0)
      : 1;
  expect(rows).toHaveLength(leaves(parse(await chartFile('values.yaml')), 2));
});

test('leaves out what values switch off', async () => {
  const values = { admissionPolicies: false, networkPolicies: false, createLeaseNamespace: false };
  const chart = await renderChart(chartDir, { namespace: 'os', values });
  const kinds = chart.map(({ kind }) => kind);
  expect(kinds).not.toContain('NetworkPolicy');
  const namespaces = chart.filter(({ kind }) => kind === 'Namespace');
  expect(namespaces.map(({ metadata }) => metadata.name)).toEqual(['shale-builds']);
  expect(kinds).not.toContain('PodDisruptionBudget');
  // Those that hold the limits of a daemon's and the builder's token, of the pods of builds, of what the operator
  // records, and of who has a Secret used, are no matter of taste.
  expect(kinds.filter((kind) => kind === 'ValidatingAdmissionPolicy')).toHaveLength(16);
});

test.runIf(isOnPath('helm'))(`is to Helm what it is here${withoutHelm}`, async () => {
  const { stdout } = await execa('helm', [
    'template',
    'shale',
    chartDir,
    '--namespace',
    'os',
    // Without it Helm takes the version that its makers set, and one built by `go install` a very old one.
    '--kube-version',
    '1.36.0',
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
  [
    'an if of an empty map, and not',
    'a{{ if .Values.map }}b{{ end }}{{ if not .Values.map }}c{{ end }}',
    'ac',
  ],
  ['YAML in its place', 'a:\n  {{- toYaml .Values.deep | nindent 2 }}', 'a:\n  b: 1\n  c:\n    - 2'],
  ['JSON in quotes', '{{ toJson .Values.deep | quote }}', '"{\\"b\\":1,\\"c\\":[2]}"'],
  ['braces', '{{ "{{" }} $value }}', '{{ $value }}'],
])("the renderer knows %s, as Go's templates do", (_, template, expected) => {
  const root = { Values: { a: 1, none: false, list: ['x', 'y'], map: {}, deep: { b: 1, c: [2] } } };
  expect(renderTemplate(template, { root, dot: root })).toBe(expected);
});

test('the renderer refuses what it does not know', () => {
  expect(() => renderTemplate('{{ include "a" . }}', { root: {}, dot: {} })).toThrow('include "a" .');
});

function chartFile(name: string): Promise<string> {
  return readFile(path.join(chartDir, name), 'utf8');
}

/** A chart's definitions lie in crds/, and Helm makes the release's namespace. */
function ofTemplates(objects: readonly KubernetesObject[]): KubernetesObject[] {
  return objects.filter(
    ({ kind, metadata }) =>
      kind !== 'CustomResourceDefinition' && !(kind === 'Namespace' && metadata.name === 'shale-system'),
  );
}

interface WithPods extends KubernetesObject {
  readonly spec: {
    readonly template: {
      readonly metadata: unknown;
      readonly spec: { readonly containers: { args: string[] }[]; readonly tolerations?: readonly unknown[] };
    };
  };
}

function argumentsOf(object: KubernetesObject | undefined): string[] {
  return (object as WithPods | undefined)?.spec.template.spec.containers[0]?.args ?? [];
}

function operatorOf(objects: readonly KubernetesObject[]): KubernetesObject | undefined {
  return deploymentOf(objects, 'shale-operator');
}

function deploymentOf(objects: readonly KubernetesObject[], name: string): KubernetesObject | undefined {
  return objects.find(({ kind, metadata }) => kind === 'Deployment' && metadata.name === name);
}

/** What the operator gets about its builder's pod where no value is set. */
const NO_SETTINGS =
  '{"affinity":{},"nodeSelector":{},"podAnnotations":{},"podLabels":{},"resources":{},"tolerations":[]}';

/** The chart says where leases are even where the default says so, and an uninstall leaves those of other operators. */
function withLeaseNamespace(object: KubernetesObject): KubernetesObject {
  if (object.kind === 'Namespace' && object.metadata.name === 'medik8s-leases') {
    return {
      ...object,
      metadata: { ...object.metadata, annotations: { 'helm.sh/resource-policy': 'keep' } },
    };
  }
  if (object.kind !== 'Deployment' && object.kind !== 'DaemonSet') return object;
  // The extension of a management cluster has no leases of nodes.
  if (object.metadata.name === 'shale-cluster-api') return object;
  const copy = structuredClone(object) as WithPods;
  for (const container of copy.spec.template.spec.containers) {
    container.args.push('--lease-namespace', 'medik8s-leases');
    if (object.metadata.name === 'shale-operator') container.args.push('--builder-pod', NO_SETTINGS);
  }
  return copy;
}

function sorted(objects: readonly KubernetesObject[]): KubernetesObject[] {
  const key = ({ kind, metadata }: KubernetesObject) =>
    `${kind} ${metadata.namespace ?? ''}/${metadata.name}`;
  return [...objects].sort(by(key));
}
