import { accessSync, constants } from 'node:fs';
import path from 'node:path';
import { noDirectoryNodes } from '../fixtures/test-node.ts';

/** Cluster API's own, each a process with webhooks; definitions and webhooks are in files of the same names. */
export const PROVIDERS = ['cluster-api-core', 'kubeadm-bootstrap', 'kubeadm-control-plane'] as const;
export type Provider = (typeof PROVIDERS)[number];

/** What the directory has to hold: docs/contributing/labs.md says how each is made. */
const NEEDED = [
  'etcd',
  'kube-apiserver',
  ...PROVIDERS,
  ...PROVIDERS.map((provider) => `crds/${provider}`),
  ...PROVIDERS.map((provider) => `webhooks/${provider}.yaml`),
] as const;

/** The directory of Cluster API's programs, or why the lab can't run. */
export type GivenCapi = { readonly directory: string } | { readonly why: string };

/** @returns what `make capi-lab CAPI=/path/to/programs` was given. */
export function givenCapi(): GivenCapi {
  const directory = process.env['SHALE_CAPI'] ?? '';
  if (directory === '') return { why: 'make capi-lab CAPI=/path/to/programs' };
  const missing = missingPrograms(directory);
  if (missing.length > 0) return { why: `${directory} has no ${missing.join(', ')}` };
  return noDirectoryNodes === undefined ? { directory } : { why: noDirectoryNodes };
}

/** @returns the names of what a directory lacks. */
export function missingPrograms(directory: string): readonly string[] {
  return NEEDED.filter((name) => !exists(path.join(directory, name)));
}

function exists(file: string): boolean {
  try {
    accessSync(file, constants.R_OK);
    return true;
  } catch {
    return false;
  }
}
