import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { PROGRAMS } from '../../release/system-files.ts';
import { productRooms } from '../checks/import-directions.ts';

const ROOT = path.join(import.meta.dirname, '../..');
const lines = (file: string) => readFileSync(path.join(ROOT, file), 'utf8').split('\n');

test.each(productRooms)('the image has the room %s', (room) => {
  expect(lines('Containerfile')).toContain(`COPY ${room} /shale/${room}`);
  expect(lines('.dockerignore')).toContain(`!${room}`);
});

test('a release has the programs that the image has', () => {
  expect(lines('container/prepare-root')).toContain(`programs="${PROGRAMS.join(' ')}"`);
});

test('the image has no part of the workshop', () => {
  expect(lines('Containerfile').filter((line) => line.includes('workshop'))).toEqual([]);
  expect(lines('.dockerignore').filter((line) => line.startsWith('!workshop'))).toEqual([]);
});
