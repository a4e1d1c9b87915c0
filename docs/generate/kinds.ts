import { crdOf, type StructuralSchema } from '../../api/crd.ts';
import { type CrdDefinition, crdDefinitions } from '../../api/crd-definitions.ts';
import { code, page, table } from './markdown.ts';

/** @returns the pages of docs/reference/kinds by name: one for each kind, and a list of them. */
export function kindPages(): ReadonlyMap<string, string> {
  const rows = crdDefinitions.map(({ kind, shortNames = [], description }) => [
    `[${kind.kind}](${fileOf(kind.kind)})`,
    [kind.plural, ...shortNames].map(code).join(', '),
    description,
  ]);
  const list = page('Kinds', 'api/', [
    'Each kind is a CustomResourceDefinition in `manifests/crds`. `kubectl explain` shows the fields that a cluster has.',
    table(['kind', 'for kubectl', 'what it is'], rows),
  ]);
  const pages = crdDefinitions.map((definition): [string, string] => [
    fileOf(definition.kind.kind),
    kindPage(definition),
  ]);
  return new Map([['README.md', list], ...pages]);
}

function fileOf(kind: string): string {
  return `${kind.toLowerCase()}.md`;
}

function kindPage(definition: CrdDefinition): string {
  const { kind, shortNames = [], description, rules = [], fixedName, columns } = definition;
  const about = [
    `apiVersion \`${kind.group}/${kind.version}\``,
    kind.namespaced ? 'namespaced' : 'cluster-scoped',
    `for kubectl ${[kind.plural, ...shortNames].map(code).join(', ')}`,
    ...(fixedName === undefined ? [] : [`always named \`${fixedName}\``]),
  ];
  const fields = fieldsOf(schemaOf(definition), '').filter(([path]) => /^(spec|status)/.test(path ?? ''));
  const parts = [
    description,
    `${about.join('; ')}.`,
    '## Fields',
    table(
      ['field', 'type', 'meaning'],
      fields.map(([path = '', type = '', meaning = '']) => [code(path), type, meaning]),
    ),
  ];
  if (rules.length > 0) parts.push('## Rules', rules.map(({ message }) => `- ${message}`).join('\n'));
  parts.push('## Columns of `kubectl get`', columns.map(columnLine).join('\n'));
  return page(kind.kind, 'api/', parts);
}

function columnLine({ name, path, description, wide }: CrdDefinition['columns'][number]): string {
  const more = [description ?? '', wide === true ? '`-o wide` only' : ''].filter((text) => text !== '');
  return `- ${name}: \`${path}\`${more.map((text) => `; ${text}`).join('')}`;
}

function schemaOf(definition: CrdDefinition): StructuralSchema {
  const { versions } = crdOf(definition).spec as {
    readonly versions: readonly [{ readonly schema: { readonly openAPIV3Schema: StructuralSchema } }];
  };
  return versions[0].schema.openAPIV3Schema;
}

/** @returns path, type and meaning of each field of an object's schema, and of what is below it. */
function fieldsOf(schema: StructuralSchema, prefix: string): string[][] {
  const required = new Set(schema['required'] as readonly string[] | undefined);
  const properties = (schema['properties'] ?? {}) as Readonly<Record<string, StructuralSchema>>;
  return Object.entries(properties).flatMap(([name, property]) => {
    const path = `${prefix}${name}`;
    const type = `${typeOf(property)}${required.has(name) ? ', required' : ''}`;
    return [[path, type, meaningOf(property)], ...below(property, path)];
  });
}

function below(schema: StructuralSchema, path: string): string[][] {
  const items = schema['items'] as StructuralSchema | undefined;
  if (items !== undefined) return below(items, `${path}[]`);
  const values = schema['additionalProperties'] as StructuralSchema | undefined;
  return values === undefined ? fieldsOf(schema, `${path}.`) : below(values, `${path}.*`);
}

function typeOf(schema: StructuralSchema): string {
  if (schema['x-kubernetes-int-or-string'] === true) return 'integer or string';
  const items = schema['items'] as StructuralSchema | undefined;
  if (items !== undefined) return `list of ${typeOf(items)}`;
  const values = schema['additionalProperties'] as StructuralSchema | undefined;
  if (values !== undefined) return `map of ${typeOf(values)}`;
  return String(schema['format'] === 'date-time' ? 'time' : (schema['type'] ?? 'any'));
}

function meaningOf(schema: StructuralSchema): string {
  const described = typeof schema['description'] === 'string' ? [schema['description']] : [];
  const items = (schema['items'] ?? schema) as StructuralSchema;
  const choices = (items['enum'] ?? schema['enum']) as readonly string[] | undefined;
  const limits = LIMITS.flatMap(([key, words]) =>
    typeof schema[key] === 'number' ? [words(schema[key])] : [],
  );
  const fallback =
    schema['default'] === undefined || schema['type'] === 'object'
      ? []
      : [`Default: \`${JSON.stringify(schema['default'])}\`.`];
  return [
    ...described,
    ...(choices === undefined ? [] : [`One of ${choices.map(code).join(', ')}.`]),
    ...(limits.length === 0 ? [] : [`${limits.join(', ')}.`]),
    ...fallback,
  ].join(' ');
}

/** What a schema's numbers mean; patterns are for programs. */
const LIMITS: readonly (readonly [string, (limit: number) => string])[] = [
  ['minimum', (limit) => `At least ${limit}`],
  ['maximum', (limit) => `At most ${limit}`],
  ['minItems', (limit) => `At least ${limit} entries`],
  ['maxItems', (limit) => `At most ${limit} entries`],
  ['maxLength', (limit) => `At most ${limit} characters`],
];
