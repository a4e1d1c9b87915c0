import { createHash } from 'node:crypto';
import { type PolicyAction, ServiceName } from '../api/disruption-action.ts';
import type { ClusterPolicies, NodeDisruptionPolicy } from '../api/machine-configuration.ts';
import type { Digest } from '../api/references.ts';
import { canonicalJson } from '../machineconfig/canonical-json.ts';
import type { Problem } from '../machineconfig/problem.ts';
import { defaultPolicies, type PolicySettings } from './default-policies.ts';

const MIRROR_CHANGES = ['added', 'changed', 'removed'] as const;

/** The API's limits (openshift/api, operator/v1 NodeDisruptionPolicyConfig). */
const LIMITS = { entries: 50, actions: 10 } as const;

/**
 * Checks an admin's policy as the API does. An API server with the CRD has refused all of this already; a file given to
 * the command line, or an object of an older CRD, has not been seen by one.
 *
 * @returns every problem, by its path in the MachineConfiguration.
 */
export function validatePolicy(policy: NodeDisruptionPolicy): Problem[] {
  const at = 'spec.nodeDisruptionPolicy';
  const files = policy.files ?? [];
  const units = policy.units ?? [];
  const mirrors = policy.imageMirrors ?? [];
  return [
    ...tooMany(`${at}.files`, files.length),
    ...tooMany(`${at}.units`, units.length),
    ...repeated(
      `${at}.files`,
      'path',
      files.map((file) => file.path),
    ),
    ...repeated(
      `${at}.units`,
      'name',
      units.map((unit) => unit.name),
    ),
    ...files.flatMap((file, index) => [
      ...(file.path.startsWith('/')
        ? []
        : [problem(`${at}.files[${index}].path`, 'is not absolute', 'a path that begins with /')]),
      ...actionProblems(`${at}.files[${index}].actions`, file.actions),
    ]),
    ...units.flatMap((unit, index) => [
      ...serviceProblems(`${at}.units[${index}].name`, unit.name),
      ...actionProblems(`${at}.units[${index}].actions`, unit.actions),
    ]),
    ...(policy.sshkey === undefined ? [] : actionProblems(`${at}.sshkey.actions`, policy.sshkey.actions)),
    ...repeated(
      `${at}.imageMirrors`,
      'kind',
      mirrors.map((mirror) => mirror.kind),
    ),
    ...mirrors.flatMap((mirror, index) =>
      MIRROR_CHANGES.flatMap((change) => {
        const actions = mirror[change];
        return actions === undefined ? [] : actionProblems(`${at}.imageMirrors[${index}].${change}`, actions);
      }),
    ),
  ];
}

function actionProblems(path: string, actions: readonly PolicyAction[]): Problem[] {
  const problems: Problem[] = [];
  if (actions.length === 0) problems.push(problem(path, 'is empty', 'at least one action; None for none'));
  if (actions.length > LIMITS.actions) {
    problems.push(problem(path, `has ${actions.length} actions`, `at most ${LIMITS.actions}`));
  }
  for (const alone of ['Reboot', 'None'] as const) {
    if (actions.length > 1 && actions.some(({ type }) => type === alone)) {
      problems.push(problem(path, `has ${alone} beside other actions`, `${alone} alone`));
    }
  }
  for (const [index, { type, reload, restart }] of actions.entries()) {
    const own = `${path}[${index}]`;
    for (const [field, given, needed] of [
      ['reload', reload, type === 'Reload'],
      ['restart', restart, type === 'Restart'],
    ] as const) {
      if (needed && given === undefined)
        problems.push(problem(own, `has no ${field}`, `${field}.serviceName with type ${type}`));
      if (!needed && given !== undefined)
        problems.push(problem(`${own}.${field}`, `does not go with type ${type}`, 'to be left out'));
      if (given !== undefined)
        problems.push(...serviceProblems(`${own}.${field}.serviceName`, given.serviceName));
    }
  }
  return problems;
}

function serviceProblems(path: string, name: string): Problem[] {
  if (ServiceName.safeParse(name).success) return [];
  return [
    problem(
      path,
      `${JSON.stringify(name)} is not a unit's name`,
      'a name with its suffix, such as chronyd.service',
    ),
  ];
}

function tooMany(path: string, count: number): Problem[] {
  return count > LIMITS.entries ? [problem(path, `has ${count} entries`, `at most ${LIMITS.entries}`)] : [];
}

function repeated(path: string, field: string, values: readonly string[]): Problem[] {
  return values.flatMap((value, index) =>
    values.indexOf(value) === index
      ? []
      : [problem(`${path}[${index}].${field}`, `${value} is there twice`, 'each once')],
  );
}

function problem(path: string, reason: string, expected: string): Problem {
  return { path, reason, expected };
}

/**
 * The policies in force: the defaults, where an admin's entry of the same path or name takes the place of the whole
 * default entry (MCO, pkg/apihelpers MergeClusterPolicies).
 *
 * @param policy a valid one, or undefined when the admin says nothing.
 * @param settings what differs between hosts; it becomes part of the policies, so that whoever decides by them decides
 *   alike.
 * @returns files and units sorted by path and name, so that the digest does not depend on how they were written.
 */
export function effectivePolicies(
  policy: NodeDisruptionPolicy | undefined,
  settings: PolicySettings,
): ClusterPolicies {
  const defaults = defaultPolicies(settings);
  const imageMirrors = policy?.imageMirrors ?? [];
  return {
    containerRuntimeUnit: defaults.containerRuntimeUnit,
    files: override(defaults.files, policy?.files ?? [], (file) => file.path),
    units: override(defaults.units, policy?.units ?? [], (unit) => unit.name),
    sshkey: policy?.sshkey === undefined ? defaults.sshkey : { ...policy.sshkey, source: 'Admin' },
    ...(imageMirrors.length === 0
      ? {}
      : { imageMirrors: imageMirrors.toSorted((a, b) => byCodeUnit(a.kind, b.kind)) }),
  };
}

function override<T extends object>(
  defaults: readonly T[],
  own: readonly T[],
  keyOf: (entry: T) => string,
): (T & { source?: 'Admin' })[] {
  const ours = own.map((entry) => ({ ...entry, source: 'Admin' as const }));
  const byKey = new Map<string, T & { source?: 'Admin' }>(
    [...defaults, ...ours].map((entry) => [keyOf(entry), entry]),
  );
  return [...byKey].sort(([a], [b]) => byCodeUnit(a, b)).map(([, entry]) => entry);
}

function byCodeUnit(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** @returns the digest by which an image's label and a node say which policies they speak of. */
export function policyDigest(policies: ClusterPolicies): Digest {
  return `sha256:${createHash('sha256').update(canonicalJson(policies)).digest('hex')}` as Digest;
}
