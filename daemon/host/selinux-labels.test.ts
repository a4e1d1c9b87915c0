import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { deadline } from '../../test/fixtures/patience.ts';
import type { RunOsCommand } from '../os/os-command.ts';
import { selinuxLabels } from './selinux-labels.ts';

const signal = deadline(300_000);

describe('selinuxLabels', () => {
  let host: string;
  let ran: { readonly command: string; readonly input: string | undefined }[];
  const run: RunOsCommand = async (command, { input }) => {
    ran.push({ command: command.join(' '), input });
    return '';
  };
  const write = async (name: string, text = '') => {
    await mkdir(path.dirname(path.join(host, name)), { recursive: true });
    await writeFile(path.join(host, name), text);
  };
  const label = (root: string, names: readonly string[]) =>
    selinuxLabels(host, run, (place) => path.join('/', path.relative(host, place)))(root, names, signal);

  beforeEach(async () => {
    host = await mkdtemp(path.join(tmpdir(), 'shale-labels-'));
    ran = [];
  });
  afterEach(() => rm(host, { recursive: true }));

  it('has the host’s own policy label all files of the running root at once', async () => {
    await write('sys/fs/selinux/enforce', '1');
    await label(host, ['/etc/a b', '/etc/-c\n']);
    expect(ran).toEqual([{ command: 'restorecon -i -0 -f -', input: '/etc/a b\0/etc/-c\n\0' }]);
  });

  it('has a deployment’s policy label what lies in it', async () => {
    await write('sys/fs/selinux/enforce', '0');
    await write('sysroot/d/etc/selinux/config', '# which\nSELINUX=enforcing\nSELINUXTYPE=targeted\n');
    await label(path.join(host, 'sysroot/d'), ['/etc/a']);
    const contexts = '/sysroot/d/etc/selinux/targeted/contexts/files/file_contexts';
    expect(ran).toEqual([
      { command: `setfiles -i -0 -f - -r /sysroot/d ${contexts}`, input: '/sysroot/d/etc/a\0' },
    ]);
  });

  it('does nothing where SELinux is off, or for nothing', async () => {
    await label(host, ['/etc/a']);
    await write('sys/fs/selinux/enforce', '1');
    await label(host, []);
    expect(ran).toEqual([]);
  });

  it('says so when a deployment has no policy', async () => {
    await write('sys/fs/selinux/enforce', '1');
    await expect(label(path.join(host, 'sysroot/d'), ['/etc/a'])).rejects.toThrow('SELINUXTYPE');
  });
});
