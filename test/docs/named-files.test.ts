import { expect, test } from 'vitest';
import { missingFiles, missingFilesOf, missingFilesOfComments } from './named-files.ts';

/** Not written as one text, because the first test reads this file too. */
const MISSING = ['api', 'none.ts'].join('/');

test('every file that a page or a comment names exists', () => {
  expect(missingFiles()).toEqual([]);
});

test('a page that names a missing file or folder of the project is reported', () => {
  const text = [
    `See \`api/names.ts\`, \`docs/how-to/\` and \`${MISSING}\`.`,
    'Not in the project: `etc/chrony.conf`, `os/worker`. Not a path: `api`.',
    '`daemon/none/`',
  ].join('\n');
  expect(missingFilesOf({ file: 'page.md', text, blocks: [] })).toEqual([MISSING, 'daemon/none/']);
});

test('a comment that names a missing file is reported', () => {
  const source = [
    `/** From the record (${MISSING}) and api/names.ts; MCO has pkg/daemon/update.go. */`,
    `const text = '${MISSING}'; // see ${MISSING}`,
  ].join('\n');
  expect(missingFilesOfComments(source)).toEqual([MISSING, MISSING]);
});
