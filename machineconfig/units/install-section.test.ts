import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readInstallSection } from './install-section.ts';

const wantedBy = (...texts: readonly string[]) => readInstallSection(texts).wantedBy;

test.each([
  [
    'words and quotes',
    '[Install]\nWantedBy= a.target  "b.target" \'c\'.target',
    ['a.target', 'b.target', 'c.target'],
  ],
  ['up to a quote that is not closed', '[Install]\nWantedBy=a.target "b.target', ['a.target']],
  ['every assignment', '[Install]\nWantedBy=a.target\nWantedBy=b.target', ['a.target', 'b.target']],
  ['an empty one clears', '[Install]\nWantedBy=a.target\nWantedBy=\nWantedBy=b.target', ['b.target']],
  ['continued lines', '[Install]\nWantedBy=a.target \\\n# comment\n  b.target', ['a.target', 'b.target']],
  [
    'no continued line after two backslashes',
    '[Install]\nWantedBy=a\\\\\nWantedBy=b.target',
    ['a\\\\', 'b.target'],
  ],
  ['a line that is continued at the end', '[Install]\nWantedBy=a.target \\', ['a.target']],
  ['CRLF', '[Install]\r\nWantedBy=a.target\r\n', ['a.target']],
  ['a byte order mark', '\uFEFF[Install]\nWantedBy=a.target', ['a.target']],
  ['comments', '[Install]\n;WantedBy=a.target\n  #WantedBy=b.target', []],
  ['names by their case', '[install]\nWantedBy=a.target\n[Install]\nwantedby=b.target', []],
  ['no other section', '[Install]\n[Unit]\nWantedBy=a.target', []],
])('reads %s', (_name, text, expected) => {
  expect(wantedBy(text)).toEqual(expected);
});

test('a drop-in adds, clears, and begins without a section', () => {
  expect(wantedBy('[Install]\nWantedBy=a.target', 'WantedBy=b.target\n[Install]\nWantedBy=c.target')).toEqual(
    ['a.target', 'c.target'],
  );
  expect(wantedBy('[Install]\nWantedBy=a.target', '[Install]\nWantedBy=')).toEqual([]);
});

test('specifiers of Also= are those of the default instance before it, and an empty Also= clears nothing', () => {
  const text = '[Install]\nAlso=a.socket\nDefaultInstance=x\nAlso=b@%i.service\nAlso=\n';
  expect(readInstallSection([text])).toMatchObject({
    also: [
      { name: 'a.socket', defaultInstance: '' },
      { name: 'b@%i.service', defaultInstance: 'x' },
    ],
    defaultInstances: ['x'],
  });
});

test('any text is read', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => void readInstallSection([`[Install]\n${text}`])),
  );
});
