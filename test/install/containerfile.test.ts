import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { rooms } from '../checks/import-directions.ts';

const ROOT = path.join(import.meta.dirname, '../..');
const lines = (file: string) => readFileSync(path.join(ROOT, file), 'utf8').split('\n');

test.each(rooms)('the image has the room %s', (room) => {
  expect(lines('Containerfile')).toContain(`COPY ${room} /shale/${room}`);
  expect(lines('.containerignore')).toContain(`!${room}`);
});
