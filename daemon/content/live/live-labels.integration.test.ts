/** Labels on a real tree after a live apply that is killed at each point: the policy's, whatever was there. */
import { spawnSync } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { execa } from 'execa';
import { describe, expect, it } from 'vitest';
import type { LayerItem } from '../../../image/layer/entry.ts';
import { deadline, patience } from '../../../test/fixtures/patience.ts';
import { samplePoints } from '../../../test/fixtures/sample.ts';
import {
  createTestNode,
  layerFile,
  noDirectoryNodes,
  type TestNode,
} from '../../../test/fixtures/test-node.ts';
import type { Relabel } from '../../host/selinux-labels.ts';
import { applyLive } from './live-apply.ts';

/** security.selinux is an attribute like any other where SELinux is off; Node.js can't set it. */
const noPython = spawnSync('python3', ['--version']).status === 0 ? undefined : 'needs python3';
const missing = noDirectoryNodes ?? noPython;
if (missing !== undefined) process.stderr.write(`skipped: ${missing}\n`);

const SET = `
import os, sys
for line in sys.stdin.read().split('\\0'):
  if line and os.path.lexists(line.split('=')[1]):
    label, place = line.split('=')
    os.setxattr(place, 'security.selinux', label.encode(), follow_symlinks=False)
`;
const GET = `
import os, sys
for place in sys.stdin.read().split('\\0'):
  if place:
    try: label = os.getxattr(place, 'security.selinux', follow_symlinks=False).decode()
    except OSError: label = 'none'
    print(label + '=' + place)
`;
const python = async (program: string, lines: readonly string[]) =>
  (await execa('python3', ['-c', program], { input: lines.map((line) => `${line}\0`).join('') })).stdout;

/** As a policy does: by name. Same contents share an inode of the repository below /usr, so that has one label. */
const labelOf = (name: string) => (name.startsWith('/etc') ? 'etc_t' : 'usr_t');
const relabel: Relabel = async (root, names) => {
  await python(
    SET,
    names.map((name) => `${labelOf(name)}=${path.join(root, name)}`),
  );
};

async function namesIn(node: TestNode): Promise<readonly string[]> {
  const names: string[] = [];
  for (const top of ['/usr', '/etc']) {
    const entries = await readdir(path.join(node.host.root, top), { recursive: true });
    names.push(...entries.map((entry) => path.posix.join(top, entry)));
  }
  return names;
}

/** @returns the paths that have another label than the policy's. */
async function wrongLabels(node: TestNode): Promise<readonly string[]> {
  const names = await namesIn(node);
  const labels = await python(
    GET,
    names.map((name) => path.join(node.host.root, name)),
  );
  const found = labels.split('\n').map((line) => line.slice(0, line.indexOf('=')));
  return names.filter((name, index) => found[index] !== labelOf(name));
}

describe.skipIf(missing !== undefined)(
  'SELinux labels of a live apply',
  { timeout: patience(240_000) },
  () => {
    const first: readonly LayerItem[] = [
      layerFile('/usr/share/lab/changed', 'one\n'),
      layerFile('/usr/share/lab/removed', 'one\n'),
      layerFile('/usr/bin/kubelet', 'patched\n', 0o755),
      layerFile('/etc/changed.conf', 'one\n'),
      layerFile('/etc/removed.conf', 'one\n'),
    ];
    const second: readonly LayerItem[] = [
      layerFile('/usr/share/lab/changed', 'two\n'),
      layerFile('/usr/share/lab/new/file', 'two\n'),
      { type: 'symlink', path: '/usr/share/lab/link', target: 'changed', uid: 0, gid: 0 },
      layerFile('/etc/changed.conf', 'two\n'),
      layerFile('/etc/new/file.conf', 'two\n'),
    ];
    const killed = new Error('killed');
    const signal = deadline(240_000);
    const apply = async (
      node: TestNode,
      layer: readonly LayerItem[],
      /** It is killed before this one of its steps. */
      before = Number.POSITIVE_INFINITY,
    ) => {
      const staged = await node.backend.stage(node.addImage(layer), {
        extraKernelArguments: { remove: [], add: [] },
        signal,
      });
      const { booted } = await node.backend.status(signal);
      let left = before;
      let steps = 0;
      const step = async () => {
        if (left === 0) throw killed;
        left -= 1;
        steps += 1;
      };
      await applyLive({
        host: node.host,
        relabel: async (...args) => {
          await step();
          await relabel(...args);
        },
        booted,
        staged,
        beforeStep: step,
        signal,
      });
      return steps;
    };

    it('are the policy’s for all that is new, changed or back as it was, wherever it was killed', async () => {
      await using node = await createTestNode();
      await relabel(node.host.root, await namesIn(node), signal);
      expect(await wrongLabels(node)).toEqual([]);
      await apply(node, first);
      expect(await wrongLabels(node)).toEqual([]);
      const steps = await apply(node, second);
      expect(await wrongLabels(node)).toEqual([]);
      expect(steps).toBeGreaterThan(8);
      for (const before of samplePoints('steps that a relabelling apply is killed before', steps, 4)) {
        await apply(node, first);
        await expect(apply(node, second, before)).rejects.toThrow(killed);
        await apply(node, second);
        expect([before, await wrongLabels(node)]).toEqual([before, []]);
      }
    });
  },
);
