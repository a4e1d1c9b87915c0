import { z } from 'zod';

/** Label selectors as a field of an object, and as text on a command line, in a query or in a ConfigMap. */

export const LabelSelector = z
  .object({
    matchLabels: z
      .record(z.string(), z.string())
      .exactOptional()
      .describe('Labels that an object must have, with these values.'),
    matchExpressions: z
      .array(
        z.object({
          key: z.string().describe('Key of the label.'),
          operator: z
            .enum(['In', 'NotIn', 'Exists', 'DoesNotExist'])
            .describe('How the label is compared with the values.'),
          values: z.array(z.string()).exactOptional().describe('The values, for In and NotIn.'),
        }),
      )
      .exactOptional()
      .describe('Further requirements.'),
  })
  .describe(
    'Selects objects by their labels; all requirements must hold. An empty selector selects every object.',
  );
export type LabelSelector = z.infer<typeof LabelSelector>;

type Requirement = NonNullable<LabelSelector['matchExpressions']>[number];

/**
 * Parses a label selector (Kubernetes, "Labels and Selectors"): `a=b,c!=d,e in (f,g),h notin (i),j,!k`.
 *
 * @throws {TypeError} when it can't be parsed.
 */
export function parseLabelSelector(text: string): LabelSelector {
  // Commas inside parentheses separate values, not requirements.
  const parts = [...text.matchAll(/(?:[^,(]|\([^)]*\)?)+/g)]
    .map(([part]) => part.trim())
    .filter((part) => part !== '');
  return { matchExpressions: parts.map(parseRequirement) };
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
  if (present !== undefined) return { key: present, operator: not === '!' ? 'DoesNotExist' : 'Exists' };
  throw new TypeError(
    `unable to parse requirement: ${JSON.stringify(text)} is no label requirement; expected a=b, a!=b, a in (b,c), a notin (b), a or !a`,
  );
}

/**
 * Whether a label selector matches an object (metav1.LabelSelector): every requirement must match. As in Kubernetes an
 * empty selector matches everything, and NotIn matches when the label is absent.
 */
export function matchesSelector(
  { matchLabels = {}, matchExpressions = [] }: LabelSelector,
  labels: Readonly<Record<string, string>>,
): boolean {
  return (
    Object.entries(matchLabels).every(([key, value]) =>
      fulfils({ key, operator: 'In', values: [value] }, labels),
    ) && matchExpressions.every((requirement) => fulfils(requirement, labels))
  );
}

function fulfils(
  { key, operator, values = [] }: Requirement,
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

const LONGEST_LABEL_VALUE = 63;

/**
 * Labels whose values are names of objects. A name has up to 253 characters and the value of a label up to 63
 * (Kubernetes, "Object Names and IDs", "Labels and Selectors"); the API server refuses an object with a longer one.
 *
 * @returns the labels without those whose value is too long.
 */
export function labelsWithNames(labels: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(labels).filter(([, name]) => name.length <= LONGEST_LABEL_VALUE));
}
