/** Label selectors as text, on a command line, in a query or in a ConfigMap. */

export type Requirement = {
  readonly key: string;
  readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist';
  readonly values: readonly string[];
};

/** All requirements of a selector must match; a selector without requirements selects everything. */
export type LabelSelector = readonly Requirement[];

/**
 * Parses a label selector (Kubernetes, "Labels and Selectors"): `a=b,c!=d,e in (f,g),h notin (i),j,!k`.
 *
 * @throws {TypeError} when it can't be parsed.
 */
export function parseLabelSelector(text: string): LabelSelector {
  // Commas inside parentheses separate values, not requirements.
  const parts = text
    .split(/,(?![^(]*\))/)
    .map((part) => part.trim())
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

/** @returns whether labels match every requirement. NotIn also matches when the label is missing. */
export function matchesLabels(selector: LabelSelector, labels: Readonly<Record<string, string>>): boolean {
  return selector.every((requirement) => fulfils(requirement, labels));
}

/** @returns whether labels match a requirement. */
export function fulfils(
  { key, operator, values }: Requirement,
  labels: Readonly<Record<string, string>>,
): boolean {
  // A label may have the name `constructor`.
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
