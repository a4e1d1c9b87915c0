import { at, isArray, isObject, type Json, type JsonObject, stringsAt } from '../json.ts';
import { badRequest } from '../status.ts';
import { stringMap } from '../stored-object.ts';

export interface FieldRequirement {
  readonly field: string;
  readonly value: string;
  readonly negated: boolean;
}

/**
 * Reads a label selector as a query has it.
 *
 * @throws StatusError 400 for one that can't be read.
 */
export function readLabelSelector(text: string): LabelSelector {
  try {
    return parseLabelSelector(text);
  } catch (error) {
    throw badRequest(error instanceof Error ? error.message : String(error));
  }
}

/** @returns the requirements of a metav1.LabelSelector in an object; undefined where there is none. */
export function labelSelectorOf(value: Json | undefined): LabelSelector | undefined {
  if (!isObject(value)) return undefined;
  const labels = Object.entries(stringMap(value['matchLabels']));
  const equalities = labels.map(([key, label]): Requirement => ({ key, operator: 'In', values: [label] }));
  const expressions = isArray(value['matchExpressions']) ? value['matchExpressions'].filter(isObject) : [];
  return [...equalities, ...expressions.map(expression)];
}

function expression(given: JsonObject): Requirement {
  const key = String(given['key'] ?? '');
  const values = stringsAt(given, 'values');
  switch (given['operator']) {
    case 'In':
    case 'NotIn':
    case 'Exists':
    case 'DoesNotExist':
      return { key, operator: given['operator'], values };
    default:
      throw badRequest(`${JSON.stringify(given['operator'])} is not a valid label selector operator`);
  }
}

/**
 * Reads a field selector: `metadata.name=x,status.phase!=Running`.
 *
 * @throws StatusError 400 for one that can't be read.
 */
export function parseFieldSelector(text: string): readonly FieldRequirement[] {
  const parts = text.split(',').filter((part) => part !== '');
  return parts.map((part) => {
    const [, field, sign, value] = /^([^=!]+)(==|=|!=)(.*)$/.exec(part) ?? [];
    if (field === undefined) throw badRequest(`invalid field selector: ${JSON.stringify(part)}`);
    return { field, value: value ?? '', negated: sign === '!=' };
  });
}

/** @returns whether an object's fields fulfil every requirement; a field that is missing is the empty string. */
export function matchesFields(requirements: readonly FieldRequirement[], object: JsonObject): boolean {
  return requirements.every(({ field, value, negated }) => {
    const found = at(object, ...field.split('.'));
    const text = found === undefined || found === null ? '' : String(found);
    return (text === value) !== negated;
  });
}

/** Label selectors as a query, a command line or an object has them. */

export type Requirement = {
  readonly key: string;
  readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist';
  readonly values: readonly string[];
};

/** All requirements of a selector must hold; none at all selects everything. */
export type LabelSelector = readonly Requirement[];

/**
 * Reads a label selector (Kubernetes, "Labels and Selectors"): `a=b,c!=d,e in (f,g),h notin (i),j,!k`.
 *
 * @throws TypeError for one that can't be read.
 */
export function parseLabelSelector(text: string): LabelSelector {
  // Commas inside parentheses separate values, not requirements.
  const parts = [...text.matchAll(/(?:[^,(]|\([^)]*\)?)+/g)]
    .map(([part]) => part.trim())
    .filter((part) => part !== '');
  return parts.map(parseRequirement);
}

const KEY = '[A-Za-z0-9](?:[-A-Za-z0-9_./]*[A-Za-z0-9])?';
const SET = new RegExp(`^(${KEY})\\s+(in|notin)\\s*\\(([^()]*)\\)$`);
const EQUALITY = new RegExp(`^(${KEY})\\s*(==|=|!=)\\s*([-A-Za-z0-9_.]*)$`);
const PRESENCE = new RegExp(`^(!?)\\s*(${KEY})$`);

function parseRequirement(text: string): Requirement {
  const [, setKey, operator, list] = SET.exec(text) ?? [];
  if (setKey !== undefined) {
    const values = (list ?? '').split(',').map((value) => value.trim());
    return { key: setKey, operator: operator === 'in' ? 'In' : 'NotIn', values };
  }
  const [, key, sign, value] = EQUALITY.exec(text) ?? [];
  if (key !== undefined) return { key, operator: sign === '!=' ? 'NotIn' : 'In', values: [value ?? ''] };
  const [, not, present] = PRESENCE.exec(text) ?? [];
  if (present !== undefined)
    return { key: present, operator: not === '!' ? 'DoesNotExist' : 'Exists', values: [] };
  throw new TypeError(
    `unable to parse requirement: ${JSON.stringify(text)} is no label requirement; expected a=b, a!=b, a in (b,c), a notin (b), a or !a`,
  );
}

/** @returns whether labels fulfil every requirement. NotIn also holds where the label is missing. */
export function matchesLabels(selector: LabelSelector, labels: Readonly<Record<string, string>>): boolean {
  return selector.every((requirement) => fulfils(requirement, labels));
}

/** @returns whether labels fulfil a requirement. */
function fulfils({ key, operator, values }: Requirement, labels: Readonly<Record<string, string>>): boolean {
  // A label may be called `constructor`.
  const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value);
    case 'NotIn':
      return value === undefined || !values.includes(value);
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
  }
}
