import { at, isObject, type Json, type JsonObject, objectsAt, stringAt } from '../json.ts';
import type { AdmissionRequest } from '../objects/object-metadata.ts';
import { apiVersionOf } from '../resources/resource.ts';
import { Authorizer, type IsAllowed } from '../schema/cel/authorizer.ts';
import { celValue, compileExpression, type Program } from '../schema/cel/expressions.ts';
import type { StoredObject } from '../stored-object.ts';

interface Named {
  readonly name: string;
  readonly program: Program;
}

interface Validation {
  readonly holds: Program;
  readonly message: string;
  readonly messageExpression?: Program;
  readonly reason: string;
}

/** A ValidatingAdmissionPolicy, its expressions compiled. */
export interface ValidatingPolicy {
  readonly name: string;
  readonly constraints: JsonObject | undefined;
  /** What its bindings name parameters of; undefined: it has none. */
  readonly paramKind: { readonly apiVersion: string; readonly kind: string } | undefined;
  /** Whether a policy that can't be evaluated denies. */
  readonly failClosed: boolean;
  readonly conditions: readonly Named[];
  readonly variables: readonly Named[];
  readonly validations: readonly Validation[];
}

/** Why a policy denies. */
export interface Denial {
  readonly reason: string;
  readonly message: string;
}

/** What expressions can ask about beside the request. */
export interface PolicyContext {
  /** Of the object, if it has one. */
  readonly namespace: StoredObject | undefined;
  /** One of the objects that the binding names as parameters; undefined where the policy has none. */
  readonly params?: StoredObject | undefined;
  readonly isAllowed: IsAllowed;
}

const VARIABLES = ['object', 'oldObject', 'request', 'namespaceObject', 'variables', 'params', 'authorizer'];

/**
 * Compiles a policy.
 *
 * @throws Error that names the policy and the field, for an expression that can't be parsed.
 */
export function compilePolicy(policy: StoredObject): ValidatingPolicy {
  const { name } = policy.metadata;
  const compile = (expression: Json | undefined, field: string): Program => {
    try {
      return compileExpression(String(expression ?? ''), VARIABLES);
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      throw new Error(`ValidatingAdmissionPolicy ${name}: ${field} can't be compiled: ${why}`, {
        cause: error,
      });
    }
  };
  const named = (field: string) =>
    objectsAt(policy, 'spec', field).map((each, i) => ({
      name: stringAt(each, 'name') ?? '',
      program: compile(each['expression'], `spec.${field}[${i}].expression`),
    }));
  const [apiVersion, kind] = ['apiVersion', 'kind'].map((field) =>
    stringAt(policy, 'spec', 'paramKind', field),
  );
  const constraints = at(policy, 'spec', 'matchConstraints');
  return {
    name,
    constraints: isObject(constraints) ? constraints : undefined,
    paramKind: apiVersion === undefined || kind === undefined ? undefined : { apiVersion, kind },
    failClosed: stringAt(policy, 'spec', 'failurePolicy') !== 'Ignore',
    conditions: named('matchConditions'),
    variables: named('variables'),
    validations: objectsAt(policy, 'spec', 'validations').map((validation, i) => ({
      holds: compile(validation['expression'], `spec.validations[${i}].expression`),
      message: stringAt(validation, 'message') ?? `failed expression: ${String(validation['expression'])}`,
      ...(validation['messageExpression'] === undefined
        ? {}
        : {
            messageExpression: compile(
              validation['messageExpression'],
              `spec.validations[${i}].messageExpression`,
            ),
          }),
      reason: stringAt(validation, 'reason') ?? 'Invalid',
    })),
  };
}

/**
 * Evaluates a policy for a request that it is for.
 *
 * @returns a denial for each validation that fails, in order; none when it lets the request through.
 */
export function evaluatePolicy(
  policy: ValidatingPolicy,
  request: AdmissionRequest,
  context: PolicyContext,
): Denial[] {
  const base = activation(request, context);
  /** What can't be evaluated concerns the validation alone, or the conditions of all. */
  const evaluated = (evaluate: () => Denial[]): Denial[] => {
    try {
      return evaluate();
    } catch (error) {
      if (!policy.failClosed) return [];
      return [{ reason: 'Invalid', message: error instanceof Error ? error.message : String(error) }];
    }
  };
  return evaluated(() => {
    if (!policy.conditions.every(({ program }) => program(base) === true)) return [];
    const values = withVariables(policy, base);
    return policy.validations.flatMap((validation) =>
      evaluated(() =>
        validation.holds(values) === true
          ? []
          : [{ reason: validation.reason, message: messageOf(validation, values) }],
      ),
    );
  });
}

type Values = Readonly<Record<string, unknown>>;

function messageOf({ message, messageExpression }: Validation, values: Values): string {
  const text = messageExpression?.(values);
  return typeof text === 'string' ? text : message;
}

function activation(request: AdmissionRequest, { namespace, params, isAllowed }: PolicyContext): Values {
  return {
    object: celValue(request.object ?? null),
    oldObject: celValue(request.oldObject ?? null),
    namespaceObject: celValue(namespace ?? null),
    request: celValue(requestValue(request)),
    params: celValue(params ?? null),
    authorizer: new Authorizer(isAllowed, request.user),
    variables: {},
  };
}

/** A variable is evaluated when it is first asked for: one that no expression uses can't fail a request. */
function withVariables({ variables }: ValidatingPolicy, base: Values): Values {
  const known: Record<string, unknown> = {};
  for (const { name, program } of variables) {
    let value: { readonly is: unknown } | undefined;
    Object.defineProperty(known, name, {
      enumerable: true,
      get: () => {
        value ??= { is: program({ ...base, variables: known }) };
        return value.is;
      },
    });
  }
  return { ...base, variables: known };
}

/** admission.k8s.io AdmissionRequest, as expressions see it. */
function requestValue({
  operation,
  resource,
  subresource,
  namespace,
  name,
  user,
}: AdmissionRequest): JsonObject {
  const { group, version, kind, plural } = resource;
  const extra = user.extra as JsonObject;
  return {
    operation,
    kind: { group, version, kind },
    resource: { group, version, resource: plural },
    subResource: subresource,
    name,
    namespace,
    apiVersion: apiVersionOf(resource),
    userInfo: {
      username: user.name,
      groups: user.groups,
      ...(Object.keys(extra).length === 0 ? {} : { extra }),
    },
  };
}
