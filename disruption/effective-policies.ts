import { createHash } from 'node:crypto';
import { type PolicyAction, ServiceName } from '../api/disruption-action.ts';
import type { ClusterPolicies, NodeDisruptionPolicy } from '../api/machine-configuration.ts';
import { by } from '../api/order.ts';
import { present } from '../api/present.ts';
import type { Digest } from '../api/references.ts';
import { canonicalJson } from '../machineconfig/canonical-json.ts';
import type { Problem } from '../machineconfig/problem.ts';
import { defaultPolicies, type PolicySettings } from './default-policies.ts';

const MIRROR_CHANGES = ['added', 'changed', 'removed'] as const;

/** The API's limits (openshift/api, operator/v1 NodeDisruptionPolicyConfig). */
const LIMITS = { entries: 50, actions: 10 } as const;

/**
 * Validates an admin's policy like the CRD does: files given on the command line, and objects created under an older CRD,
 * were not validated by an API server.
 *
 * @returns every problem, with its path in the MachineConfiguration.
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
  if (actions.length === 0)
    problems.push(problem(path, 'is empty', 'at least one action; None to do nothing'));
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
        problems.push(problem(`${own}.${field}`, `is not allowed with type ${type}`, 'to be omitted'));
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
      : [problem(`${path}[${index}].${field}`, `${value} is a duplicate`, 'unique values')],
  );
}

function problem(path: string, reason: string, expected: string): Problem {
  return { path, reason, expected };
}

/**
 * The policies in force: the defaults, where an admin's entry of the same path or name replaces the whole default entry
 * (MCO, pkg/apihelpers MergeClusterPolicies).
 *
 * @param policy a valid one, or undefined if the admin has none.
 * @param settings what differs between hosts; they become part of the policies, so that everyone who decides by them
 *   decides alike.
 * @returns files and units sorted by path and name, so that the digest does not depend on their order in the spec.
 */
export function effectivePolicies(
  policy: NodeDisruptionPolicy | undefined,
  settings: PolicySettings,
): ClusterPolicies {
  const defaults = defaultPolicies(settings);
  const mirrors = policy?.imageMirrors ?? [];
  const imageMirrors = mirrors.length === 0 ? undefined : mirrors.toSorted(by(({ kind }) => kind));
  return {
    containerRuntimeUnit: defaults.containerRuntimeUnit,
    files: override(defaults.files, policy?.files ?? [], (file) => file.path),
    units: override(defaults.units, policy?.units ?? [], (unit) => unit.name),
    sshkey: policy?.sshkey === undefined ? defaults.sshkey : { ...policy.sshkey, source: 'Admin' },
    ...present({ imageMirrors }),
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
  return [...byKey].sort(by(([key]) => key)).map(([, entry]) => entry);
}

/** @returns the digest that identifies policies in the labels of images and in the specs of nodes. */
export function policyDigest(policies: ClusterPolicies): Digest {
  return `sha256:${createHash('sha256').update(canonicalJson(policies)).digest('hex')}` as Digest;
}
