import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { onTestFinished } from 'vitest';

/** @returns the path of a file with that content; it is deleted when the test ends. */
export async function inputFile(name: string, content: string): Promise<string> {
  const dir = await mkdtemp(path.join(tmpdir(), 'shale-cli-'));
  onTestFinished(() => rm(dir, { recursive: true }));
  const file = path.join(dir, name);
  await writeFile(file, content);
  return file;
}
