/**
 * A program that a machine lacks need not fail a test: what can't be reloaded is rebooted, and what can't be asked is
 * taken for unknown. So nothing that is run there may be missing.
 */
import { lstatSync, readlinkSync } from 'node:fs';
import { glob, readFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { hostNamespaces } from '../../daemon/host/systemd-host.ts';
import type { LayerEntry } from '../../image/layer/entry.ts';
import { systemdStockLayer } from '../../workshop/sandbox/systemd-node/systemd-nodes.ts';
import { patience } from '../fixtures/patience.ts';
import { FIRST_TIME_MS, labRootfs, noLab } from './lab.ts';

const DAEMON = path.join(import.meta.dirname, '../../daemon');
const SEARCHED = ['usr/local/sbin', 'usr/local/bin', 'usr/sbin', 'usr/bin', 'sbin', 'bin'];

/** What the daemon runs on other hosts alone, with the reason. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  bootc: 'the backend of the machines is ostree',
  'rpm-ostree': 'the backend of the machines is ostree',
  bootctl: 'the backend of the machines is ostree, and a BIOS boots them',
  crictl: 'the machines have no container runtime',
  ctr: 'the machines have no container runtime',
  restorecon: 'the machines have no SELinux policy',
};

/** How the daemon's sources name a program: the first word of a command. */
const COMMANDS = [
  /(?:#run|\brun|runOnHost)\(\s*\[\s*'([\w.-]+)'/g,
  /\((?:\w+\.)?run,\s*\[\s*'([\w.-]+)'/g,
  /command\b[^=\n]*= \[\s*'([\w.-]+)'/gi,
  /return \[\s*'([a-z][\w-]+)',/g,
  /'--', '([a-z][\w-]+)', '-c'/g,
];

/** @returns the programs that the daemon runs on hosts. */
async function programsOfDaemon(): Promise<Set<string>> {
  const found = new Set(
    hostNamespaces(2).flatMap((word, index, all) => (all[index - 1] === '--' ? word : [])),
  );
  for await (const name of glob('**/*.ts', { cwd: DAEMON })) {
    const source = name.endsWith('.test.ts') ? '' : await readFile(path.join(DAEMON, name), 'utf8');
    if (!/RunOsCommand|runOnHost/.test(source)) continue;
    for (const pattern of COMMANDS) {
      for (const [, program = ''] of source.matchAll(pattern)) found.add(program);
    }
  }
  return found;
}

describe.skipIf(noLab !== undefined)('the programs of a machine', () => {
  let rootfs: string;
  let layer: readonly LayerEntry[];

  beforeAll(async () => {
    rootfs = await labRootfs();
    layer = await systemdStockLayer(rootfs);
  }, patience(FIRST_TIME_MS));

  /** @returns whether a machine has this file: Debian's root under what the stock image adds. */
  function exists(file: string): boolean {
    if (layer.some((entry) => entry.path === file)) return true;
    let here = rootfs;
    for (const part of file.split('/').filter((each) => each !== '')) {
      const next = path.join(here, part);
      const found = lstatSync(next, { throwIfNoEntry: false });
      if (found === undefined) return false;
      if (found.isSymbolicLink()) {
        const target = readlinkSync(next);
        const inside = target.startsWith('/') ? target : path.join('/', path.relative(rootfs, here), target);
        here = path.join(rootfs, inside);
      } else here = next;
    }
    return lstatSync(here, { throwIfNoEntry: false }) !== undefined;
  }

  test('are all that the daemon runs there', async () => {
    const programs = await programsOfDaemon();
    expect([...programs]).toEqual(
      expect.arrayContaining(['systemctl', 'journalctl', 'ostree', 'setpriv', 'mount']),
    );
    const missing = [...programs].filter(
      (program) => !SEARCHED.some((directory) => exists(`/${directory}/${program}`)),
    );
    expect(missing.sort()).toEqual(Object.keys(ELSEWHERE).sort());
  });

  test('are all that its units start, reload and stop by', () => {
    const units = layer.filter(({ path: name }) => /\.(service|socket|mount)$/.test(name));
    const lines = units.flatMap((unit) =>
      unit.type === 'file'
        ? [
            ...Buffer.from(unit.content)
              .toString('utf8')
              .matchAll(/^Exec\w+=[-@:+!]*(\S+)/gm),
          ]
        : [],
    );
    const programs = new Set(lines.flatMap(([, program]) => program ?? []));
    expect([...programs]).toEqual(expect.arrayContaining(['/bin/kill', '/usr/bin/crio']));
    expect([...programs].filter((program) => !exists(program))).toEqual([]);
  });
});
