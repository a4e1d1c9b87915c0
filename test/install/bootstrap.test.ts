import { constants } from 'node:fs';
import { access, chmod, copyFile, mkdir, mkdtemp, readlink, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import { describe, expect, onTestFinished, test } from 'vitest';

/** bin/bootstrap on a machine that is no Debian: its PATH has neither apt-get nor dpkg, and npm is a stand-in. */

const ROOT = path.join(import.meta.dirname, '../..');
const TOOLS = ['sh', 'cat', 'cmp', 'cp', 'dirname', 'id', 'ln', 'mkdir', 'readlink', 'sed', 'tr', 'uname'];

interface Machine {
  /** What `node --version` says, without the v. */
  readonly node: string;
  /** Whether npm has the pinned Node for it. */
  readonly hasPinnedNode: boolean;
}

/** @returns where this machine has a program. */
async function placeOf(tool: string): Promise<string> {
  for (const directory of (process.env['PATH'] ?? '').split(path.delimiter)) {
    const place = path.join(directory, tool);
    if (
      await access(place, constants.X_OK).then(
        () => true,
        () => false,
      )
    )
      return place;
  }
  throw new Error(`${tool} is not installed`);
}

async function bootstrap({ node, hasPinnedNode }: Machine, ...parts: string[]) {
  const dir = await mkdtemp(path.join(tmpdir(), 'shale-bootstrap-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  const programs = path.join(dir, 'programs');
  await mkdir(programs);
  await mkdir(path.join(dir, 'bin'));
  await copyFile(path.join(ROOT, 'bin/bootstrap'), path.join(dir, 'bin/bootstrap'));
  await writeFile(path.join(dir, 'package-lock.json'), '{}');
  for (const tool of TOOLS) await symlink(await placeOf(tool), path.join(programs, tool));
  const script = async (name: string, text: string) => {
    await writeFile(path.join(programs, name), `#!/bin/sh\n${text}\n`);
    await chmod(path.join(programs, name), 0o755);
  };
  await script(
    'node',
    `case "$*" in --version) echo v${node} ;; *execPath*) echo ${programs}/node ;; *) echo ${node.split('.')[0]} ;; esac`,
  );
  const pinned = 'cp programs/node node_modules/.bin/node';
  await script(
    'npm',
    `[ "$1" = ci ] || exit 1; mkdir -p node_modules/.bin${hasPinnedNode ? ` && ${pinned}` : ''}`,
  );
  const env = { PATH: programs };
  const result = await execa(path.join(dir, 'bin/bootstrap'), parts, {
    env,
    extendEnv: false,
    reject: false,
    all: true,
  });
  return { ...result, dir, programs };
}

describe('without apt-get', () => {
  test('what the command line needs is installed', async () => {
    const { exitCode, all } = await bootstrap({ node: '22.1.0', hasPinnedNode: true }, 'npm');
    expect({ exitCode, all }).toMatchObject({ exitCode: 0, all: expect.not.stringContaining('own is used') });
  });

  test("where npm lacks the pinned Node, the machine's own is taken if it can run the sources", async () => {
    const { exitCode, all, dir, programs } = await bootstrap({ node: '24.3.0', hasPinnedNode: false }, 'npm');
    expect({ exitCode, all }).toMatchObject({
      exitCode: 0,
      all: expect.stringContaining('own is used, v24.3.0'),
    });
    expect(await readlink(path.join(dir, 'node_modules/.bin/node'))).toBe(path.join(programs, 'node'));
  });

  test('an older Node is not enough then, and the message says what is', async () => {
    const { exitCode, all } = await bootstrap({ node: '22.1.0', hasPinnedNode: false }, 'npm');
    expect({ exitCode, all }).toMatchObject({
      exitCode: 69,
      all: expect.stringContaining('brew install node'),
    });
  });

  test('what the sandbox needs is named, with what works without it', async () => {
    const { exitCode, all } = await bootstrap({ node: '24.3.0', hasPinnedNode: true }, 'debian');
    expect({ exitCode, all }).toMatchObject({
      exitCode: 69,
      all: expect.stringMatching(/docker-registry.* need none of them: make install-cli/),
    });
  });
});
