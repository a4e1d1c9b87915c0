import { expect, test } from 'vitest';
import { ImageFiles } from './base-tree.ts';

function file(text: string) {
  return { type: 'file', mode: 0o644, content: Buffer.from(text) } as const;
}

function tree(): ImageFiles {
  const made = new ImageFiles();
  made.set('/usr', { type: 'directory' });
  made.set('/usr/lib', { type: 'directory' });
  made.set('/lib', { type: 'symlink', target: 'usr/lib' });
  made.set('/usr/lib/libc-2.36.so', file('c'));
  made.set('/usr/lib/libc.so.6', { type: 'symlink', target: 'libc-2.36.so' });
  made.set('/lib64', { type: 'symlink', target: '/lib' });
  return made;
}

test('finds a file over links, and says where it really is', () => {
  for (const path of ['/lib/libc.so.6', '/lib64/libc.so.6', '/usr/lib/../lib/libc.so.6']) {
    expect(tree().file(path)).toMatchObject({ path: '/usr/lib/libc-2.36.so', content: Buffer.from('c') });
  }
  expect(tree().file('/lib/libm.so.6')).toBeUndefined();
  expect(tree().file('/usr/lib')).toBeUndefined();
});

test('a link in a circle leads nowhere', () => {
  const made = tree();
  made.set('/a', { type: 'symlink', target: '/b' });
  made.set('/b', { type: 'symlink', target: '/a' });
  expect(made.file('/a/x')).toBeUndefined();
});

test('what a later layer removes, empties or replaces is gone', () => {
  const removed = tree();
  removed.remove('/usr/lib/libc-2.36.so');
  expect(removed.file('/lib/libc.so.6')).toBeUndefined();
  const emptied = tree();
  emptied.removeBelow('/usr/lib');
  emptied.set('/usr/lib/libm.so', file('m'));
  expect([...emptied.kept()]).toEqual(['/usr/lib/libm.so']);
  const replaced = tree();
  replaced.set('/usr/lib', file('no directory any more'));
  expect([...replaced.kept()]).toEqual(['/usr/lib']);
});
