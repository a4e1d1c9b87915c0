import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { formatAttachments, planAttachments } from './attachment-entries.ts';

const REPOSITORY = 'registry.example.com:5000/os/worker';
const file = (text: string) => ({ name: '/etc/containers/registries.d/a.yaml', text });
const plan = (...texts: string[]) => planAttachments(texts.map(file), [REPOSITORY]);

test.each([
  [''],
  ['docker: {}'],
  ['default-docker:\n  lookaside: https://r.example.com/sigstore'],
  ['docker:\n  quay.io: { use-sigstore-attachments: true }'],
  ['docker:\n  registry.example.com:5000: { use-sigstore-attachments: false }'],
])('signatures are not looked for where registries.d says %j: an entry is written', (text) => {
  expect(plan(text)).toEqual({ write: [REPOSITORY], blocked: [], invalid: [] });
});

test.each([
  ['default-docker: { use-sigstore-attachments: true }'],
  ['docker: { "registry.example.com:5000/os": { use-sigstore-attachments: true } }'],
  ['docker: { "*.example.com": { use-sigstore-attachments: true } }'],
  ['docker: { "*.example.com": { use-sigstore-attachments: yes } }'],
  ['default-docker: { use-sigstore-attachments: on }'],
  [`docker: { "${REPOSITORY}": { use-sigstore-attachments: true } }`],
])('an entry that enables them is used: %s', (text) => {
  expect(plan('', text)).toEqual({ write: [], blocked: [], invalid: [] });
});

test('no entry is repeated, because containers/image would pull nothing any more', () => {
  const text = `docker: { "${REPOSITORY}": { lookaside: "https://r.example.com" } }`;
  const blocked = [{ repository: REPOSITORY, file: '/etc/containers/registries.d/a.yaml' }];
  expect(plan(text)).toEqual({ write: [], blocked, invalid: [] });
});

test('an entry of the admin that leaves it open is no obstacle where a wider one enables them', () => {
  const text = `docker: { "${REPOSITORY}": null, registry.example.com:5000: { use-sigstore-attachments: true } }`;
  expect(plan(text).blocked).toEqual([]);
});

test.each(['docker: []', '{', 'docker: { r.io: { use-sigstore-attachments: "yes" } }'])(
  'the file %j is reported',
  (text) => {
    expect(plan(text).invalid).toEqual(['/etc/containers/registries.d/a.yaml']);
  },
);

test('the file is YAML, and none where there is nothing to say', () => {
  expect(parse(formatAttachments([REPOSITORY]) ?? '')).toEqual({
    docker: { [REPOSITORY]: { 'use-sigstore-attachments': true } },
  });
  expect(formatAttachments([])).toBeUndefined();
});

test('each repository is written once, in their order, and the last file that names a scope counts', () => {
  const repositories = ['b.io/os', 'a.io/os', 'b.io/os'];
  expect(planAttachments([], repositories).write).toEqual(['a.io/os', 'b.io/os']);
  const says = (is: boolean) => file(`docker: { a.io: { use-sigstore-attachments: ${is} } }`);
  expect(planAttachments([says(true), says(false)], ['a.io/os']).write).toEqual(['a.io/os']);
  expect(planAttachments([says(false), says(true)], ['a.io/os']).write).toEqual([]);
});

test('the narrowest entry that says anything counts, and the default last', () => {
  const [on, off] = ['true', 'false'].map((is) => `{ use-sigstore-attachments: ${is} }`);
  expect(plan(`default-docker: ${on}\ndocker: { registry.example.com:5000: ${off} }`).write).toEqual([
    REPOSITORY,
  ]);
  expect(plan(`default-docker: ${off}\ndocker: { registry.example.com:5000: ${on} }`).write).toEqual([]);
  expect(plan(`default-docker: ${on}\ndocker: { registry.example.com:5000: { x: y } }`).write).toEqual([]);
  expect(plan('default-docker: null').write).toEqual([REPOSITORY]);
});

test('a file that is not valid hides no other one', () => {
  expect(plan('{', `docker: { "${REPOSITORY}": { use-sigstore-attachments: true } }`)).toEqual({
    write: [],
    blocked: [],
    invalid: ['/etc/containers/registries.d/a.yaml'],
  });
});
