import { accessSync, constants } from 'node:fs';
import path from 'node:path';
import { present } from '../../api/present.ts';

/** What a cluster is made of that no package of this project's brings; of the control plane first. */
export const GIVEN = [
  'etcd',
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
  'kubectl',
  'kubelet',
  'containerd',
  'containerd-shim-runc-v2',
  'ctr',
] as const;

/** What enforces NetworkPolicies; a lab without it is one on which nothing does. */
export const POLICY_ENFORCER = 'kube-router';

/** Where each of them is. */
export type GivenPrograms = Readonly<Record<(typeof GIVEN)[number], string>> & {
  readonly [POLICY_ENFORCER]?: string;
};

/** As setup-envtest and its users call the directory. */
export const ASSETS = 'KUBEBUILDER_ASSETS';

/**
 * Finds the programs of a cluster: those of one directory go before those of the search path.
 *
 * @param assets the directory; absent: none is given. @param searchPath as PATH.
 * @returns where each is, or the names of those that are nowhere.
 */
export function findPrograms(
  assets: string | undefined,
  searchPath: string,
): GivenPrograms | { readonly missing: readonly string[] } {
  const directories = [...(assets === undefined ? [] : [assets]), ...searchPath.split(':')];
  const found = GIVEN.map((name) => [name, findIn(directories, name)] as const);
  const missing = found.filter(([, place]) => place === undefined).map(([name]) => name);
  if (missing.length > 0) return { missing };
  const enforcer = findIn(directories, POLICY_ENFORCER);
  return {
    ...(Object.fromEntries(found) as GivenPrograms),
    ...present({ [POLICY_ENFORCER]: enforcer }),
  };
}

function findIn(directories: readonly string[], name: string): string | undefined {
  return directories
    .filter((directory) => directory !== '')
    .map((directory) => path.join(directory, name))
    .find(isExecutable);
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/**
 * kubelet 1.36 asks the runtime which cgroup driver it has (RuntimeConfig of the CRI), which containerd 1 doesn't
 * answer.
 */
const OLDEST_CONTAINERD = 2;

/**
 * @param text what `containerd --version` prints.
 * @returns why a current kubelet can't use it; nothing when it can.
 */
export function tooOldContainerd(text: string): string | undefined {
  const version = /\sv?(?<version>(?<major>\d+)\.\d+\S*)/.exec(text)?.groups;
  if (version === undefined) return `containerd --version prints ${JSON.stringify(text.trim())}`;
  if (Number(version['major']) >= OLDEST_CONTAINERD) return undefined;
  return `containerd is ${version['version']}, and kubelets need ${OLDEST_CONTAINERD}.0 or newer`;
}
