import { describe, expect, test } from 'vitest';
import { imageLabels } from '../../api/names.ts';
import {
  deployment,
  imageOf,
  observation,
  type StepUnderTest,
  standard,
  stepUnderTest,
} from '../../test/fixtures/step-context.ts';
import type { OsBackend } from '../os/backend.ts';
import { prepareLayered } from './prepare-layered.ts';

const target = { mode: 'Layered', config: 'rendered-2', image: imageOf('2') } as const;

/** Stages an image with these labels. */
async function staging(labels: Record<string, string>) {
  const backend: Partial<OsBackend> = {
    stage: async () => deployment('/staged', { image: target.image, labels }),
    status: async () => ({ booted: deployment('/booted') }),
  };
  return prepare(await stepUnderTest({ backend }));
}

function prepare({ context, root }: StepUnderTest) {
  const { client, ports, signal } = context;
  return prepareLayered(
    {
      client,
      backend: ports.backend,
      root,
      spec: observation().spec,
      current: standard('rendered-1'),
      stuck: undefined,
      onProgress: () => undefined,
      signal,
    },
    target,
  );
}

describe('an image that is staged', () => {
  test('is refused when it was built from another config', async () => {
    await expect(staging({ [imageLabels.renderedConfig]: 'rendered-3' })).rejects.toMatchObject({
      name: 'PrepareRefused',
      message: expect.stringMatching(/rendered-3.*rendered-2/),
    });
  });

  test.each([
    ['was built from the target config', { [imageLabels.renderedConfig]: 'rendered-2' }],
    ['does not say what it was built from', {}],
  ])('is taken when it %s', async (_name, labels) => {
    expect((await staging(labels)).plan).toMatchObject({ config: 'rendered-2', image: target.image });
  });
});
