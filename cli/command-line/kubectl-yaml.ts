import { Document, parseAllDocuments, type ScalarTag, type Tags } from 'yaml';

/**
 * YAML as kubectl reads it (sigs.k8s.io/yaml on go-yaml v2): YAML 1.1 with other numbers, and without dates. Read
 * otherwise, a file would be another object here than the one that kubectl applies: a time such as 22:30 a number, a
 * date a time stamp, `e2` none at all.
 */

const CORE = 'tag:yaml.org,2002:';
/** Types of YAML 1.1 that go-yaml does not have, or that JSON does not. */
const OTHERS: readonly string[] = ['int', 'float', 'timestamp', 'binary', 'set', 'omap', 'pairs'].map(
  (type) => `${CORE}${type}`,
);

const INTEGER = /^([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))$/;
const FLOAT = /^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$/;
const NOT_IN_JSON = /^(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$/;

type Resolve = NonNullable<ScalarTag['resolve']>;

/** @returns the number that go-yaml takes a plain scalar for, or the text. */
const resolveNumber: Resolve = (text, onError) => {
  if (NOT_IN_JSON.test(text)) onError(`${text} is no number that JSON has`);
  const digits = text.replaceAll('_', '');
  const [, sign, hexadecimal, binary, octal, decimal] = INTEGER.exec(digits) ?? [];
  const [written, base] =
    hexadecimal !== undefined
      ? [hexadecimal, 16]
      : binary !== undefined
        ? [binary, 2]
        : octal !== undefined
          ? [octal, 8]
          : [decimal, 10];
  if (written !== undefined) return Number.parseInt(written, base) * (sign === '-' ? -1 : 1) + 0;
  const number = FLOAT.test(digits) ? Number(digits) : Number.NaN;
  return Number.isFinite(number) ? number : text;
};

const asText: Resolve = (text) => text;
const decoded: Resolve = (text) => Buffer.from(text, 'base64').toString('utf8');

/** What may be a number, with underscores anywhere. */
const LIKE_A_NUMBER =
  /^[-+]?(?:0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+|(?:\.[0-9_]+|[0-9][0-9_]*(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9_]+)?|\.(?:inf|Inf|INF|nan|NaN|NAN))$/;

const NUMBERS: readonly ScalarTag[] = [
  {
    tag: `${CORE}int`,
    default: true,
    test: LIKE_A_NUMBER,
    resolve: resolveNumber,
    identify: (value) => typeof value === 'number',
    stringify: ({ value }) => JSON.stringify(value),
  },
  { tag: `${CORE}int`, resolve: resolveNumber },
  { tag: `${CORE}float`, resolve: resolveNumber },
  { tag: `${CORE}timestamp`, resolve: asText },
  { tag: `${CORE}binary`, resolve: decoded },
];

const DIALECT = {
  version: '1.1',
  customTags: (tags: Tags): Tags => [
    ...tags.filter((tag) => typeof tag === 'string' || !OTHERS.includes(tag.tag)),
    ...NUMBERS,
  ],
} as const;

/** @returns a document of the value. Its text is read as the same value by kubectl, and by readers of YAML 1.2. */
export function kubectlDocument(value: unknown): Document {
  return new Document(value, { ...DIALECT, aliasDuplicateObjects: false });
}

/**
 * @returns a reader of each document, so that one that is wrong hides no other. It returns the value, null for an empty
 *   document, and throws an Error that says what is wrong, and where.
 * @throws RangeError for nesting without limit.
 */
export function parseKubectlYaml(source: string): (() => unknown)[] {
  return parseAllDocuments(source, DIALECT).map((document) => () => {
    const [error] = document.errors;
    if (error !== undefined) throw error;
    const { yaml } = document.directives ?? {};
    if (yaml?.explicit === true && yaml.version !== '1.1')
      throw new Error(
        `%YAML ${yaml.version}: kubectl reads YAML 1.1, in which some values are others; expected none`,
      );
    return document.toJS() as unknown;
  });
}
