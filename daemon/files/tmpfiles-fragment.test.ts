import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { nodePaths } from '../../api/names.ts';
import { ownersSetAtBoot, readFragment } from './tmpfiles-fragment.ts';

const FRAGMENT = `# What this image delivers outside of /usr and /etc.
f+~ /opt/a.conf 0644 0 0 - aGVsbG8=
d "/var/lib/with \\"space\\"" 0755 root root - -
L+ /srv/link - - - - /opt/a.conf
z /etc/core.conf 0640 core core - -
z /etc/100%% 0644 core 0 - -
z "/etc/a\\\\?\\\\{b\\\\}" 0644 core 0 - -
`;

describe('tmpfiles fragments', () => {
  it('tell whose owner systemd sets at boot', () => {
    expect(ownersSetAtBoot(FRAGMENT)).toEqual(new Set(['/etc/core.conf', '/etc/100%', '/etc/a?{b}']));
    expect(ownersSetAtBoot(undefined)).toEqual(new Set());
  });

  it('have fields in either quotes, and comments anywhere', () => {
    const text =
      "\n  # d /not/a/path\nz '/a \\'b\\'' 0644 0 0 - one two\n   \nL /c - - - -\nz /d - - - - x\n";
    expect(ownersSetAtBoot(text)).toEqual(new Set(["/a 'b'", '/d']));
  });

  it.each([
    ['has no path', 'd /a\nf+~\n', 'line 2: expected a type and an absolute path, got "f+~"'],
    ['has a relative one', '\n\nd a\n', 'line 3: expected a type'],
  ])('are refused when a line %s', (_what, text, message) => {
    expect(() => ownersSetAtBoot(text)).toThrow(message);
  });

  it('are read of a root, where it has one', async () => {
    const root = await mkdtemp(path.join(tmpdir(), 'tmpfiles-'));
    onTestFinished(() => rm(root, { recursive: true }));
    expect(await readFragment(root)).toBeUndefined();
    await mkdir(path.dirname(path.join(root, nodePaths.tmpfiles)), { recursive: true });
    await writeFile(path.join(root, nodePaths.tmpfiles), FRAGMENT);
    await writeFile(path.join(root, nodePaths.formerTmpfiles), 'former');
    expect(await readFragment(root)).toBe(FRAGMENT);
    await rm(path.join(root, nodePaths.tmpfiles));
    expect(await readFragment(root)).toBe('former');
  });

  it('are refused when a path is not absolute', () => {
    expect(() => ownersSetAtBoot('f+ relative 0644')).toThrow('line 1: expected a type and an absolute path');
  });
});
