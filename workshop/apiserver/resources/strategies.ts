import { at, isObject, type JsonObject, objectsAt, stringAt, withField } from '../json.ts';
import type { Cause } from '../status.ts';
import { stringMap } from '../stored-object.ts';
import type { Strategy } from './resource.ts';

/** @returns a strategy that fills in defaults where an object has nothing; `{ 'spec.replicas': 1 }`. */
export function withDefaults(defaults: JsonObject): Strategy {
  return { onWrite: (object) => filled(object, defaults) };
}

function filled(object: JsonObject, defaults: JsonObject): JsonObject {
  return Object.entries(defaults).reduce((current, [path, value]) => {
    const [first, ...rest] = path.split('.');
    if (first === undefined || at(current, first, ...rest) !== undefined) return current;
    return withField(current, [first, ...rest], value);
  }, object);
}

/** A Secret's stringData is a convenience for writing: it ends up in data. */
export const secretStrategy: Strategy = {
  onWrite(object) {
    const { stringData, ...secret } = object;
    const encoded = Object.entries(stringMap(stringData)).map(([key, text]): [string, string] => [
      key,
      Buffer.from(text).toString('base64'),
    ]);
    const data = { ...(isObject(secret['data']) ? secret['data'] : {}), ...Object.fromEntries(encoded) };
    return { type: 'Opaque', ...secret, ...(Object.keys(data).length === 0 ? {} : { data }) };
  },
  validate: (object, old) => [
    ...dataKeys(object),
    ...(old !== undefined && stringAt(object, 'type') !== stringAt(old, 'type')
      ? [invalidField('type', stringAt(object, 'type') ?? '', 'field is immutable')]
      : []),
  ],
};

export const configMapStrategy: Strategy = { validate: (object) => dataKeys(object) };

/** Keys become file names (k8s.io/apimachinery/pkg/util/validation IsConfigMapKey). */
function dataKeys(object: JsonObject): readonly Cause[] {
  const keys = ['data', 'binaryData'].flatMap((field) =>
    Object.keys(stringMap(object[field])).map((key) => ({ field, key })),
  );
  const why =
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
  return keys
    .filter(({ key }) => !/^[-._a-zA-Z0-9]{1,253}$/.test(key) || key === '.' || key.startsWith('..'))
    .map(({ field, key }) => invalidField(`${field}[${key}]`, key, why));
}

/** @returns the cause of a value that is wrong (field.Invalid). */
export function invalidField(field: string, value: string | number, why: string): Cause {
  return { reason: 'FieldValueInvalid', field, message: `Invalid value: ${JSON.stringify(value)}: ${why}` };
}

/** @returns the cause of a value that is missing (field.Required). */
export function requiredField(field: string, why = ''): Cause {
  return {
    reason: 'FieldValueRequired',
    field,
    message: why === '' ? 'Required value' : `Required value: ${why}`,
  };
}

export const namespaceStrategy: Strategy = {
  onCreate: (object) => ({ ...object, spec: { finalizers: ['kubernetes'] }, status: { phase: 'Active' } }),
};

export const podStrategy: Strategy = {
  onCreate: (object) => ({
    ...filled(object, {
      'spec.restartPolicy': 'Always',
      'spec.terminationGracePeriodSeconds': 30,
      'spec.dnsPolicy': 'ClusterFirst',
      'spec.schedulerName': 'default-scheduler',
    }),
    status: { phase: 'Pending', qosClass: 'BestEffort' },
  }),
  validate(object, old) {
    if (!Array.isArray(at(object, 'spec', 'containers'))) return [requiredField('spec.containers')];
    const node = stringAt(old, 'spec', 'nodeName');
    if (node !== undefined && node !== stringAt(object, 'spec', 'nodeName')) {
      return [invalidField('spec', 'nodeName', 'pod updates may not change the node of a pod')];
    }
    return [];
  },
};

/** coordination.k8s.io ValidateLeaseSpec. */
export const leaseStrategy: Strategy = {
  validate(object) {
    const positive = ['leaseDurationSeconds'].filter((field) => below(at(object, 'spec', field), 1));
    const countable = ['leaseTransitions'].filter((field) => below(at(object, 'spec', field), 0));
    return [
      ...positive.map((field) =>
        invalidField(`spec.${field}`, number(object, field), 'must be greater than 0'),
      ),
      ...countable.map((field) =>
        invalidField(`spec.${field}`, number(object, field), 'must be greater than or equal to 0'),
      ),
    ];
  },
};

const below = (value: unknown, least: number) => typeof value === 'number' && value < least;
const number = (object: JsonObject, field: string) => Number(at(object, 'spec', field));

/**
 * Deployments, DaemonSets, ReplicaSets: the pods of the template must be those that the selector finds, which can't
 * change.
 */
export function workloadStrategy(defaults: JsonObject): Strategy {
  return {
    onWrite: (object) => filled(object, defaults),
    validate(object, old) {
      const selector = at(object, 'spec', 'selector');
      if (!isObject(selector)) return [requiredField('spec.selector')];
      if (old !== undefined && JSON.stringify(selector) !== JSON.stringify(at(old, 'spec', 'selector'))) {
        return [invalidField('spec.selector', JSON.stringify(selector), 'field is immutable')];
      }
      const labels = stringMap(at(object, 'spec', 'template', 'metadata', 'labels'));
      const pairs = Object.entries(stringMap(selector['matchLabels']));
      if (pairs.every(([key, value]) => labels[key] === value)) return [];
      return [
        invalidField(
          'spec.template.metadata.labels',
          JSON.stringify(labels),
          '`selector` does not match template `labels`',
        ),
      ];
    },
  };
}

/** A binding's role can't change: its permissions would change without the knowledge of its creator. */
export const roleBindingStrategy: Strategy = {
  validate(object, old) {
    const role = at(object, 'roleRef');
    if (!isObject(role)) return [requiredField('roleRef')];
    const changed = old !== undefined && JSON.stringify(role) !== JSON.stringify(at(old, 'roleRef'));
    return changed ? [invalidField('roleRef', JSON.stringify(role), 'cannot change roleRef')] : [];
  },
};

/** admissionregistration.k8s.io SetDefaults_MatchResources, SetDefaults_Rule and the policy's own. */
export const admissionPolicyStrategy: Strategy = {
  onWrite(object) {
    const rules = objectsAt(object, 'spec', 'matchConstraints', 'resourceRules');
    const withScope = rules.map((rule) => ({ scope: '*', ...rule }));
    return filled(withField(object, ['spec', 'matchConstraints', 'resourceRules'], withScope), {
      'spec.failurePolicy': 'Fail',
      'spec.matchConstraints.matchPolicy': 'Equivalent',
      'spec.matchConstraints.namespaceSelector': {},
      'spec.matchConstraints.objectSelector': {},
    });
  },
};

export const budgetStrategy: Strategy = {
  validate(object) {
    const both =
      at(object, 'spec', 'minAvailable') !== undefined && at(object, 'spec', 'maxUnavailable') !== undefined;
    return both ? [invalidField('spec', '', 'minAvailable and maxUnavailable cannot be both set')] : [];
  },
};
