import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { OstreeDeployment } from './deployments.ts';
import { describeDeployment } from './image-record.ts';
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
