import { stringify } from 'yaml';
import { crdOf } from '../api/crd.ts';
import { crdDefinitions } from '../api/crd-definitions.ts';

/** YAML 1.1, in which a time without quotes is no string (sigs.k8s.io/yaml). */
const AS_KUBECTL_READS = { version: '1.1', lineWidth: 110, aliasDuplicateObjects: false } as const;

/** @returns the files of manifests/crds by name, as they should be. */
export function crdFiles(): ReadonlyMap<string, string> {
  const header = '# Generated from api/ by `make manifests`. Do not edit.\n';
  const files = new Map<string, string>();
  const names: string[] = [];
  for (const definition of crdDefinitions) {
    const name = `${definition.kind.group}_${definition.kind.plural}.yaml`;
    names.push(name);
    files.set(name, header + stringify(crdOf(definition), AS_KUBECTL_READS));
  }
  const kustomization = {
    apiVersion: 'kustomize.config.k8s.io/v1beta1',
    kind: 'Kustomization',
    resources: names,
  };
  files.set('kustomization.yaml', header + stringify(kustomization));
  return files;
}
