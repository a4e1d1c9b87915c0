/** A directory node on a disk: what its root keeps over a boot, and that it removes itself. */
import { existsSync } from 'node:fs';
import { lstat, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { deadline } from '../../../test/fixtures/patience.ts';
import { createTestNode, noDirectoryNodes } from '../../../test/fixtures/test-node.ts';
import { directoryNodeLayout, readDirectoryMachine, readRebootRequest } from './directory-host.ts';
import { readServiceRecords } from './service-recorder.ts';

if (noDirectoryNodes !== undefined) process.stderr.write(`skipped: ${noDirectoryNodes}\n`);

const signal = deadline(300_000);

describe.skipIf(noDirectoryNodes !== undefined)('a directory node', () => {
  it('has a root that only leads inside, with state that outlives a boot and a /usr that does not', async () => {
    await using node = await createTestNode();
    const inRoot = (name: string) => path.join(node.host.root, name);
    expect(await readFile(inRoot('/etc/hostname'), 'utf8')).toBe('test\n');
    expect((await lstat(inRoot('/home/core'))).uid).toBe(1000);
    const first = await node.host.bootID();
    await writeFile(inRoot('/var/lib/state'), 'kept');
    await writeFile(inRoot('/usr/local/bin/script'), 'kept');
    await writeFile(inRoot('/usr/bin/scratch'), 'gone');
    await writeFile(inRoot('/run/scratch'), 'gone');
    await node.boot();
    expect(await node.host.bootID()).not.toBe(first);
    expect((await readDirectoryMachine(directoryNodeLayout(node.dir))).bootCount).toBe(2);
    expect(['/var/lib/state', '/usr/local/bin/script'].map((name) => existsSync(inRoot(name)))).toEqual([
      true,
      true,
    ]);
    expect(['/usr/bin/scratch', '/run/scratch'].map((name) => existsSync(inRoot(name)))).toEqual([
      false,
      false,
    ]);
  });

  it('asks for a reboot by a file', async () => {
    await using node = await createTestNode();
    await node.host.reboot('kernel arguments', signal);
    expect(await readRebootRequest(directoryNodeLayout(node.dir))).toEqual({
      reason: 'kernel arguments',
      softly: false,
    });
  });

  it('records what services are asked for, and refuses what systemd would', async () => {
    await using node = await createTestNode();
    const { services, host, dir } = node;
    const layout = directoryNodeLayout(dir);
    await services.daemonReload(signal);
    await services.restart('chronyd.service', signal);
    await services.reload('crio.service', signal);
    const bootID = await host.bootID();
    expect(await readServiceRecords(layout)).toMatchObject([
      { action: 'daemon-reload', unit: '', bootID },
      { action: 'restart', unit: 'chronyd.service', bootID },
      { action: 'reload', unit: 'crio.service', bootID },
    ]);
    await expect(services.restart('nothing.service', signal)).rejects.toThrow('unit not found');
    await expect(services.reload('chronyd.service', signal)).rejects.toThrow(
      'job type reload is not applicable',
    );
    await writeFile(
      path.join(host.root, 'etc/systemd/system/getty@.service'),
      '[Service]\nExecStart=/bin/true\n',
    );
    await services.restart('getty@tty1.service', signal);
    expect(await services.state('getty@tty1.service', signal)).toBe('active');
    await writeFile(layout.serviceFaults, '{"chronyd.service":"fail"}');
    await expect(services.restart('chronyd.service', signal)).rejects.toThrow('entered failed state');
    expect(await services.state('chronyd.service', signal)).toBe('failed');
  });

  it('removes itself without a trace', async () => {
    const node = await createTestNode();
    await node[Symbol.asyncDispose]();
    expect(existsSync(node.dir)).toBe(false);
  });
});
