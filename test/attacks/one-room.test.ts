import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { isTestFile, readImportGraph } from '../checks/import-graph.ts';

/** What changes a file system by path. */
const WRITERS =
  /\b(appendFile|chmod|chown|copyFile|cp|createWriteStream|lchown|link|lutimes|mkdir|mkdtemp|rename|rm|rmdir|symlink|truncate|unlink|utimes|writeFile)(Sync)?\b/;

/** The files of the daemon that may, and why nobody but root can change a path that they use. */
const MAY_WRITE: Readonly<Record<string, string>> = {
  'daemon/files/host-directory.ts': 'the room itself: below handles',
  'daemon/records/durable-json.ts': "the daemon's records, in /var/lib/shale",
  'daemon/content/write/originals.ts': 'copies, in /var/lib/shale',
  'daemon/content/write/write-log.ts': 'copies, in /var/lib/shale',
  'daemon/content/drift/drift.ts': 'the file in /run by which an admin forces a write',
  'daemon/os/bootc-composefs/deployment-trees.ts': 'where deployments are mounted, in /run/shale',
  'daemon/os/bootc-composefs/finalization-lock.ts': "bootc's note and a unit's setting, in /run",
  'daemon/os/image-tool/image-tool-backend.ts': 'origins of deployments, in /ostree',
  'daemon/os/image-tool/package-repository.ts':
    'packages of an image, in /var/lib/shale, and their repository file in /etc',
  'daemon/os/image-tool/pull-settings.ts': 'where the OS tool finds the pull secret, in /etc',
  'daemon/os/ostree/extract-layer.ts': 'a temporary tree that root alone can enter',
  'daemon/os/ostree/image-record.ts': 'records of images, in /ostree',
  'daemon/os/ostree/import-image.ts': 'a temporary tree that root alone can enter',
  'daemon/os/ostree/merge-layer.ts': 'a temporary tree that root alone can enter',
  'daemon/os/ostree/ostree-backend.ts': 'origins of deployments, in /ostree',
  'daemon/os/ostree/run-notes.ts': "ostree's notes, in /run",
};

test('the daemon writes to the host in one room, and beside it only where root alone can', () => {
  const root = path.join(import.meta.dirname, '../..');
  const files = [...readImportGraph(root, ['daemon']).keys()].filter((file) => !isTestFile(file));
  const writing = files.filter((file) =>
    [
      ...readFileSync(path.join(root, file), 'utf8').matchAll(
        /import \{([^}]*)\} from 'node:fs(\/promises)?'/g,
      ),
    ].some(([, names = '']) => WRITERS.test(names)),
  );
  expect(files.length).toBeGreaterThan(50);
  expect(writing.sort()).toEqual(Object.keys(MAY_WRITE).sort());
});
