import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { exitCodes } from '../command-line/exit-codes.ts';
import { readDocuments, readObjects } from './object-files.ts';

async function fileOf(text: string): Promise<string> {
  const dir = await mkdtemp(path.join(tmpdir(), 'shale-objects-'));
  onTestFinished(() => rm(dir, { recursive: true }));
  const file = path.join(dir, 'object.yaml');
  await writeFile(file, text);
  return file;
}

const HEAD = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n';
/** Each level contains the one before nine times: 9^7 items in all. */
const LAUGHS = [
  'a: &a [x]',
  ...[...'bcdefgh'].map((name, i) => `${name}: &${name} [${Array(9).fill(`*${'abcdefg'[i]}`)}]`),
];

test('aliases are expanded', async () => {
  const [object] = await readObjects([await fileOf(`${HEAD}a: &a [x]\nb: *a\n`)]);
  expect(object).toMatchObject({ a: ['x'], b: ['x'] });
});

const CONFIG_MAP = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' }, data: { mode: '0644' } };

test.each([
  ['without white space', JSON.stringify(CONFIG_MAP)],
  ['as jq writes it', `${JSON.stringify(CONFIG_MAP, undefined, 2)}\n`],
  ['as kubectl writes it', `${JSON.stringify(CONFIG_MAP, undefined, 4)}\n`],
  [
    'by hand',
    '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"mode": "0644"}}',
  ],
  ['as YAML', `${HEAD}data: {mode: "0644"}\n`],
])('an object %s is read', async (_name, text) => {
  expect(await readObjects([await fileOf(text)])).toEqual([CONFIG_MAP]);
});

const CONFIG = 'machineconfiguration.openshift.io/v1';

test.each([
  ['a List', 'v1', 'List', [{ apiVersion: 'v1', kind: 'Node', metadata: { name: 'a' } }], ['v1 Node a']],
  [
    'a list of a kind',
    CONFIG,
    'MachineConfigList',
    [{ metadata: { name: 'a' } }],
    [`${CONFIG} MachineConfig a`],
  ],
  [
    'a list of a kind whose items have their own',
    CONFIG,
    'MachineConfigList',
    [{ apiVersion: CONFIG, kind: 'MachineConfig', metadata: { name: 'a' } }],
    [`${CONFIG} MachineConfig a`],
  ],
  [
    'a list in a list',
    'v1',
    'List',
    [{ apiVersion: CONFIG, kind: 'MachineConfigPoolList', items: [{ metadata: { name: 'a' } }] }],
    [`${CONFIG} MachineConfigPool a`],
  ],
])('%s is read as its items', async (_name, apiVersion, kind, items, expected) => {
  const text = JSON.stringify({ apiVersion, kind, metadata: { resourceVersion: '' }, items });
  const objects = await readObjects([await fileOf(text)]);
  expect(objects.map((object) => `${object.apiVersion} ${object.kind} ${object.metadata.name}`)).toEqual(
    expected,
  );
});

test.each(['y', 'on', 'no'])('a name that YAML 1.1 reads as a boolean has to be quoted: %s', async (name) => {
  const file = await fileOf(`apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ${name}}\n`);
  await expect(readObjects([file])).rejects.toThrow(
    /document 1: metadata.name is a boolean: kubectl reads y, n, yes, no, on and off as booleans \(YAML 1\.1\); quote the name/,
  );
});

test.each(['items: [1]', 'items: [{metadata: {name: a}}]', 'items: [null]'])(
  'a List with %s is rejected',
  async (items) => {
    await expect(readObjects([await fileOf(`apiVersion: v1\nkind: List\n${items}\n`)])).rejects.toThrow(
      /object.yaml: document 1: without apiVersion, kind or metadata.name/,
    );
  },
);

test('a file that says that it is of another YAML is rejected', async () => {
  await expect(readObjects([await fileOf(`%YAML 1.2\n---\n${HEAD}`)])).rejects.toThrow(
    /%YAML 1.2: kubectl reads YAML 1.1/,
  );
});

test('a key that stands twice in JSON is rejected', async () => {
  const text = JSON.stringify(CONFIG_MAP).replace('"mode":"0644"', '"mode":"0644","mode":"0600"');
  await expect(readObjects([await fileOf(text)])).rejects.toThrow(/Map keys must be unique/);
});

test.each([
  ['aliases that expand to millions of items', `${HEAD}${LAUGHS.join('\n')}\n`],
  ['an alias that contains itself', `${HEAD}a: &a [*a]\n`],
  ['nesting without limit', `${HEAD}a: ${'['.repeat(100_000)}\n`],
])('%s: the file is rejected as invalid usage', async (_name, text) => {
  const file = await fileOf(text);
  const error = await readObjects([file]).catch((caught: unknown) => caught);
  expect(error).toMatchObject({ name: 'CommandError', exitCode: exitCodes.usage });
  expect(String(error)).toContain(file);
});

test.each([
  ['an empty directory', [], /the directory has no .yaml, .yml or .json files/],
  ['a directory with other files', ['README.md'], /the directory has no .yaml, .yml or .json files/],
  ['a directory of empty files', ['a.yaml', 'b.json'], /no objects found/],
])('%s is rejected as invalid usage', async (_name, files, expected) => {
  const dir = await mkdtemp(path.join(tmpdir(), 'shale-objects-'));
  onTestFinished(() => rm(dir, { recursive: true }));
  for (const file of files) await writeFile(path.join(dir, file), '');
  const error = await readObjects([dir]).catch((caught: unknown) => caught);
  expect(error).toMatchObject({ name: 'CommandError', exitCode: exitCodes.usage });
  expect(String(error)).toMatch(expected);
});

test('an empty file beside one with objects is none', async () => {
  expect(await readObjects([await fileOf(''), await fileOf(HEAD)])).toHaveLength(1);
});

test('no names are no objects', async () => {
  expect(await readObjects([])).toEqual([]);
});

test('every document of a directory is read, and each that is none is named by its file and its number', async () => {
  const dir = await mkdtemp(path.join(tmpdir(), 'shale-objects-'));
  onTestFinished(() => rm(dir, { recursive: true }));
  const files = {
    'a.yaml': `# a comment\n---\n${HEAD}---\nkind: ConfigMap\n---\na: [1\n---\n${HEAD.replace('{name: a}', '{name: b}')}`,
    'b.yaml': 'a: &a [*a]\n',
    'c.json': JSON.stringify(CONFIG_MAP).replace('"a"', '"c"'),
  };
  for (const [name, text] of Object.entries(files)) await writeFile(path.join(dir, name), text);
  const at = (name: string, number: number) => `${path.join(dir, name)}: document ${number}`;
  const { objects, problems } = await readDocuments([dir]);
  expect(objects.map(({ object, place }) => [object.metadata.name, place])).toEqual([
    ['a', at('a.yaml', 1)],
    ['b', at('a.yaml', 4)],
    ['c', at('c.json', 1)],
  ]);
  const expected = [
    `${at('a.yaml', 2)}: without apiVersion, kind or metadata.name`,
    expect.stringContaining(`${at('a.yaml', 3)}: Flow sequence in block collection`),
    expect.stringContaining(`${at('b.yaml', 1)}: can't be read as objects: `),
  ];
  expect(problems.map(({ message }) => message)).toEqual(expected);
  const error = await readObjects([dir]).catch((caught: unknown) => caught);
  expect(error).toMatchObject({ name: 'CommandError', exitCode: exitCodes.usage });
  for (const { message } of problems) expect(String(error)).toContain(message);
});
