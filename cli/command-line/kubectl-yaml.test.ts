import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { parseKubectlYaml } from './kubectl-yaml.ts';
import { yamlText } from './print-as.ts';

interface Table {
  readonly from: string;
  /** `json`: null where the reader refuses the text. */
  readonly rows: readonly { readonly yaml: string; readonly json: string | null }[];
}

const table = JSON.parse(
  readFileSync(path.join(import.meta.dirname, 'testdata/kubectl-yaml.json'), 'utf8'),
) as Table;

const read = (source: string) => parseKubectlYaml(source).map((document) => document());

test.each(table.rows)('$yaml is read as kubectl reads it', ({ yaml, json }) => {
  if (json === null) expect(() => JSON.stringify(read(yaml))).toThrow();
  else expect(JSON.parse(JSON.stringify(read(yaml)[0]))).toEqual(JSON.parse(json));
});

const texts = [
  ...['yes', 'y', 'N', 'on', 'OFF', 'no', 'true', 'null', '~', '='],
  ...[
    '0o17',
    '0O7',
    '0644',
    '08',
    '1_000',
    '1__0',
    '0b11',
    '0x1F',
    '+1',
    '-0',
    '.5',
    '1.',
    '1e3',
    'e2',
    '.inf',
    '.NaN',
  ],
  ...['22:30', '190:20:30', '2026-01-01', '2026-01-01T10:00:00Z', '3.4.0', '_1', '1,000', 'v1', ''],
  ...['a: b', '- a', '#x', '@a', '*a', '&a', '!a', '? a', '---', 'a #b', ' a', 'a\nb\n', '\ta', "it's"],
];

test.each(texts)('the text %j is printed so that it is read as that text', (text) => {
  for (const value of [{ v: text }, { [text]: 'x' }, [text]]) {
    const printed = yamlText(value);
    expect(read(printed)).toEqual([value]);
    expect(parse(printed)).toEqual(value);
  }
});

test('what is no text is printed so that it is read as it is', () => {
  const value = {
    n: 0o644,
    f: -0.5,
    large: 1e21,
    t: true,
    f2: false,
    none: null,
    list: [1, [], {}],
    at: { at: 1 },
  };
  expect(read(yamlText(value))).toEqual([value]);
  expect(parse(yamlText(value))).toEqual(value);
});
