import { at, isArray, isObject, type Json, type JsonObject, stringsAt } from '../json.ts';
import { badRequest } from '../status.ts';
import { stringMap } from '../stored-object.ts';
import { type LabelSelector, parseLabelSelector, type Requirement } from './label-selector.ts';

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
