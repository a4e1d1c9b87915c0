import type { Deployment } from '../backend.ts';
import type { OstreeDeployment } from './deployments.ts';
import { readImageRecord } from './image-record.ts';

/**
 * @param stateDirectory where the records of images lie.
 * @returns a deployment with the labels of its image; none where Shale has not kept them.
 * @throws when the image's record is damaged.
 */
export async function describeDeployment(
  stateDirectory: string,
  { id, image, directory, kernelArguments }: OstreeDeployment,
): Promise<Deployment> {
  const record = image === undefined ? undefined : await readImageRecord(stateDirectory, image);
  return {
    id,
    labels: record?.labels ?? {},
    root: directory,
    kernelArguments,
    ...(image === undefined ? {} : { image }),
  };
}
