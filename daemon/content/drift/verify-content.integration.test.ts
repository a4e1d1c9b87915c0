/** Verification reads a real tree: modes, links and units on a disk, which the comparison of values does not have. */
import { chmod, chown, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { configOf, fileOf, unitsOf } from '../../../test/fixtures/configs.ts';
import { verifyConfig } from '../../../test/fixtures/standard-content.ts';
import { UnknownAccountError } from '../entries/desired-tree.ts';

describe('verifyConfig', () => {
  let root: string;
  const config = configOf({ '/etc/a': 'a' });

  beforeEach(async () => {
    root = await mkdtemp(path.join(tmpdir(), 'shale-verify-'));
    await mkdir(path.join(root, 'etc'));
    await writeFile(path.join(root, 'etc/a'), 'a');
    await writeFile(path.join(root, 'etc/passwd'), 'core:x:1000:1000::/home/core:/bin/sh\n');
  });
  afterEach(() => rm(root, { recursive: true }));

  const kinds = async (wanted = config) => (await verifyConfig(root, wanted)).map(({ what }) => what);

  it('finds nothing where all is as it should be', async () => {
    expect(await kinds()).toEqual([]);
  });

  it.each([
    ['content', (place: string) => writeFile(place, 'b')],
    ['mode', (place: string) => chmod(place, 0o600)],
    ['owner', (place: string) => chown(place, 1, 1)],
    ['missing', (place: string) => rm(place)],
    ['kind', (place: string) => rm(place).then(() => symlink('x', place))],
  ])('finds another %s', async (what, change) => {
    await change(path.join(root, 'etc/a'));
    expect(await kinds()).toEqual([what]);
  });

  it('finds a disabled unit enabled', async () => {
    const wants = path.join(root, 'etc/systemd/system/multi-user.target.wants');
    await mkdir(wants, { recursive: true });
    await symlink('/usr/lib/systemd/system/x.service', path.join(wants, 'x.service'));
    await mkdir(path.join(root, 'usr/lib/systemd/system'), { recursive: true });
    await writeFile(
      path.join(root, 'usr/lib/systemd/system/x.service'),
      '[Install]\nWantedBy=multi-user.target\n',
    );
    const disabled = configOf({}, { units: unitsOf({ enabled: false }) });
    expect(await kinds(disabled)).toEqual(['unexpected']);
  });

  it('names a user that the node does not know', async () => {
    const file = fileOf('/etc/a', 'a', { user: { name: 'nobody-here' } });
    const wanted = configOf({}, { files: new Map([[file.path, file]]) });
    await expect(verifyConfig(root, wanted)).rejects.toThrow(UnknownAccountError);
  });
});
