import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { nodePaths } from '../../api/names.ts';
import { parseTmpfiles, readFragment, statePaths } from './tmpfiles-fragment.ts';

const FRAGMENT = `# What this image delivers outside of /usr and /etc.
f+~ /opt/a.conf 0644 0 0 - aGVsbG8=
d "/var/lib/with \\"space\\"" 0755 root root - -
L+ /srv/link - - - - /opt/a.conf
z /etc/core.conf 0640 core core - -
f+~ /opt/100%% 0644 0 0 - YQ==
`;

describe('tmpfiles fragments', () => {
  it('tell which paths an image brings', () => {
    expect(statePaths(FRAGMENT)).toEqual({
      files: new Set(['/opt/a.conf', '/srv/link', '/opt/100%']),
      directories: new Set(['/var/lib/with "space"']),
      owners: new Set(['/etc/core.conf']),
    });
    expect(statePaths(undefined).files.size).toBe(0);
  });

  it('are parsed with their argument', () => {
    expect(parseTmpfiles(FRAGMENT)[0]).toEqual({ type: 'f+~', path: '/opt/a.conf', argument: 'aGVsbG8=' });
  });

  it('have fields in either quotes, comments anywhere, and arguments with spaces', () => {
    const text =
      "\n  # d /not/a/path\nf+~ '/a \\'b\\'' 0644 0 0 - one two\n   \nL /c - - - -\nw /d - - - - x\n";
    expect(parseTmpfiles(text)).toEqual([
      { type: 'f+~', path: "/a 'b'", argument: 'one two' },
      { type: 'L', path: '/c', argument: '' },
      { type: 'w', path: '/d', argument: 'x' },
    ]);
    expect(statePaths(text)).toEqual({
      files: new Set(["/a 'b'", '/c']),
      directories: new Set(),
      owners: new Set(),
    });
  });

  it.each([
    ['has no path', 'd /a\nf+~\n', 'line 2: expected a type and an absolute path, got "f+~"'],
    ['has a relative one', '\n\nd a\n', 'line 3: expected a type'],
  ])('are refused when a line %s', (_what, text, message) => {
    expect(() => parseTmpfiles(text)).toThrow(message);
  });

  it('are read of a root, where it has one', async () => {
    const root = await mkdtemp(path.join(tmpdir(), 'tmpfiles-'));
    onTestFinished(() => rm(root, { recursive: true }));
    expect(await readFragment(root)).toBeUndefined();
    await mkdir(path.dirname(path.join(root, nodePaths.tmpfiles)), { recursive: true });
    await writeFile(path.join(root, nodePaths.tmpfiles), FRAGMENT);
    expect(await readFragment(root)).toBe(FRAGMENT);
  });

  it('are refused when a path is not absolute', () => {
    expect(() => parseTmpfiles('f+ relative 0644')).toThrow('line 1: expected a type and an absolute path');
  });
});
