import type { IncomingMessage } from 'node:http';
import { dryRunProblems, notSupported } from '../objects/delete-object.ts';
import { requiredField } from '../resources/strategies.ts';
import { type Cause, invalid } from '../status.ts';
import { mediaTypeOf } from './exchange.ts';

/** Of a PATCH that applies (Kubernetes, "Server-Side Apply"). JSON is YAML. */
export const APPLY_PATCH = 'application/apply-patch+yaml';

/** apimachinery, FieldManagerMaxLength. */
const LONGEST_MANAGER = 128;

const KINDS: Readonly<Record<string, string>> = {
  POST: 'CreateOptions',
  PUT: 'UpdateOptions',
  PATCH: 'PatchOptions',
};

/**
 * @returns who owns the fields that a request writes: its fieldManager, or the name of the program by its User-Agent.
 * @throws StatusError 422 for options that a request of this kind can't have (apimachinery, ValidatePatchOptions).
 */
export function fieldManagerOf(request: IncomingMessage, query: URLSearchParams): string {
  const kind = KINDS[request.method ?? ''];
  const given = query.get('fieldManager') ?? '';
  if (kind !== undefined) {
    const problems = optionProblems(request, query, given);
    if (problems.length > 0) throw invalid({ group: 'meta.k8s.io', kind }, '', problems);
  }
  return given === '' ? programOf(request.headers['user-agent'] ?? '') : given;
}

function optionProblems(request: IncomingMessage, query: URLSearchParams, manager: string): readonly Cause[] {
  const isPatch = request.method === 'PATCH';
  const isApply = isPatch && mediaTypeOf(request) === APPLY_PATCH;
  const force = { reason: 'FieldValueForbidden', field: 'force' };
  return [
    ...(isApply && manager === '' ? [requiredField('fieldManager', 'is required for apply patch')] : []),
    ...(isPatch && !isApply && query.has('force')
      ? [{ ...force, message: 'Forbidden: may not be specified for non-apply patch' }]
      : []),
    ...managerProblems(manager),
    ...dryRunProblems(query.getAll('dryRun')),
    ...validationProblems(query.get('fieldValidation') ?? ''),
  ];
}

const VALIDATIONS: readonly string[] = ['Ignore', 'Warn', 'Strict'];

/** apimachinery, ValidateFieldValidation. */
function validationProblems(given: string): readonly Cause[] {
  return given === '' || VALIDATIONS.includes(given)
    ? []
    : [notSupported('fieldValidation', given, ['', ...VALIDATIONS])];
}

function managerProblems(manager: string): readonly Cause[] {
  const about = { field: 'fieldManager' };
  if (manager.length > LONGEST_MANAGER) {
    const message = `Too long: may not be more than ${LONGEST_MANAGER} bytes`;
    return [{ ...about, reason: 'FieldValueTooLong', message }];
  }
  if (!/[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/u.test(manager)) return [];
  const value = JSON.stringify(manager);
  const message = `Invalid value: ${value}: should only contain printable characters`;
  return [{ ...about, reason: 'FieldValueInvalid', message }];
}

/** `kubectl/v1.34.0 (linux/amd64) …` is kubectl. */
function programOf(userAgent: string): string {
  const name = (userAgent.split('/')[0] ?? '').replaceAll(/[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu, '');
  return name.slice(0, LONGEST_MANAGER) || 'unknown';
}
