import { type Environment, Optional } from '@marcbachmann/cel-js';

/** A format by its name: what is wrong with a text, nothing for one that has it. */
type Format = (text: string) => readonly string[];

class NamedFormat {
  readonly name: string;
  readonly validate: Format;
  constructor(name: string, validate: Format) {
    this.name = name;
    this.validate = validate;
  }
}

/** What `format` stands for in an expression. */
class Formats {}

/**
 * `format.dns1123Label().validate(self)` and its like, and `format.named('…')`
 * (k8s.io/apiserver/pkg/cel/library/format.go).
 */
export function registerFormats(environment: Environment): Environment {
  environment
    .registerType('kubernetes.NamedFormat', NamedFormat)
    .registerType('kubernetes.Formats', Formats)
    .registerConstant('format', 'kubernetes.Formats', new Formats())
    .registerFunction(
      'kubernetes.NamedFormat.validate(string): optional<list<string>>',
      (format: NamedFormat, text: string) => {
        const problems = format.validate(text);
        return problems.length === 0 ? Optional.none() : Optional.of([...problems]);
      },
    )
    .registerFunction(
      'kubernetes.Formats.named(string): optional<kubernetes.NamedFormat>',
      (_: Formats, name: string) => {
        const found = FORMATS.get(name);
        return found === undefined ? Optional.none() : Optional.of(found);
      },
    );
  for (const [name, format] of FORMATS) {
    environment.registerFunction(`kubernetes.Formats.${name}(): kubernetes.NamedFormat`, () => format);
  }
  return environment;
}

const LABEL = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
const SUBDOMAIN = `${LABEL}(\\.${LABEL})*`;
const LABEL_1035 = '[a-z]([-a-z0-9]*[a-z0-9])?';
const KEY = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]';
const KEY_MESSAGE =
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";

const tooLong = (text: string, most: number) =>
  Buffer.byteLength(text) > most ? [`must be no more than ${most} characters`] : [];
const isWhole = (pattern: string, text: string) => new RegExp(`^(?:${pattern})$`).test(text);

function mismatch(message: string, pattern: string, ...examples: readonly string[]): string {
  return `${message} (e.g. ${examples.map((example) => `'${example}', `).join(' or ')}regex used for validation is '${pattern}')`;
}

/** What is appended to a prefix takes the place of its last dash (k8s.io/apimachinery NameIsDNSLabel). */
const prefix =
  (format: Format): Format =>
  (text) =>
    format(text.length > 1 && text.endsWith('-') ? `${text.slice(0, -2)}a` : text);

const dns1123Label: Format = (text) => [
  ...tooLong(text, 63),
  ...(isWhole(LABEL, text)
    ? []
    : [
        isWhole(SUBDOMAIN, text)
          ? 'must not contain dots'
          : mismatch(
              "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character",
              LABEL,
              'my-name',
              '123-abc',
            ),
      ]),
];

const dns1123Subdomain: Format = (text) => [
  ...tooLong(text, 253),
  ...(isWhole(SUBDOMAIN, text)
    ? []
    : [
        mismatch(
          "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
          SUBDOMAIN,
          'example.com',
        ),
      ]),
];

const dns1035Label: Format = (text) => [
  ...tooLong(text, 63),
  ...(isWhole(LABEL_1035, text)
    ? []
    : [
        mismatch(
          "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
          LABEL_1035,
          'my-name',
          'abc-123',
        ),
      ]),
];

const qualifiedName: Format = (text) => {
  const parts = text.split('/');
  const [first = '', second] = parts;
  if (parts.length > 2) {
    return [
      `a qualified name ${mismatch(KEY_MESSAGE, KEY, 'MyName', 'my.name', '123-abc')} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ];
  }
  const name = second ?? first;
  const domain = second === undefined ? [] : partOf('prefix part', first, dns1123Subdomain);
  const own: Format = (part) => [
    ...tooLong(part, 63),
    ...(isWhole(KEY, part) ? [] : [mismatch(KEY_MESSAGE, KEY, 'MyName', 'my.name', '123-abc')]),
  ];
  return [...domain, ...partOf('name part', name, own)];
};

function partOf(what: string, text: string, format: Format): readonly string[] {
  const problems = text === '' ? ['must be non-empty'] : format(text);
  return problems.map((problem) => `${what} ${problem}`);
}

const labelValue: Format = (text) => [
  ...tooLong(text, 63),
  ...(isWhole(`(${KEY})?`, text)
    ? []
    : [
        mismatch(
          "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
          `(${KEY})?`,
          'MyValue',
          'my_value',
          '12345',
        ),
      ]),
];

const matching =
  (pattern: RegExp, message: string): Format =>
  (text) =>
    pattern.test(text) ? [] : [message];

const date: Format = (text) =>
  /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text)) ? [] : ['invalid date'];

const FORMATS: ReadonlyMap<string, NamedFormat> = new Map(
  Object.entries({
    dns1123Label,
    dns1123Subdomain,
    dns1035Label,
    qualifiedName,
    dns1123LabelPrefix: prefix(dns1123Label),
    dns1123SubdomainPrefix: prefix(dns1123Subdomain),
    dns1035LabelPrefix: prefix(dns1035Label),
    labelValue,
    uri: matching(/^(\/|[A-Za-z][A-Za-z0-9+.-]*:)[^\s]*$/, 'invalid URI for request'),
    uuid: matching(/^[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}$/i, 'does not match the UUID format'),
    byte: matching(/^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/, 'invalid base64'),
    date,
    datetime: matching(
      /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:?\d\d)$/,
      'invalid datetime',
    ),
  }).map(([name, validate]) => [name, new NamedFormat(name, validate)]),
);
