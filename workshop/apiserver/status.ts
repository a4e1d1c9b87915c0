import type { Json, JsonObject } from './json.ts';

/** What went wrong in one field (metav1.StatusCause). */
export interface Cause {
  /** FieldValueRequired, FieldValueInvalid, … (k8s.io/apimachinery/pkg/util/validation/field) */
  readonly reason: string;
  readonly message: string;
  readonly field: string;
}

export interface StatusDetails {
  readonly name?: string | undefined;
  readonly group?: string | undefined;
  readonly kind?: string | undefined;
  readonly uid?: string | undefined;
  readonly causes?: readonly JsonObject[] | undefined;
  readonly retryAfterSeconds?: number | undefined;
}

/** How an error names a resource. */
export interface ResourceName {
  readonly group: string;
  readonly plural: string;
}

/**
 * An answer that is not a success: what the API server sends as a Status object (API conventions, "Response Status
 * Kind").
 */
export class StatusError extends Error {
  readonly code: number;
  /** '' for the few errors that kube-apiserver gives none. */
  readonly reason: string;
  readonly details: StatusDetails | undefined;

  constructor(code: number, reason: string, message: string, details?: StatusDetails) {
    super(message);
    this.name = 'StatusError';
    this.code = code;
    this.reason = reason;
    this.details = details;
  }

  /** The Status object of this error. */
  body(): JsonObject {
    return {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message: this.message,
      ...(this.reason === '' ? {} : { reason: this.reason }),
      ...(this.details === undefined ? {} : { details: detailsBody(this.details) }),
      code: this.code,
    };
  }
}

function detailsBody(details: StatusDetails): JsonObject {
  const { name, group, kind, uid, causes, retryAfterSeconds } = details;
  const filled: Record<string, Json | undefined> = { name, group, kind, uid, causes, retryAfterSeconds };
  return Object.fromEntries(
    Object.entries(filled).filter(([, value]) => value !== undefined && value !== ''),
  );
}

/** @returns how messages name a resource: `pods`, `leases.coordination.k8s.io`. */
export function qualified({ group, plural }: ResourceName): string {
  return group === '' ? plural : `${plural}.${group}`;
}

const detailsOf = ({ group, plural }: ResourceName, name: string): StatusDetails => ({
  name,
  group,
  kind: plural,
});

export function notFound(resource: ResourceName, name: string): StatusError {
  const message = `${qualified(resource)} "${name}" not found`;
  return new StatusError(404, 'NotFound', message, detailsOf(resource, name));
}

export function alreadyExists(resource: ResourceName, name: string): StatusError {
  const message = `${qualified(resource)} "${name}" already exists`;
  return new StatusError(409, 'AlreadyExists', message, detailsOf(resource, name));
}

export function conflict(resource: ResourceName, name: string, why: string): StatusError {
  const message = `Operation cannot be fulfilled on ${qualified(resource)} "${name}": ${why}`;
  return new StatusError(409, 'Conflict', message, detailsOf(resource, name));
}

export function forbidden(resource: ResourceName, name: string, why: string): StatusError {
  const subject = name === '' ? qualified(resource) : `${qualified(resource)} "${name}"`;
  return new StatusError(403, 'Forbidden', `${subject} is forbidden: ${why}`, detailsOf(resource, name));
}

export function badRequest(message: string): StatusError {
  return new StatusError(400, 'BadRequest', message);
}

export function expired(message: string): StatusError {
  return new StatusError(410, 'Expired', message);
}

export function methodNotAllowed(): StatusError {
  return new StatusError(
    405,
    'MethodNotAllowed',
    'the server does not allow this method on the requested resource',
  );
}

/** @returns 422 Invalid with a cause for each field (apimachinery's errors.NewInvalid). */
export function invalid(
  kind: { readonly group: string; readonly kind: string },
  name: string,
  causes: readonly Cause[],
): StatusError {
  const texts = causes.map(({ field, message }) => `${field}: ${message}`);
  const [only] = texts;
  const list = texts.length === 1 && only !== undefined ? only : `[${texts.join(', ')}]`;
  const qualifiedKind = kind.group === '' ? kind.kind : `${kind.kind}.${kind.group}`;
  return new StatusError(422, 'Invalid', `${qualifiedKind} "${name}" is invalid: ${list}`, {
    name,
    group: kind.group,
    kind: kind.kind,
    causes: causes.map(({ reason, message, field }) => ({ reason, message, field })),
  });
}

/** @returns the Status object for a success that has no object to show, such as a deletion. */
export function success(details?: StatusDetails, code = 200): JsonObject {
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Success',
    ...(details === undefined ? {} : { details: detailsBody(details) }),
    ...(code === 200 ? {} : { code }),
  };
}
