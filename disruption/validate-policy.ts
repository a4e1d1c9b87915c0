import { posix } from 'node:path';
import { type PolicyAction, ServiceName } from '../api/disruption-action.ts';
import { MIRROR_CHANGES, type NodeDisruptionPolicy, OWN_POLICY_LIMIT } from '../api/disruption-policy.ts';
import type { MachineConfiguration } from '../api/machine-configuration.ts';
import { type Problem, quote } from '../machineconfig/problem.ts';
import { whyNotPath } from './path-pattern.ts';
import { refusedSettings } from './settings.ts';

/** The API's limits (openshift/api, operator/v1 NodeDisruptionPolicyConfig). */
const LIMITS = { entries: 50, actions: 10 } as const;

/**
 * Validates the admin's policies like the CRD does: files given on the command line, and objects created under an older
 * CRD, were not validated by an API server.
 *
 * @returns every problem, with its path in the MachineConfiguration.
 */
export function configurationProblems(spec: MachineConfiguration['spec']): Problem[] {
  const policy = spec?.nodeDisruptionPolicy;
  return [...(policy === undefined ? [] : validatePolicy(policy)), ...ownPolicyProblems(spec)];
}

/** @param at the place of the policy in the MachineConfiguration. @returns every problem, with its path. */
export function validatePolicy(policy: NodeDisruptionPolicy, at = 'spec.nodeDisruptionPolicy'): Problem[] {
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

/** The names of policies are in plans; their paths are those of a pool's files, and may have wildcards. */
function ownPolicyProblems(spec: MachineConfiguration['spec']): Problem[] {
  const at = 'spec.shale.nodeDisruptionPolicies';
  const policies = spec?.shale?.nodeDisruptionPolicies ?? [];
  const count = (of: 'files' | 'units') =>
    policies.reduce((sum, policy) => sum + (policy[of] ?? []).length, 0);
  return [
    ...repeated(
      at,
      'name',
      policies.map(({ name }) => name),
    ),
    ...(['files', 'units'] as const)
      .filter((kind) => count(kind) > OWN_POLICY_LIMIT)
      .map((kind) => problem(at, `has ${count(kind)} ${kind} in all`, `at most ${OWN_POLICY_LIMIT}`)),
    ...policies.flatMap((policy, index) => [
      ...validatePolicy(policy, `${at}[${index}]`),
      ...(policy.files ?? []).flatMap(({ path }, file) => {
        const why = path.startsWith('/') ? whyNotPath(path) : undefined;
        const expected = 'a clean path below a directory of /, where * stands for a part of a name';
        return why === undefined ? [] : [problem(`${at}[${index}].files[${file}].path`, why, expected)];
      }),
    ]),
  ];
}

/**
 * Finds what is valid in a MachineConfiguration but can't do what its author meant: fields that Shale doesn't have, and
 * paths that MCO accepts, too, and that cover nothing.
 *
 * @returns each with its place in the MachineConfiguration.
 */
export function configurationWarnings(spec: MachineConfiguration['spec']): Problem[] {
  return [...refusedSettings(spec), ...policyWarnings(spec?.nodeDisruptionPolicy ?? {})];
}

function policyWarnings({ files = [] }: NodeDisruptionPolicy): Problem[] {
  return files.flatMap(({ path }, index) => {
    const reason = whyUseless(path);
    const at = `spec.nodeDisruptionPolicy.files[${index}].path`;
    return reason === undefined
      ? []
      : [
          problem(
            at,
            reason,
            'a file, or a directory for every file below it, or a pattern in spec.shale.nodeDisruptionPolicies',
          ),
        ];
  });
}

function whyUseless(path: string): string | undefined {
  if (posix.normalize(path) === '/') return 'covers no file';
  return /[*?[]/.test(path)
    ? `has no wildcards, so it covers only a file that is called ${quote(path)}`
    : undefined;
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
