import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { OstreeDeployment } from './deployments.ts';
import { describeDeployment, writeImageRecord } from './image-record.ts';
import { noteExtraArguments } from './kernel-arguments.ts';

const image = `quay.test/os@sha256:${'1'.repeat(64)}` as NonNullable<OstreeDeployment['image']>;
const deployment: OstreeDeployment = {
  id: 'stock-1.0',
  osName: 'stock',
  commit: '1'.repeat(64),
  directory: '/deployment',
  image,
  kernelArguments: ['quiet', 'nosmt'],
};

async function aDirectory(): Promise<string> {
  const directory = await mkdtemp(path.join(tmpdir(), 'shale-image-record-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  return directory;
}

test('a deployment has the kernel arguments that Shale noted as its own', async () => {
  const directory = await aDirectory();
  await noteExtraArguments(directory, { image, kernelArguments: deployment.kernelArguments }, ['nosmt']);
  expect(await describeDeployment(directory, deployment)).toMatchObject({ addedKernelArguments: ['nosmt'] });
});

test('a damaged note of kernel arguments is part of what is known of a deployment, and nothing is staged by it', async () => {
  const directory = await aDirectory();
  const file = path.join(directory, 'kernel-arguments.json');
  await writeFile(file, '{"version":1,"deploy');
  const described = await describeDeployment(directory, deployment);
  expect(described).toMatchObject({ id: 'stock-1.0', image });
  expect(described.addedKernelArguments).toBeUndefined();
  expect(described.unreadableArgumentNotes).toContain(`${file}: not a record`);
  await expect(
    noteExtraArguments(directory, { image, kernelArguments: deployment.kernelArguments }, []),
  ).rejects.toThrow('not a record');
});

test('the record of an image is for root alone, and nothing is left beside it', async () => {
  const directory = path.join(await aDirectory(), 'state');
  await writeImageRecord(directory, image, { labels: { a: 'b' }, layers: [], kernelArguments: [] });
  const records = path.join(directory, 'images');
  expect(await readdir(records)).toEqual([`${'1'.repeat(64)}.json`]);
  const modeOf = async (place: string) => (await stat(place)).mode & 0o777;
  expect(await modeOf(directory)).toBe(0o700);
  expect(await modeOf(records)).toBe(0o700);
  expect(await modeOf(path.join(records, `${'1'.repeat(64)}.json`))).toBe(0o600);
});
