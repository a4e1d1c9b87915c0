import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { deadline } from '../../test/fixtures/patience.ts';
import type { RunOsCommand } from '../os/os-command.ts';
import { selinuxComparison, selinuxLabels } from './selinux-labels.ts';

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

  it('gives the policy two minutes to be compiled', async () => {
    await write('sys/fs/selinux/enforce', '1');
    await write('usr/sbin/restorecon');
    const limits: number[] = [];
    const timed: RunOsCommand = async (_command, { timeoutMs }) => {
      limits.push(timeoutMs);
      return '';
    };
    await selinuxLabels(host, timed, (place) => place)(host, ['/etc/a'], signal);
    await selinuxComparison(host, timed)(['/etc/a'], signal);
    expect(limits).toEqual([120_000, 120_000]);
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

describe('selinuxComparison', () => {
  const USER_TMP = 'system_u:object_r:user_tmp_t:s0';
  const ETC = 'system_u:object_r:etc_t:s0';
  // The first six lines were recorded with libselinux 3.4, in another directory; the others are as its messages are
  // written.
  const OUTPUT = [
    `Would relabel /etc/plain from ${USER_TMP} to ${ETC}`,
    `Would relabel /etc/with space from ${USER_TMP} to ${ETC}`,
    `Would relabel /etc/none from (null) to ${ETC}`,
    `Would relabel /etc/x\\x2dy from ${USER_TMP} to ${ETC}`,
    `Would relabel /etc/new\nline from ${USER_TMP} to ${ETC}`,
    `Would relabel /etc/a from b to c from ${USER_TMP} to ${ETC}`,
    '/etc/custom not reset as customized by admin to system_u:object_r:container_file_t:s0',
    `Would relabel /etc/newer from <no context> to ${ETC}`,
    `Would relabel /etc/of-a-pattern from ${USER_TMP} to ${ETC}`,
  ].join('\n');
  const wrong = (name: string, found?: string) => ({ name, wanted: ETC, ...(found && { found }) });

  /** A host with these files, and what is run there. */
  async function hostWith(files: readonly string[]) {
    const host = await mkdtemp(path.join(tmpdir(), 'shale-labels-'));
    onTestFinished(() => rm(host, { recursive: true }));
    for (const name of files) {
      await mkdir(path.dirname(path.join(host, name)), { recursive: true });
      await writeFile(path.join(host, name), '');
    }
    const ran: string[] = [];
    const compare = selinuxComparison(host, async (command, { input }) => {
      ran.push(`${command.join(' ')} < ${input}`);
      return OUTPUT;
    });
    return { compare: (names: readonly string[]) => compare(names, signal), ran };
  }

  it('has restorecon compare all names at once, and reads what it would change', async () => {
    const { compare, ran } = await hostWith(['sys/fs/selinux/enforce', 'usr/sbin/restorecon']);
    const names = [
      '/etc/with space',
      '/etc/plain',
      '/etc/none',
      '/etc/x\\x2dy',
      '/etc/new\nline',
      '/etc/a',
      '/etc/a from b to c',
      '/etc/custom',
      '/etc/newer',
      '/etc/right',
    ];
    expect(await compare(names)).toEqual([
      wrong('/etc/with space', USER_TMP),
      wrong('/etc/plain', USER_TMP),
      wrong('/etc/none'),
      wrong('/etc/x\\x2dy', USER_TMP),
      wrong('/etc/new\nline', USER_TMP),
      wrong('/etc/a from b to c', USER_TMP),
      wrong('/etc/newer'),
    ]);
    expect(ran).toEqual([`restorecon -n -v -i -0 -f - < ${names.join('\0')}\0`]);
  });

  it.each<[string, readonly string[], readonly string[]]>([
    ['SELinux is off', ['usr/sbin/restorecon'], ['/etc/plain']],
    ['the host has no restorecon', ['sys/fs/selinux/enforce'], ['/etc/plain']],
    ['there are no names', ['sys/fs/selinux/enforce', 'usr/sbin/restorecon'], []],
  ])('runs nothing where %s', async (_why, files, names) => {
    const { compare, ran } = await hostWith(files);
    expect(await compare(names)).toEqual([]);
    expect(ran).toEqual([]);
  });
});
