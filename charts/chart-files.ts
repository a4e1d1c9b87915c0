import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { parse } from 'yaml';
import { SHALE_VERSION } from '../api/names.ts';
import type { KubernetesObject } from '../api/object.ts';
import { readObjects } from '../cli/change/object-files.ts';
import { crdFiles } from '../manifests/crd-files.ts';
import { readKustomization } from '../workshop/sandbox/manifests/kustomization.ts';
import { type HelmCondition, helmTemplate } from './template.ts';
import { valuesSchema, valuesTable } from './values-schema.ts';

const MANIFESTS = path.join(import.meta.dirname, '../manifests');
const HEADER = '# Generated from manifests/ by `make chart`. Do not edit.\n';
/** Of values.yaml: what `make image` names it. */
const DEFAULT_IMAGE = 'shale:latest';
/** What a person wrote and is taken as it is, by its path in the chart. */
const BY_HAND: Readonly<Record<string, string>> = {
  'templates/NOTES.txt': 'NOTES.txt',
};

interface Switched {
  readonly component: string;
  readonly condition: HelmCondition;
  /** The component whose objects its patches are about; absent: those of the base. */
  readonly patches?: string;
}

/**
 * The components that a value switches on; the others are values themselves (operator.arguments, operator.replicas,
 * environment).
 */
const SWITCHED: readonly Switched[] = [
  { component: 'admission-policies', condition: '.Values.admissionPolicies' },
  { component: 'network-policies', condition: '.Values.networkPolicies' },
  { component: 'monitoring', condition: '.Values.monitoring' },
  { component: 'machine-health-checks', condition: '.Values.machineHealthChecks' },
  { component: 'live-page', condition: '.Values.livePage' },
  {
    component: 'live-page-service',
    condition: '.Values.livePageTlsSecret',
    patches: 'live-page',
  },
  { component: 'cluster-api', condition: '.Values.clusterApi' },
  { component: 'cluster-api-certificate', condition: '.Values.clusterApiCertificate' },
  { component: 'cluster-api-workload', condition: '.Values.clusterApiWorkload' },
  { component: 'high-availability', condition: 'gt (int .Values.operator.replicas) 1' },
];

/**
 * @param image name of Shale's image that the values have by default.
 * @returns the files of the chart by their path in it.
 */
export async function chartFiles(image = DEFAULT_IMAGE): Promise<ReadonlyMap<string, string>> {
  const files = new Map<string, string>();
  files.set(
    'Chart.yaml',
    `${HEADER}apiVersion: v2
name: shale
description: Operating-system images built on the Kubernetes cluster that runs them
type: application
version: ${SHALE_VERSION}
appVersion: ${SHALE_VERSION}
kubeVersion: ">=1.30.0-0"
`,
  );
  for (const [name, file] of Object.entries(BY_HAND)) {
    files.set(name, await byHand(file));
  }
  const values = (await byHand('values.yaml')).replace(`image: ${DEFAULT_IMAGE}\n`, `image: ${image}\n`);
  files.set('values.yaml', values);
  files.set('values.schema.json', valuesSchema());
  files.set('README.md', (await byHand('README.md')).replace('VALUES', valuesTable(parse(values))));
  for (const [name, content] of crdFiles()) {
    if (name !== 'kustomization.yaml') files.set(`crds/${name}`, content);
  }
  for (const [name, objects] of await baseFiles()) {
    const condition = name === 'namespace.yaml' ? '.Values.createLeaseNamespace' : undefined;
    files.set(`templates/${name}`, helmTemplate(objects, condition, HEADER));
  }
  for (const { component, condition, patches } of SWITCHED) {
    const objects = await componentObjects(component, patches);
    files.set(`templates/${component}.yaml`, helmTemplate(objects, condition, HEADER));
  }
  return files;
}

function byHand(file: string): Promise<string> {
  return readFile(path.join(import.meta.dirname, file), 'utf8');
}

/**
 * @returns the objects of each file of the base, as kustomize makes them; Helm makes the release's namespace itself.
 */
async function baseFiles(): Promise<ReadonlyMap<string, readonly KubernetesObject[]>> {
  const base = path.join(MANIFESTS, 'base');
  const made = new Map((await readKustomization(base)).map((object) => [keyOf(object), object]));
  const { resources } = parse(await readFile(path.join(base, 'kustomization.yaml'), 'utf8')) as {
    readonly resources: readonly string[];
  };
  const files = new Map<string, readonly KubernetesObject[]>();
  for (const name of resources.filter((resource) => resource.endsWith('.yaml'))) {
    const objects = (await readObjects([path.join(base, name)])).map(
      (object) => made.get(keyOf(object)) ?? object,
    );
    files.set(
      name,
      objects.filter((object) => keyOf(object) !== 'Namespace /shale-system'),
    );
  }
  return files;
}

/** Its patches are about objects of the base or of another component, and are values of the chart. */
async function componentObjects(component: string, patches?: string): Promise<KubernetesObject[]> {
  const base = await readKustomization(path.join(MANIFESTS, 'base'));
  const below = patches === undefined ? base : await withComponent(patches, base);
  const known = new Set(below.map(keyOf));
  const both = await withComponent(component, below);
  return both.filter((object) => !known.has(keyOf(object)));
}

function withComponent(name: string, objects: readonly KubernetesObject[]): Promise<KubernetesObject[]> {
  return readKustomization(path.join(MANIFESTS, 'components', name), objects);
}

function keyOf({ kind, metadata }: KubernetesObject): string {
  return `${kind} ${metadata.namespace ?? ''}/${metadata.name}`;
}
