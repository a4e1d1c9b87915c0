import { describe, expect, it } from 'vitest';
import { parseTmpfiles, statePaths } from './tmpfiles-fragment.ts';

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

  it('are refused when a path is not absolute', () => {
    expect(() => parseTmpfiles('f+ relative 0644')).toThrow('line 1: expected a type and an absolute path');
  });
});
