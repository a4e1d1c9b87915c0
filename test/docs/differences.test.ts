import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { crdOf } from '../../api/crd.ts';
import { crdDefinitions } from '../../api/crd-definitions.ts';
import { nodeConditions } from '../../api/machine-config-node.ts';
import { machineOSConfigConditions } from '../../api/machine-os-config.ts';
import { offlineCluster } from '../../predict/objects/offline-cluster.ts';
import { warningsOf } from '../../predict/objects/offline-problems.ts';

const page = readFileSync(new URL('../../docs/differences-from-mco.md', import.meta.url), 'utf8');
const [, withoutEffect = ''] = page.split('\n## Fields without effect\n');

/** Of a MachineConfigNode (openshift/api, machineconfiguration/v1, StateProgress). */
const CONDITION_TYPES = [
  'UpdatePrepared',
  'UpdateExecuted',
  'UpdatePostActionComplete',
  'UpdateComplete',
  'Updated',
  'Resumed',
  'Drained',
  'AppliedFiles',
  'AppliedOSImage',
  'AppliedFilesAndOS',
  'ImagePulledFromRegistry',
  'Cordoned',
  'Uncordoned',
  'RebootedNode',
  'NodeDegraded',
  'PinnedImageSetsProgressing',
  'PinnedImageSetsDegraded',
  'InternalReleaseImageDegraded',
];

test('every condition type of MCO on nodes is written, or listed as one that is not', () => {
  const left = CONDITION_TYPES.filter((type) => !Object.hasOwn(nodeConditions, type));
  expect(left.filter((type) => !withoutEffect.includes(`\`${type}\``))).toEqual([]);
  // And none is listed that is written.
  const written = CONDITION_TYPES.filter((type) => Object.hasOwn(nodeConditions, type));
  expect(written.filter((type) => withoutEffect.includes(`the condition \`${type}\``))).toEqual([]);
});

test('the condition of MCO on a MachineOSConfig that began with an image is listed as one that is not written', () => {
  expect(machineOSConfigConditions).not.toHaveProperty('Seeded');
  expect(withoutEffect).toContain('the condition `Seeded` of a MachineOSConfig');
});

/**
 * Fields of OpenShift's definitions that Shale's own lack, by kind (openshift/api of August 2026, every feature gate on):
 * machineconfiguration/v1 and operator/v1, v1alpha1 and config/v1, compared field by field with manifests/crds.
 */
const LACKING: Readonly<Record<string, readonly string[]>> = {
  ClusterImagePolicy: ['status.conditions'],
  Image: [
    'spec.additionalTrustedCA',
    'spec.allowedRegistriesForImport',
    'spec.externalRegistryHostnames',
    'spec.imageStreamImportMode',
    'status.externalRegistryHostnames',
    'status.imageStreamImportMode',
    'status.internalRegistryHostname',
  ],
  ImagePolicy: ['status.conditions'],
  MachineConfigNode: ['status.internalReleaseImage', 'status.irreconcilableChanges'],
  MachineConfigPool: [
    ...['spec', 'status'].flatMap((half) =>
      ['apiVersion', 'fieldPath', 'kind', 'namespace', 'resourceVersion', 'uid'].map(
        (field) => `${half}.configuration.${field}`,
      ),
    ),
    'status.certExpirys',
  ],
  MachineConfiguration: [
    'spec.bootImageSkewEnforcement',
    'spec.failedRevisionLimit',
    'spec.forceRedeploymentReason',
    'spec.managedBootImages',
    'spec.observedConfig',
    'spec.succeededRevisionLimit',
    'spec.unsupportedConfigOverrides',
    'status.bootImageSkewEnforcementStatus',
    'status.managedBootImagesStatus',
  ],
};

test.each(Object.entries(LACKING))('fields that %s lacks are on the page, and lacking', (kind, fields) => {
  const definition = crdDefinitions.find((each) => each.kind.kind === kind);
  if (definition === undefined) throw new Error(`there is no kind ${kind}`);
  const { spec } = JSON.parse(JSON.stringify(crdOf(definition)));
  const [version] = spec.versions;
  const named = (field: string) =>
    page.includes(`\`${field}\``) || page.includes(`\`${field.split('.').at(-1)}\``);
  expect(fields.filter((field) => !named(field))).toEqual([]);
  expect(fields.filter((field) => hasField(version?.schema.openAPIV3Schema, field.split('.')))).toEqual([]);
});

/** Objects of config.openshift.io that MCO reads (its ClusterRole and its informers) and that aren't Shale's kinds. */
const UNREAD = [
  'APIServer',
  'ClusterVersion',
  'CRIOCredentialProviderConfig',
  'DNS',
  'FeatureGate',
  'Infrastructure',
  'Network',
  'Node',
  'PKI',
  'Proxy',
  'Scheduler',
];

test.each(UNREAD)('%s of config.openshift.io is on the page, and validate warns of one', (kind) => {
  expect(withoutEffect).toContain(`\`${kind}\``);
  expect(crdDefinitions.map((each) => each.kind.kind)).not.toContain(kind);
  const object = { apiVersion: 'config.openshift.io/v1', kind, metadata: { name: 'cluster' } };
  expect(warningsOf(offlineCluster([object]))).toEqual([
    `${kind} cluster: has no effect, because Shale does not support config.openshift.io/v1 ${kind}`,
  ]);
});

function hasField(schema: unknown, [name, ...rest]: readonly string[]): boolean {
  const { properties = {} } = (schema ?? {}) as { readonly properties?: Readonly<Record<string, unknown>> };
  if (name === undefined) return true;
  return Object.hasOwn(properties, name) && hasField(properties[name], rest);
}
