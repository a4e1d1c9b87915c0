import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from 'vitest';
import { deployment, stepUnderTest } from '../../test/fixtures/step-context.ts';
import { isManaged, readManagedPaths } from '../records/managed-paths.ts';
import { contentDigest, readTreeEntry } from '../tree/tree-entry.ts';
import { applyLive } from './live-apply.ts';

/** A root, the image that it booted and one whose /etc has another file. */
async function trees() {
  const { context, root } = await stepUnderTest();
  const places = { booted: path.join(root, 'booted'), staged: path.join(root, 'staged') };
  for (const place of [root, places.booted, places.staged]) {
    await mkdir(path.join(place, 'usr/etc'), { recursive: true });
    await writeFile(path.join(place, 'usr/etc/app.conf'), place === places.staged ? 'new' : 'old');
  }
  await writeFile(path.join(root, 'etc/app.conf'), 'old');
  return {
    root,
    staged: places.staged,
    apply: {
      host: context.ports.host,
      services: context.ports.services,
      relabel: context.ports.relabel,
      booted: deployment(places.booted),
      staged: deployment(places.staged),
      signal: context.signal,
    },
  };
}

test("what is about to be put into /etc is on record as Shale's before it is there", async () => {
  const { root, staged, apply } = await trees();
  const digest = contentDigest(await readTreeEntry(path.join(staged, 'usr/etc/app.conf')));

  const killed = applyLive({
    ...apply,
    beforeStep: async ({ kind }) => {
      throw new Error(`killed before ${kind}`);
    },
  });

  await expect(killed).rejects.toThrow('killed before file');
  expect(await readFile(path.join(root, 'etc/app.conf'), 'utf8')).toBe('old');
  expect(isManaged(await readManagedPaths(root), '/etc/app.conf', digest)).toBe(true);

  await applyLive(apply);
  expect(await readFile(path.join(root, 'etc/app.conf'), 'utf8')).toBe('new');
  expect([...(await readManagedPaths(root))]).toEqual([['/etc/app.conf', [digest]]]);
});
