/** Labels of a deployment by the policy it brings, beside what setfiles says of the same tree. */
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { deadline } from '../../test/fixtures/patience.ts';
import { osCommandRunner } from '../os/os-command.ts';
import { selinuxLabels } from './selinux-labels.ts';

const noSetfiles = !existsSync('/usr/sbin/setfiles') || process.getuid?.() !== 0;
const title = noSetfiles ? ' (skipped: needs root and the Debian package policycoreutils)' : '';
const COMMAND_MS = 60_000;

/** The last line that matches a name decides (file_contexts(5)). */
const POLICY = `/.*\tsystem_u:object_r:default_t:s0
/etc(/.*)?\tsystem_u:object_r:etc_t:s0
/etc/app(/.*)?\tsystem_u:object_r:app_conf_t:s0
/etc/ssh/.*_key\t--\tsystem_u:object_r:sshd_key_t:s0
/var/lib/app(/.*)?\tsystem_u:object_r:app_var_t:s0
`;

/**
 * setfiles(8) labels trees of another policy also where the kernel has no SELinux; restorecon(8) does nothing there.
 */
it.skipIf(noSetfiles)(
  `a deployment gets the labels that its own policy has for its names${title}`,
  async () => {
    const host = await mkdtemp(path.join(tmpdir(), 'shale-labels-'));
    onTestFinished(() => rm(host, { recursive: true }));
    const deployment = path.join(host, 'sysroot/ostree/deploy/os/deploy/0');
    const write = async (name: string, text = '') => {
      await mkdir(path.dirname(name), { recursive: true });
      await writeFile(name, text);
    };
    const contexts = path.join(deployment, 'etc/selinux/lab/contexts/files/file_contexts');
    await write(path.join(host, 'sys/fs/selinux/enforce'), '1');
    await write(path.join(deployment, 'etc/selinux/config'), 'SELINUX=enforcing\nSELINUXTYPE=lab\n');
    await write(contexts, POLICY);
    const names = [
      '/etc/app/a b',
      '/etc/app/new\nline',
      '/etc/-r',
      // setfiles takes it for a pattern, and labels all of the directory as the policy has it.
      '/etc/app/*',
      '/etc/ssh/host_key',
      '/etc/link',
      '/var/lib/app/state',
    ];
    const links = new Set(['/etc/link']);
    for (const name of names) if (!links.has(name)) await write(path.join(deployment, name));
    await symlink('app', path.join(deployment, 'etc/link'));
    await write(path.join(deployment, 'usr/unnamed'));

    const run = osCommandRunner();
    const signal = deadline(COMMAND_MS);
    await selinuxLabels(host, run, (place) => place)(deployment, [...names, '/etc/missing'], signal);

    /** What the tool would change is what it prints; nothing of what is labelled. */
    const wouldRelabel = (...args: readonly string[]) =>
      run(['setfiles', '-n', '-v', '-F', '-r', deployment, contexts, ...args], {
        timeoutMs: COMMAND_MS,
        signal,
      });
    expect(await wouldRelabel(...names.map((name) => path.join(deployment, name)))).toBe('');
    expect(await wouldRelabel(path.join(deployment, 'usr/unnamed'))).toContain(
      'from (null) to system_u:object_r:default_t:s0',
    );
  },
);
