import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { crdDefinitions } from '../../api/crd-definitions.ts';
import { buildFailures } from '../../api/machine-os-build.ts';
import { checkoutProgram } from '../../workshop/sandbox/checkout-commands.ts';
import { table } from './markdown.ts';
import { referencePages } from './reference-pages.ts';

test('every kind has a page, with its fields by their paths', async () => {
  const pages = await referencePages();
  for (const { kind } of crdDefinitions) {
    expect(pages.get(`kinds/${kind.kind.toLowerCase()}.md`)).toContain('| `spec`');
  }
  expect(pages.get('kinds/machineconfiguration.md')).toContain(
    '`spec.nodeDisruptionPolicy.files[].actions[].restart.serviceName`',
  );
});

test('a page is the same however often it is made, and on any machine', async () => {
  const pages = await referencePages();
  expect([...(await referencePages())]).toEqual([...pages]);
  for (const text of pages.values()) expect(text).not.toContain(path.join(import.meta.dirname, '../..'));
});

test('the Machine OS Builder’s page says of every failed build whether it is tried again', () => {
  const page = readFileSync(path.join(import.meta.dirname, '../reference/builder.md'), 'utf8');
  expect(Object.keys(buildFailures).filter((reason) => !page.includes(reason))).toEqual([]);
});

test('the page of the command line begins with a table of all commands', async () => {
  const lines = readFileSync(path.join(import.meta.dirname, '../reference/cli.md'), 'utf8').split('\n');
  const rows = lines.slice(2, lines.indexOf('', 2)).join('\n');
  const missing = (await checkoutProgram()).commands.filter(
    (command) => !new RegExp(`\`shale ${command.name()}\\b`).test(rows),
  );
  expect(missing.map((command) => command.name())).toEqual([]);
});

test('a cell ends neither its line nor its column', () => {
  expect(table(['a', 'b'], [['x|y\nz', '`<n>` <m>']])).toBe(
    '| a      | b            |\n| ------ | ------------ |\n| x\\|y z | `<n>` &lt;m> |',
  );
});
